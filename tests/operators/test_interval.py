"""interval: ticks by the clock of the loop, which nobody can slow."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import BackpressureOverflowError, Flow, schedulers
from reactive_aio.testing import VirtualTimeLoop, probe, run_virtual


def now() -> float:
    return asyncio.get_running_loop().time()


def test_ticks_come_once_a_period_from_the_first_demand_on() -> None:
    async def main() -> None:
        async with probe(Flow.interval(10.0)) as p:
            await p.expect_no_event(for_=5.0)
            await p.request(9)
            await p.expect_no_event(for_=10.0)
            await p.expect_next(0, 1, 2)
            assert 35.0 == now()
            p.cancel()

    run_virtual(main())


def test_the_first_tick_comes_after_the_delay() -> None:
    async def main() -> list[tuple[int, float]]:
        return [(n, now()) async for n in Flow.interval(10.0, delay=0).take(3)]

    assert [(0, 0.0), (1, 10.0), (2, 20.0)] == run_virtual(main())


def test_what_comes_late_makes_nothing_else_late() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        at: list[float] = []

        def block(n: int) -> None:
            at.append(now())
            if n == 1:
                loop._now += 3.5  # the clock goes on while the loop does not

        await Flow.interval(1.0).take(6).for_each(block)
        return at

    assert [1.0, 2.0, 5.5, 5.5, 5.5, 6.0] == run_virtual(main())


def test_a_tick_without_demand_fails_the_flow_and_says_what_to_choose() -> None:
    async def main() -> None:
        async with probe(Flow.interval(1.0), request=2) as p:
            await p.expect_next(0, 1)
            error = await p.expect_error(BackpressureOverflowError)
            assert 3.0 == now()
            assert "tick 2 of an interval came without demand" in str(error)
            for name in ("on_backpressure_drop()", "on_backpressure_latest()", "on_backpressure_buffer(size)"):
                assert name in str(error)
            assert "interval(1), chained at" in str(error)

    run_virtual(main())


def test_a_slow_consumer_gets_that_error_too() -> None:
    async def main() -> None:
        async for _ in Flow.interval(1.0):
            await asyncio.sleep(5.0)

    with pytest.raises(BackpressureOverflowError, match="tick 1"):
        run_virtual(main())


@pytest.mark.parametrize(
    ("relieved", "seen"),
    [
        (lambda flow: flow.on_backpressure_drop(), [0, 3, 6]),
        (lambda flow: flow.on_backpressure_latest(), [0, 2, 5]),
        (lambda flow: flow.on_backpressure_buffer(2, overflow="drop_latest"), [0, 1, 2]),
        (lambda flow: flow.on_backpressure_buffer(99), [0, 1, 2]),
    ],
    ids=["drop", "latest", "buffer-drop_latest", "buffer"],
)
def test_a_slow_consumer_gets_what_the_operator_keeps(relieved: Any, seen: list[int]) -> None:
    async def main() -> list[int]:
        got: list[int] = []

        async def slow(n: int) -> None:
            got.append(n)
            await asyncio.sleep(2.5)

        await relieved(Flow.interval(1.0)).take(3).for_each(slow)
        return got

    assert seen == run_virtual(main())


def test_cancel_stops_the_clock() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Flow.interval(1.0).open() as items:
            await anext(items)
        assert isinstance(loop, VirtualTimeLoop)
        assert all(timer.cancelled() for timer in loop._scheduled)

    run_virtual(main())


async def test_ticks_come_on_the_loop_of_their_region_and_start_no_thread() -> None:
    before = set(threading.enumerate())
    assert [threading.get_ident()] * 2 == await Flow.interval(1e-3).map(lambda _: threading.get_ident()).take(
        2
    ).to_list()
    assert set(threading.enumerate()) <= before

    name = schedulers.thread("clock")
    where = Flow.interval(1e-3).map(lambda _: threading.current_thread().name).subscribe_on(name).take(2)
    assert ["clock", "clock"] == await where.to_list()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Flow.interval(0), ValueError, "period must be a finite number above 0"),
        (lambda: Flow.interval(-1.0), ValueError, "above 0"),
        (lambda: Flow.interval(float("nan")), ValueError, "finite"),
        (lambda: Flow.interval("1"), TypeError, "period is a number of seconds, not str"),
        (lambda: Flow.interval(1, delay=-1), ValueError, "delay must be a finite number of at least 0"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_it_is_shown_by_its_period() -> None:
    assert "Flow.interval(1.5)" == repr(Flow.interval(1.5))
    assert "Flow.interval(1.5, delay=0)" == repr(Flow.interval(1.5, delay=0))
