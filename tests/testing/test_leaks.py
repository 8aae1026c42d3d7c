"""The leak check finds what was left, says what it is, and is content with a clean block."""

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio.testing import LeakError, leaks, no_leaks, run_virtual, settle


class Thing:
    """Can be referred to weakly."""

    other: Any = None

    def __repr__(self) -> str:
        return "the thing"


async def counting() -> AsyncGenerator[int]:
    for n in range(10):
        yield n


def left_behind(main: Any) -> str:
    with pytest.raises(LeakError) as caught:
        run_virtual(main())
    return str(caught.value)


async def test_a_clean_block_passes_on_every_loop() -> None:
    async with no_leaks() as check:
        flow = check.track(Flow.from_async_iterable(counting()).publish_on(schedulers.thread("clean")).take(3))
        assert [0, 1, 2] == await flow.to_list()
        await asyncio.to_thread(int)
        del flow


async def test_a_task_that_is_left_is_found_on_every_loop() -> None:
    never = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def waiting() -> None:
        await never.wait()

    with pytest.raises(LeakError, match=r"left behind:\n  task .*waiting"):
        async with no_leaks():
            tasks.append(asyncio.create_task(waiting()))
    never.set()
    await tasks[0]


async def test_what_was_there_before_is_no_leak() -> None:
    items = counting()
    await anext(items)
    task = asyncio.create_task(asyncio.sleep(3600))
    async with no_leaks():
        pass
    task.cancel()
    await items.aclose()


async def test_a_thread_that_is_left_is_found_on_every_loop() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="left")

    with pytest.raises(LeakError, match="thread 'left'"), no_leaks():
        thread.start()
    done.set()
    thread.join()


def test_outside_of_a_loop_there_are_still_threads() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="left")

    with pytest.raises(LeakError, match="thread 'left'"), no_leaks():
        thread.start()
    done.set()
    thread.join()


def test_a_timer_that_is_left_is_found() -> None:
    async def main() -> None:
        async with no_leaks():
            asyncio.get_running_loop().call_later(3600, print)

    assert "timer <TimerHandle when=3600.0 print" in left_behind(main)


def test_a_cancelled_timer_is_no_leak() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        kept = loop.call_later(1, print)
        async with no_leaks():
            loop.call_later(3600, print).cancel()  # asyncio keeps it for a while, behind the other
        kept.cancel()

    run_virtual(main())


def test_an_open_async_generator_is_found() -> None:
    async def main() -> None:
        kept = counting()
        async with no_leaks():
            await anext(kept)

    assert "async generator <async_generator object counting" in left_behind(main)


def test_a_finished_async_generator_is_no_leak() -> None:
    async def main() -> None:
        kept = counting()
        async with no_leaks():
            async for _ in kept:
                pass

    run_virtual(main())


def test_an_object_that_is_held_is_found_with_its_holder() -> None:
    held: list[Thing] = []

    async def main() -> None:
        async with no_leaks() as check:
            held.append(check.track(Thing()))

    assert "object the thing, held by: list" in left_behind(main)


def test_an_object_that_only_the_garbage_collector_would_free_is_found() -> None:
    async def main() -> None:
        async with no_leaks() as check:
            thing = check.track(Thing())
            thing.other = thing
            del thing
            churn: list[list[Any]] = [[] for _ in range(100_000)]  # enough for a collection
            del churn

    assert "object the thing" in left_behind(main)


def test_garbage_collection_is_as_it_was_behind_the_block() -> None:
    assert gc.isenabled()
    with no_leaks():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_cleanup_that_is_scheduled_is_waited_for() -> None:
    async def main() -> None:
        async with no_leaks():
            items = aiter(Flow.from_async_iterable(counting()))
            await anext(items)
            del items  # cancels, and cleans up in callbacks

    run_virtual(main())


def test_the_failure_of_the_block_comes_out_whatever_is_left() -> None:
    async def main() -> None:
        async with no_leaks():
            asyncio.get_running_loop().call_later(3600, print)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_virtual(main())


def test_several_leaks_are_told_together() -> None:
    async def main() -> None:
        async with no_leaks():
            asyncio.get_running_loop().call_later(1, print)
            asyncio.get_running_loop().call_later(2, print)

    assert 2 == left_behind(main).count("timer")


def test_a_thread_that_virtual_time_waits_for_in_vain_is_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "settle", partial(settle, within=0.05))
    go_on = threading.Event()
    worker = threading.Thread(target=go_on.wait, name="left alone")

    async def main() -> None:
        try:
            async with no_leaks():
                worker.start()
        finally:
            go_on.set()
            worker.join()

    assert "thread 'left alone'" in left_behind(main)
