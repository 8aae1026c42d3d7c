"""rate_limit: no window ever sees more, nothing is dropped, and nothing waits longer than it must."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import UNBOUNDED, Flow, schedulers
from reactive_aio.testing import TestPublisher, VirtualTimeLoop, no_leaks, probe, run_virtual
from tests.few_timers import FewTimers
from tests.registry import AnyFlow


def now() -> float:
    return asyncio.get_running_loop().time()


def virtual(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test on virtual time."""

    def run() -> None:
        run_virtual(test())

    run.__name__ = test.__name__
    return run


async def times(flow: AnyFlow) -> list[float]:
    """When the elements of a flow come, if all are wanted."""
    at: list[float] = []
    await flow.for_each(lambda _: at.append(now()))
    return at


def fullest(at: list[float], per: float) -> int:
    """The most elements of any window."""
    return max((sum(start <= each < start + per - 1e-6 for each in at) for start in at), default=0)


@virtual
async def test_what_is_there_comes_as_soon_as_the_rate_allows() -> None:
    assert [0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 10.0] == await times(Flow.range(7).rate_limit(3, 5.0))


@virtual
async def test_a_window_begins_with_any_element_and_not_at_round_times() -> None:
    async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
        for pause in (0.0, 4.0, 0.0, 0.0, 0.0):
            await asyncio.sleep(pause)
            await emit(0)

    # 0 has left its window at 5, so that one more may come then; the one of 4 at 9.
    assert [0.0, 4.0, 5.0, 9.0, 10.0] == await times(Flow.create(produce).rate_limit(2, 5.0))


@virtual
async def test_what_was_asked_for_long_ago_counts_when_it_comes() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).rate_limit(2, 5.0), request=9) as p:
        await p.expect_no_event(for_=99.0)
        source.assert_requested(2)
        source.next(1, 2)
        await p.expect_next(1, 2)
        await p.expect_no_event(for_=4.9)
        source.assert_requested(2)
        await p.expect_no_event(for_=0.2)
        source.assert_requested(4)
        p.cancel()


arrivals = st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.3, 0.7, 1.0, 2.5]), max_size=40)
pauses = st.lists(st.sampled_from([0.0, 0.0, 0.05, 0.4, 1.3]), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.sampled_from([0.1, 0.5, 1.0, 1.7]), arrivals, pauses, st.booleans())
def test_no_window_ever_sees_more_and_nothing_is_dropped(
    n: int, per: float, waits: list[float], pauses: list[float], boundary: bool
) -> None:
    async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
        for number, wait in enumerate(waits):
            await asyncio.sleep(wait)
            await emit(number)

    async def main() -> None:
        at: list[float] = []
        flow: AnyFlow = Flow.create(produce)
        if boundary:
            flow = flow.publish_on(schedulers.current(), prefetch=4)
        seen = [
            item
            async for item in flow.rate_limit(n, per).do_on_next(lambda _: at.append(now()))
            if await asyncio.sleep(pauses[item % len(pauses)], True)
        ]
        assert [*range(len(waits))] == seen
        assert fullest(at, per) <= n

        eager = await times(flow.rate_limit(n, per))
        assert fullest(eager, per) <= n
        assert len(waits) == len(eager)

    run_virtual(main())


@virtual
async def test_the_elements_of_one_turn_count_at_its_end_however_long_it_took() -> None:
    loop, at = asyncio.get_running_loop(), list[float]()
    assert isinstance(loop, VirtualTimeLoop)

    def work(n: int) -> None:
        at.append(now())
        if n == 0:
            loop._now += 7.0  # the clock goes on while the loop does not

    await Flow.range(6).rate_limit(2, 5.0).for_each(work)
    assert [0.0, 7.0, 12.0, 12.0, 17.0, 17.0] == at


@virtual
async def test_a_loop_that_reads_the_clock_once_a_turn_lets_no_more_through_behind_a_long_one() -> None:
    loop, at = asyncio.get_running_loop(), list[float]()
    assert isinstance(loop, VirtualTimeLoop)
    run_once, read = loop._run_once, loop.time()

    def reading() -> None:
        nonlocal read
        read = loop._now
        run_once()

    vars(loop).update(_run_once=reading, time=lambda: read)

    def work(n: int) -> None:
        if n == 1:
            loop._now += 4.0
        at.append(loop._now)

    await Flow.range(6).rate_limit(2, 5.0).for_each(work)

    assert fullest(at, 5.0) <= 2


@virtual
async def test_an_element_counts_for_what_is_asked_for_from_within_it() -> None:
    at: list[float] = []
    async for _ in Flow.range(9).rate_limit(2, 5.0).do_on_next(lambda _: at.append(now())).filter(lambda n: n % 4 == 3):
        await asyncio.sleep(0.1)
    assert 2 == fullest(at, 5.0)
    assert 9 == len(at)


@virtual
async def test_demand_passes_as_far_as_there_are_permits() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).rate_limit(3, 5.0)) as p:
        await p.request(2)
        await p.expect_no_event()
        source.assert_requested(2)
        await p.request(UNBOUNDED)
        await p.expect_no_event()
        source.assert_requested(3)
        p.cancel()


@virtual
async def test_it_wakes_once_for_each_permit_and_not_without_demand() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    before = loop.jumps
    await Flow.range(10).rate_limit(2, 5.0).drain()
    assert 4 == loop.jumps - before

    async with probe(Flow.range(10).rate_limit(2, 5.0), request=2) as p:
        await p.expect_next(0, 1)
        assert [] == [timer for timer in loop._scheduled if not timer.cancelled()]
        p.cancel()


@virtual
async def test_a_cancel_ends_the_wait() -> None:
    async with no_leaks(), probe(Flow.range(10).rate_limit(2, 5.0), request=9) as p:
        await p.expect_next(0, 1)
        p.cancel()
    assert 0.0 == now()


@pytest.mark.parametrize("start", [0.1, 4e7 + 0.1, 4e9 + 0.3])
def test_the_timer_is_set_once_for_a_permit_however_floats_are_rounded(start: float) -> None:
    async def main() -> None:
        await Flow.timer(start).drain()
        assert 5 == await Flow.range(5).rate_limit(1, 0.7).count()

    with asyncio.Runner(loop_factory=FewTimers) as runner:
        runner.run(main())


@virtual
async def test_the_end_of_the_flow_does_not_wait_for_a_permit() -> None:
    await Flow.range(2).rate_limit(2, 5.0).drain()
    with pytest.raises(OSError, match="down"):
        await Flow.of(1, 2).concat(Flow.error(OSError("down"))).rate_limit(2, 5.0).drain()
    assert 0.0 == now()


async def test_on_a_real_clock_too_each_waits_its_time() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert 6 == await Flow.range(6).rate_limit(2, 0.02).count()

    # However late a busy machine is, the last two are let through two windows behind the first; clocks may tick once a millisecond.
    assert loop.time() - started >= 2 * 0.02 - 0.002


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda flow: flow.rate_limit(0, 1), ValueError, "max_elements must be at least 1"),
        (lambda flow: flow.rate_limit(1.5, 1), TypeError, "max_elements is a whole number"),
        (lambda flow: flow.rate_limit(1, 0), ValueError, "per must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make(Flow.of(1))
