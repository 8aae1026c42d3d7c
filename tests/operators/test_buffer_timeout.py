"""buffer_timeout: lists by number or by time, never one that is not wanted, and nothing overflows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import TestPublisher, VirtualTimeLoop, from_marbles, no_leaks, probe, run_virtual
from tests.registry import AnyFlow


def now() -> float:
    return asyncio.get_running_loop().time()


def virtual(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test on virtual time."""

    def run() -> None:
        run_virtual(test())

    run.__name__ = test.__name__
    return run


async def timed(flow: AnyFlow) -> list[tuple[float, str]]:
    """When which lists come, if all are wanted."""
    return [(at, "".join(items)) for at, items in await flow.timestamp().to_list()]


@pytest.mark.parametrize(
    ("source", "lists"),
    [
        ("abcdefg|", [(2.0, "abc"), (5.0, "def"), (7.0, "g")]),
        ("a-b-----c---------d|", [(4.0, "ab"), (12.0, "c"), (19.0, "d")]),
        ("------(ab)---(cdefg)|", [(10.0, "ab"), (13.0, "cde"), (17.0, "fg")]),
        ("(abc)-----d-e|", [(0.0, "abc"), (13.0, "de")]),
        ("----|", []),
        ("(abc)|", [(0.0, "abc")]),
    ],
)
def test_a_list_comes_when_it_is_full_or_when_the_time_since_its_first_element_is_up(
    source: str, lists: list[tuple[float, str]]
) -> None:
    assert lists == run_virtual(timed(from_marbles(source).buffer_timeout(3, 4.0)))


@virtual
async def test_no_more_is_asked_for_than_one_list_however_many_are_wanted() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).buffer_timeout(3, 5.0)) as p:
        await p.expect_no_event(for_=60.0)
        source.assert_requested(0)
        await p.request(UNBOUNDED)
        await p.expect_no_event()
        source.assert_requested(3)
        source.next(1, 2)
        await p.expect_no_event()
        source.assert_requested(3)
        source.next(3)
        await p.expect_next([1, 2, 3])
        await p.expect_no_event()
        source.assert_requested(6)
        source.next(4)
        await p.expect_no_event(for_=4.0)
        await p.expect_next([4])
        await p.expect_no_event()
        source.assert_requested(7)
        p.cancel()


@virtual
async def test_a_list_whose_time_is_up_waits_until_it_is_wanted_and_is_filled_meanwhile() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).buffer_timeout(3, 5.0), request=1) as p:
        await p.expect_no_event()
        source.next(1)
        await p.expect_next([1])
        assert 5.0 == now()
        source.next(2)
        await p.expect_no_event(for_=60.0)
        source.next(3)
        source.assert_requested(3)
        await p.expect_no_event(for_=60.0)
        await p.request(1)
        await p.expect_next([2, 3])
        await p.expect_no_event()
        source.assert_requested(3)
        await p.request(1)
        await p.expect_no_event()
        source.assert_requested(6)
        p.cancel()


@virtual
async def test_a_full_list_that_is_not_wanted_takes_no_more() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).buffer_timeout(2, 5.0), request=1) as p:
        await p.expect_no_event()
        source.next(1)
        await p.expect_next([1])
        await p.request(1)
        await p.expect_no_event()
        source.assert_requested(3)
        source.next(2, 3)
        await p.expect_next([2, 3])
        await p.expect_no_event(for_=60.0)
        source.assert_requested(3)
        p.cancel()


@virtual
async def test_the_time_of_a_list_begins_with_its_own_first_element() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).buffer_timeout(2, 5.0), request=9) as p:
        await p.expect_no_event()
        source.next(1)
        await p.expect_no_event(for_=4.0)
        source.next(2)
        await p.expect_next([1, 2])
        await p.expect_no_event()
        source.next(3)
        await p.expect_no_event(for_=4.0)
        await p.expect_next([3])
        assert 9.0 == now()
        p.cancel()


# -- the ends


@virtual
async def test_the_last_list_waits_until_it_is_wanted_and_the_end_stands_behind_it() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).buffer_timeout(2, 5.0), request=1) as p:
        await p.expect_no_event()
        source.next(1)
        await p.expect_next([1])
        source.next(2)
        source.complete()
        await p.expect_no_event(for_=60.0)
        await p.request(1)
        await p.expect_next([2])
        await p.expect_complete()


@pytest.mark.parametrize(
    ("passes", "lists", "lost"), [(1.0, [], [2]), (6.0, [[2]], [])], ids=["being-filled", "waiting"]
)
def test_a_failure_discards_the_list_that_is_being_filled_and_stands_behind_one_that_waits(
    passes: float, lists: list[list[int]], lost: list[int]
) -> None:
    async def main() -> None:
        source, discarded = TestPublisher[int](), list[Any]()
        with hooks.using(on_discard=discarded.append):
            async with probe(Flow.from_publisher(source).buffer_timeout(3, 5.0), request=1) as p:
                await p.expect_no_event()
                source.next(1)
                await p.expect_next([1])
                source.next(2)
                await p.expect_no_event(for_=passes)
                source.error(OSError("down"))
                if lists:
                    await p.expect_no_event()
                    await p.request(1)
                    await p.expect_next(*lists)
                await p.expect_error(OSError)
        assert lost == discarded

    run_virtual(main())


@virtual
async def test_a_cancel_discards_what_is_held_and_leaves_no_timer() -> None:
    source, discarded = TestPublisher[int](), list[Any]()
    with hooks.using(on_discard=discarded.append):
        async with no_leaks(), probe(Flow.from_publisher(source).buffer_timeout(3, 5.0), request=1) as p:
            await p.expect_no_event()
            source.next(1, 2)
            await p.expect_no_event(for_=1.0)
            p.cancel()
        source.assert_cancelled()
    assert [1, 2] == discarded
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    assert 1.0 == now()


def test_every_element_comes_in_order_in_a_list_that_is_wanted_or_goes_to_the_hook() -> None:
    async def main(seed: int) -> None:
        chance, made, got, discarded = random.Random(seed), list[int](), list[list[int]](), list[Any]()

        async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
            for n in range(60):
                await asyncio.sleep(chance.choice([0.0, 0.0, 0.5, 1.5, 4.0]))
                await emit(n)
                made.append(n)

        with hooks.using(on_discard=discarded.append):
            flow: AnyFlow = Flow.create(produce)
            async with flow.buffer_timeout(chance.choice([1, 3, 7]), 2.0).open() as items:
                async for each in items:
                    got.append(each)
                    await asyncio.sleep(chance.choice([0.0, 0.5, 9.0]))
                    if chance.random() < 0.03:
                        break
        taken = [n for each in got for n in each]
        assert made == taken + discarded
        assert all(got)

    for seed in range(30):
        run_virtual(main(seed))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda flow: flow.buffer_timeout(0, 1), "size must be at least 1"),
        (lambda flow: flow.buffer_timeout(1, 0), "seconds must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make(Flow.of(1))


def test_it_is_shown_by_its_size_and_its_time() -> None:
    assert "Flow.buffer_timeout(3, 1.5)" == repr(Flow.of(1).buffer_timeout(3, 1.5))
