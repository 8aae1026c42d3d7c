"""virtual_time: regions whose clock jumps, and what it is held back by."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow, SchedulerClosedError, schedulers
from reactive_aio.testing import VirtualTimeLoop, run_virtual

DAY = 86_400.0


def now(_: object = None) -> float:
    return asyncio.get_running_loop().time()


async def test_ticks_of_a_year_pass_at_once_at_the_times_they_would_have_had() -> None:
    flow = Flow.interval(DAY).map(now).subscribe_on(schedulers.virtual_time()).take(365)

    assert [DAY * n for n in range(1, 366)] == await flow.to_list()


async def test_what_sleeps_in_a_region_takes_no_time() -> None:
    async def naps(emit: Callable[[float], Awaitable[None]]) -> None:
        for _ in range(3):
            await asyncio.sleep(DAY)
            await emit(now())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(DAY):
                await asyncio.Event().wait()
        await emit(now())

    created: Flow[float] = Flow.create(naps)
    assert [DAY, 2 * DAY, 3 * DAY, 4 * DAY] == await created.subscribe_on(schedulers.virtual_time()).to_list()


async def test_the_clock_waits_for_a_subscriber_who_has_something_to_run() -> None:
    # A tick that comes too early finds no demand, and fails the flow.
    flow = Flow.interval(1.0).subscribe_on(schedulers.virtual_time()).publish_on(schedulers.current(), prefetch=1)
    seen = 0

    async for tick in flow.take(100):
        assert tick == seen
        seen += 1
        for _ in range(30):
            await asyncio.sleep(0)

    assert 100 == seen


async def test_the_clock_waits_for_another_thread_at_work() -> None:
    def work(tick: int) -> int:
        time.sleep(0.002)  # it has the thread, and no loop can tell
        return tick

    flow = Flow.interval(1.0).subscribe_on(schedulers.virtual_time()).publish_on(schedulers.thread("work"), prefetch=1)

    assert list(range(30)) == await flow.map(work).take(30).to_list()


async def test_the_clock_does_not_wait_for_what_waits_elsewhere() -> None:
    home, enough, dropped = asyncio.get_running_loop(), asyncio.Event(), list[int]()

    def drop(tick: int) -> None:
        dropped.append(tick)
        if len(dropped) == 5:
            home.call_soon_threadsafe(enough.set)

    flow = Flow.interval(DAY).on_backpressure_drop(drop).subscribe_on(schedulers.virtual_time())
    async with flow.publish_on(schedulers.current(), prefetch=1).open() as items:
        assert 0 == await anext(items)
        await enough.wait()

    assert list(range(dropped[0], dropped[0] + 5)) == dropped[:5]


async def test_regions_on_one_scheduler_share_a_clock() -> None:
    clock = schedulers.virtual_time()
    first = Flow.interval(10.0).subscribe_on(clock).take(3)
    flow = first.publish_on(schedulers.current()).publish_on(clock).map(now)

    times = await flow.to_list()

    assert 3 == len(times)
    assert times == sorted(times)
    assert 10.0 <= times[0]


async def test_two_clocks_go_by_themselves() -> None:
    def ticks() -> Flow[int]:
        return Flow.interval(DAY).subscribe_on(schedulers.virtual_time()).take(50)

    assert [[*range(50)]] * 3 == await asyncio.gather(*(ticks().to_list() for _ in range(3)))


def test_a_subscriber_on_virtual_time_may_read_it_as_well() -> None:
    async def main() -> list[int]:
        return await Flow.interval(DAY).subscribe_on(schedulers.virtual_time()).take(20).to_list()

    assert list(range(20)) == run_virtual(main())


async def test_the_thread_ends_with_the_flow_and_time_begins_anew() -> None:
    before = set(threading.enumerate())
    clock = schedulers.virtual_time()
    flow = Flow.interval(5.0).map(now).subscribe_on(clock).take(1)

    assert [[5.0], [5.0]] == [await flow.to_list(), await flow.to_list()]
    assert set(threading.enumerate()) <= before


async def test_a_scheduler_that_is_kept_open_keeps_its_time() -> None:
    async with schedulers.virtual_time() as clock:
        flow = Flow.interval(5.0).map(now).subscribe_on(clock).take(1)
        assert [[5.0], [10.0]] == [await flow.to_list(), await flow.to_list()]

    with pytest.raises(SchedulerClosedError):
        await flow.to_list()


async def test_it_is_a_loop_of_virtual_time_and_is_named_in_plans() -> None:
    def loop_of(_: Any) -> type[asyncio.AbstractEventLoop]:
        return type(asyncio.get_running_loop())

    flow = Flow.of(1).subscribe_on(schedulers.virtual_time())

    assert issubclass((await flow.map(loop_of).to_list())[0], VirtualTimeLoop)
    assert "R1  virtual_time()   of(1)" == flow.describe()
