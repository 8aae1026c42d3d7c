"""delay and delay_subscription: later, and otherwise as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import TestPublisher, VirtualTimeLoop, from_marbles, no_leaks, probe, record, run_virtual


def now() -> float:
    return asyncio.get_running_loop().time()


def virtual(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test on virtual time."""

    def run() -> None:
        run_virtual(test())

    run.__name__ = test.__name__
    return run


# -- delay


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("-a-b--c|", "----a-b--(c|)"),
        ("(ab)--c----|", "---(ab)--c-|"),
        ("-a-b#", "----a-(b#)"),
        ("abc|", "---ab(c|)"),
        ("--|", "--|"),
        ("--#", "--#"),
        ("-a------b", "----a------b"),
    ],
)
def test_distances_stay_as_they_are_and_the_end_stands_behind_the_elements(source: str, seen: str) -> None:
    assert seen == run_virtual(record(from_marbles(source).delay(3.0), until=12.0))


@virtual
async def test_no_more_is_asked_for_than_is_wanted_nor_than_there_is_room_for() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).delay(5.0, max_size=3)) as p:
        await p.expect_no_event()
        source.assert_requested(0)
        await p.request(2)
        await p.expect_no_event()
        source.assert_requested(2)
        await p.request(UNBOUNDED)
        await p.expect_no_event()
        source.assert_requested(3)
        source.next(1, 2)
        await p.expect_no_event(for_=1.0)
        source.next(3)
        source.assert_requested(3)
        await p.expect_next(1, 2)
        await p.expect_no_event()
        source.assert_requested(5)
        await p.expect_next(3)
        assert 6.0 == now()
        p.cancel()


@virtual
async def test_a_full_delay_lets_so_many_pass_in_its_time() -> None:
    seen = [(now(), n) async for n in Flow.range(5).delay(10.0, max_size=2)]
    assert [(10.0 * (n + 1), n) for n in range(5)] == seen, "async for asks for one at a time"

    at: list[float] = []
    await Flow.range(5).delay(10.0, max_size=2).for_each(lambda _: at.append(now()))
    assert [60.0, 60.0, 70.0, 70.0, 80.0] == at


@virtual
async def test_what_waits_goes_to_the_hook_when_it_is_cancelled() -> None:
    source, discarded = TestPublisher[int](), list[Any]()
    with hooks.using(on_discard=discarded.append):
        async with no_leaks(), probe(Flow.from_publisher(source).delay(5.0), request=9) as p:
            await p.expect_no_event()
            source.next(1, 2)
            await p.expect_no_event(for_=1.0)
            p.cancel()
        source.assert_cancelled()
        assert [1, 2] == discarded


@virtual
async def test_a_failure_behind_what_waits_is_reported_when_it_is_cancelled() -> None:
    source, dropped = TestPublisher[int](), list[Any]()
    with hooks.using(on_error_dropped=dropped.append):
        async with probe(Flow.from_publisher(source).delay(5.0), request=9) as p:
            await p.expect_no_event()
            source.next(1)
            source.error(OSError("late"))
            await p.expect_no_event(for_=1.0)
            p.cancel()
    assert ["late"] == [str(error) for error in dropped]


@virtual
async def test_elements_that_come_late_because_the_loop_was_blocked_come_at_once() -> None:
    loop, at = asyncio.get_running_loop(), list[float]()
    assert isinstance(loop, VirtualTimeLoop)

    def block(n: int) -> None:
        at.append(now())
        if n == 0:
            loop._now += 4.5  # the clock goes on while the loop does not

    await Flow.interval(1.0).on_backpressure_buffer(9).delay(2.0).take(5).for_each(block)
    # Elements that came late are late by as much: only 1 had been there before the clock was moved.
    assert [3.0, 7.5, 9.5, 9.5, 9.5] == at


@virtual
async def test_one_timer_serves_all_that_waits() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    async with Flow.interval(1.0).on_backpressure_buffer(99).delay(50.0).open() as items:
        assert 0 == await anext(items)
        assert 2 >= sum(not timer.cancelled() for timer in loop._scheduled)


# -- delay_subscription


@virtual
async def test_it_subscribes_later_whatever_is_wanted() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).delay_subscription(5.0)) as p:
        await p.expect_no_event(for_=4.0)
        source.assert_subscribers(0)
        await p.request(2)
        await p.request(3)
        await p.expect_no_event(for_=2.0)
        source.assert_requested(5)
        source.next(1)
        await p.expect_next(1)
        source.complete()
        await p.expect_complete()


@virtual
async def test_nothing_is_subscribed_to_when_it_is_cancelled_before() -> None:
    begun: list[int] = []
    flow = Flow.of(1).do_on_subscribe(lambda: begun.append(1)).delay_subscription(5.0)
    async with no_leaks(), probe(flow, request=1) as p:
        await p.expect_no_event(for_=4.0)
        p.cancel()
    await asyncio.sleep(9.0)
    assert [] == begun


@virtual
async def test_a_failure_of_the_flow_is_that_of_the_whole() -> None:
    with pytest.raises(OSError, match="down"):
        await Flow.error(OSError("down")).delay_subscription(5.0).drain()
    assert 5.0 == now()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda flow: flow.delay(-1), ValueError, "seconds must be a finite number of at least 0"),
        (lambda flow: flow.delay(1, max_size=0), ValueError, "size must be at least 1"),
        (lambda flow: flow.delay_subscription(-1), ValueError, "seconds must be a finite number of at least 0"),
        (lambda flow: flow.delay_subscription(None), TypeError, "seconds is a number of seconds, not NoneType"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make(Flow.of(1))


def test_they_are_shown_by_their_times() -> None:
    assert "Flow.delay(1.5, 256)" == repr(Flow.of(1).delay(1.5))
    assert "Flow.delay_subscription(2)" == repr(Flow.of(1).delay_subscription(2))
