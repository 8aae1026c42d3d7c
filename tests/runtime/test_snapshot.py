"""What can be read of a flow while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from reactive_aio import BoundarySnapshot, Flow, RegionSnapshot, schedulers


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
