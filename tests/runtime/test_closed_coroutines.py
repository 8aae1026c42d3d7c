"""A coroutine that awaits a flow may be closed, as Python closes what a loop has left behind. It can't wait for a cleanup then."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from attrs import define

from reactive_aio import Flow, Hub, schedulers
from reactive_aio._runtime.host import begun


@define
class Source:
    """Counts the iterators that wait, and those whose cleanup is over."""

    waiting: int = 0
    closed: int = 0

    async def wait(self) -> None:
        """Wait until an iterator waits."""
        async with asyncio.timeout(60):
            while not self.waiting:
                await asyncio.sleep(0)


def never_ending(source: Source) -> Flow[int]:
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            source.waiting += 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            source.closed += 1

    return Flow.from_async_iterable(numbers)


async def for_each(flow: Flow[Any]) -> None:
    async def take(item: object) -> None:
        """Wait for nothing."""

    await flow.for_each(take)


async def in_a_block(flow: Flow[Any]) -> None:
    async with flow.open() as items:
        async for _ in items:
            pass


FLOWS: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "an iterator": lambda flow: flow,
    "two iterators": lambda flow: flow.merge(flow),
    "a window": lambda flow: flow.window(2).flat_map(lambda window: window),
    "awaited elements": lambda flow: flow.map_async(asyncio.sleep),
    "a thread": lambda flow: flow.publish_on(schedulers.thread("closed")),
}
ENDS: dict[str, Callable[[Flow[Any]], Coroutine[Any, Any, object]]] = {
    "to_list": lambda flow: flow.to_list(),
    "for_each": for_each,
    "open": in_a_block,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("flow", FLOWS)
def test_a_coroutine_that_is_closed_after_its_loop_raises_nothing(flow: str, end: str) -> None:
    source = Source()
    coroutine = ENDS[end](FLOWS[flow](never_ending(source)))

    async def begin() -> asyncio.Task[object]:
        task = asyncio.create_task(coroutine)
        await source.wait()
        return task

    complaints: list[dict[str, Any]] = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    task = loop.run_until_complete(begin())
    loop.close()

    coroutine.close()

    del task
    gc.collect()
    assert {"Task was destroyed but it is pending!"} >= {context["message"] for context in complaints}


def test_a_thread_ends_though_a_turn_was_due_when_its_readers_loop_was_closed() -> None:
    hub: Hub[threading.Event] = Hub(idle="wait")
    flow = hub.flow.do_on_next(threading.Event.set).subscribe_on(schedulers.thread("closed"))
    coroutine = flow.to_list()

    async def begin() -> asyncio.Task[object]:
        task = asyncio.create_task(coroutine)
        while not hub.subscribers:
            await asyncio.sleep(0)
        return task

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    task = loop.run_until_complete(begin())
    (thread,) = (each for each in threading.enumerate() if each.name == "closed")
    for passed in (threading.Event(), threading.Event()):  # the second comes when the first has been passed on
        hub.offer(passed)
        assert passed.wait(60)
    loop.close()

    coroutine.close()

    del task
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("flow", FLOWS)
async def test_a_flow_ends_when_the_coroutine_that_awaits_its_end_is_closed(flow: str) -> None:
    source = Source()
    coroutine = FLOWS[flow](never_ending(source)).to_list()
    coroutine.send(None)
    await source.wait()

    coroutine.close()

    async with asyncio.timeout(60):
        while begun(asyncio.get_running_loop()):
            await asyncio.sleep(0)
    assert source.waiting == source.closed


async def test_a_window_is_left_when_the_coroutine_that_awaits_its_end_is_closed() -> None:
    source = Source()
    windows = aiter(never_ending(source).window(2))
    coroutine = (await anext(windows)).to_list()
    coroutine.send(None)
    await source.wait()

    coroutine.close()
    await windows.aclose()

    assert source.closed == 1
