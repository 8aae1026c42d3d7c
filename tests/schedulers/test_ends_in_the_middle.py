"""A thread that ends in the middle, or waits for itself: an error arrives, and nothing hangs."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from reactive_aio import Flow, SchedulerClosedError, hooks, schedulers
from reactive_aio._core import budgets
from reactive_aio.testing import settle

Emit = Callable[[int], Awaitable[None]]


def leave(error: BaseException) -> Callable[[int], int]:
    def fn(n: int) -> int:
        if n == 2:
            raise error
        return n

    return fn


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
async def test_a_function_that_would_end_the_thread_fails_the_flow(error: BaseException) -> None:
    flow = Flow.range(9).publish_on(schedulers.thread("exiting")).map(leave(error))

    with pytest.raises(type(error)) as caught:
        await flow.to_list()

    assert error is caught.value


async def test_a_producer_that_would_end_the_thread_fails_the_flow() -> None:
    async def produce(emit: Emit) -> None:
        await emit(1)
        raise SystemExit

    async with schedulers.thread("exiting") as place:
        with pytest.raises(SystemExit):
            await Flow.create(produce).subscribe_on(place).to_list()


async def test_the_other_flows_on_that_thread_go_on() -> None:
    async with schedulers.thread("shared") as place:
        other = Flow.range(9).subscribe_on(place).map(lambda _: threading.get_ident())
        async with other.open() as items:
            before = await anext(items)
            with pytest.raises(SystemExit):
                await Flow.range(9).publish_on(place).map(leave(SystemExit())).to_list()

            assert before == await anext(items)
        assert [0, 1] == await Flow.range(2).publish_on(place).to_list()


async def test_a_callback_that_would_end_the_thread_is_told_to_the_loop_and_the_thread_goes_on() -> None:
    told: list[dict[str, Any]] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def call(n: int) -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        loop.call_soon(interrupt)
        await asyncio.sleep(0)
        return n

    async with schedulers.thread("shared") as place:
        assert [0, 1] == await Flow.range(2).publish_on(place).map_async(call, max_concurrency=1).to_list()

    assert ["a callback on thread('shared') raised KeyboardInterrupt"] * 2 == [each["message"] for each in told]


@pytest.mark.parametrize(
    "make", [lambda: schedulers.thread("own"), lambda: schedulers.threads(1)], ids=["loop", "pool"]
)
async def test_who_closes_the_place_that_he_runs_on_does_not_wait_for_himself(make: Callable[[], Any]) -> None:
    place = make().open()
    closed: list[int] = []

    def close(n: int) -> int:
        place.close()
        closed.append(n)
        return n

    with suppress(SchedulerClosedError):  # it may come before the element
        await Flow.of(1).publish_on(place).map(close).to_list()

    assert [1] == closed
    with pytest.raises(SchedulerClosedError):
        await Flow.of(1).publish_on(place).to_list()


FORKED = """
import os
from reactive_aio import Flow, schedulers
with schedulers.thread("kept") as place:
    flow = Flow.range(3).publish_on(place).map(str)
    flow.run_sync()
    child = os.fork()
    given = flow.run_sync()
if not child:
    os._exit(given != ["0", "1", "2"])
assert os.waitpid(child, 0)[1] == 0
with schedulers.thread("kept, and not used") as place:
    child = os.fork()
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_a_forked_process_has_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=False, timeout=60)

    assert 0 == done.returncode, done.stderr


async def breaks(flow: Flow[int]) -> None:
    async for _ in flow:
        break


async def is_cancelled(flow: Flow[int]) -> None:
    async def read() -> None:
        async for _ in flow:
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("step", [0, budgets.TURN], ids=["all in one turn", "a turn for each"])
@pytest.mark.parametrize("leave_it", [breaks, is_cancelled])
@pytest.mark.parametrize(
    "pool", [lambda: schedulers.threads(2), lambda: schedulers.thread("left"), lambda: schedulers.processes(1)]
)
async def test_a_pool_that_is_closed_behind_a_flow_that_was_left_has_nothing_to_report(
    pool: Callable[[], Any],
    leave_it: Callable[[Flow[int]], Awaitable[None]],
    step: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budgets, "clock", itertools.count(step=step).__next__)
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        with pool().open() as place:
            await leave_it(Flow.range(500).publish_on(place, prefetch=16).map(abs))
        await settle()

    assert [] == dropped
