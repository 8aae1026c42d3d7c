"""A snapshot shows the state of a flow while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from reactive_aio import BoundarySnapshot, Flow, RegionSnapshot, schedulers
from reactive_aio._plan import OverflowSnapshot, Snapshot
from tests.subscribers import ByHand, idle


def delivered(regions: tuple[RegionSnapshot, ...]) -> list[int]:
    return [region.delivered for region in regions]


async def test_counts_what_has_left_each_region_also_when_it_has_ended() -> None:
    flow = Flow.range(100).publish_on(schedulers.thread("even")).filter(lambda n: n % 2 == 0)

    async with flow.publish_on(schedulers.current()).map(str).open() as items:
        assert [item async for item in items][-1] == "98"
        regions = items.snapshot().regions

    assert delivered(regions) == [100, 50, 50]
    assert [region.place for region in regions] == ["the subscriber's loop", "thread('even')", "current()"]


async def test_tells_what_waits_at_a_boundary() -> None:
    async with Flow.range(100).publish_on(schedulers.current(), prefetch=8).map(str).open() as items:
        await anext(items)
        source, region = items.snapshot().regions

    assert source == RegionSnapshot("the subscriber's loop", delivered=8)
    assert region == RegionSnapshot("current()", 1, BoundarySnapshot(requested=8, delivered=8, buffered=7, prefetch=8))


async def test_a_combinator_stands_for_the_flow_that_it_reads_now() -> None:
    first = Flow.range(3).publish_on(schedulers.current()).map(str)

    async with first.concat(Flow.of("x", "y")).retry(1).open() as items:
        assert [await anext(items) for _ in range(2)] == ["0", "1"]
        assert delivered(items.snapshot().regions) == [3, 2]

        assert [await anext(items) for _ in range(2)] == ["2", "x"]
        assert delivered(items.snapshot().regions) == [1]


async def test_a_source_that_delivers_by_itself_is_a_region_of_its_own() -> None:
    async def two(emit: Callable[[int], Awaitable[None]]) -> None:
        await emit(1)
        await emit(2)

    created: Flow[int] = Flow.create(two)
    async with created.publish_on(schedulers.current()).map(str).open() as items:
        assert [item async for item in items] == ["1", "2"]
        assert delivered(items.snapshot().regions) == [2, 2]


async def test_a_combinator_shows_each_of_the_flows_that_it_reads_at_a_time() -> None:
    evens = Flow.range(0, 100, 2).publish_on(schedulers.current(), prefetch=8).map(str)

    async with evens.merge(Flow.range(3), Flow.never(), prefetch=4).open() as items:
        assert await anext(items) == 0
        await idle()
        (region,) = items.snapshot().regions

    assert region.delivered == 1
    first, ended, never = region.inner
    assert first.boundary == BoundarySnapshot(requested=4, delivered=4, buffered=4, prefetch=4)
    assert delivered(first.regions) == [8, 4]
    assert ended.boundary == BoundarySnapshot(requested=3, delivered=3, buffered=2, prefetch=4)
    assert ended.regions == ()
    assert never.boundary == BoundarySnapshot(requested=4, delivered=0, buffered=0, prefetch=4)


async def test_what_was_kept_of_a_flow_is_shown_until_it_is_taken() -> None:
    async with Flow.range(2).merge(Flow.never(), prefetch=4).open() as items:
        assert await anext(items) == 0
        assert [each.boundary.buffered for each in items.snapshot().regions[0].inner] == [1, 0]
        assert await anext(items) == 1
        assert [each.boundary.buffered for each in items.snapshot().regions[0].inner] == [0]


async def test_what_is_requested_of_a_flow_without_a_prefetch_is_shown_too() -> None:
    source = ByHand()
    other = Flow.from_publisher(ByHand())

    async with Flow.from_publisher(source).race(other).open() as items:
        waiting = asyncio.ensure_future(anext(items))
        await idle()
        (region,) = items.snapshot().regions
        source.next("first")
        assert await waiting == "first"

    assert [each.boundary for each in region.inner] == [BoundarySnapshot(1, 0, 0, None)] * 2


def test_a_boundary_tells_how_much_is_under_way() -> None:
    boundary = BoundarySnapshot(requested=16, delivered=9, buffered=4, prefetch=12)

    assert (boundary.processed, boundary.outstanding) == (5, 7)
    assert boundary.requested - boundary.buffered - boundary.processed == boundary.outstanding


def test_boundaries_and_drops_are_those_of_all_regions() -> None:
    first, second = BoundarySnapshot(4, 3, 2, 4), BoundarySnapshot(8, 7, 6, 8)
    snapshot = Snapshot((
        RegionSnapshot("a", 1),
        RegionSnapshot("b", 2, first, OverflowSnapshot(9, 8, 7)),
        RegionSnapshot("c", 3, second, OverflowSnapshot(9, 8, 5)),
    ))  # fmt: skip

    assert (snapshot.boundaries, snapshot.dropped) == ((first, second), 12)
