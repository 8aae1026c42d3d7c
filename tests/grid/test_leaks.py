"""Every operator in every way to end: back to where it began, without the help of the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reactive_aio import Flow, hooks, schedulers
from reactive_aio.testing import no_leaks, settle
from tests.grid.points import HERE
from tests.registry import REGISTRY, AnyFlow, Entry, FailureError, Settings
from tests.subscribers import Recorder

Ending = Callable[[AnyFlow, AnyFlow], Awaitable[object]]
"""Runs a flow to one of its ends. It gets a flow that completes and a flow that fails."""

ENDINGS: list[Ending] = []


def ending(run: Ending) -> Ending:
    ENDINGS.append(run)
    return run


@ending
async def completes(flow: AnyFlow, failing: AnyFlow) -> None:
    await flow.for_each(ignore)


@ending
async def fails(flow: AnyFlow, failing: AnyFlow) -> None:
    with pytest.raises(FailureError):
        await failing.to_list()


@ending
async def fails_in_the_consumer(flow: AnyFlow, failing: AnyFlow) -> None:
    with pytest.raises(FailureError):
        await flow.for_each(fail)


@ending
async def fails_in_a_worker(flow: AnyFlow, failing: AnyFlow) -> None:
    async def fail(_: object) -> None:
        raise FailureError

    with pytest.raises(FailureError):
        await flow.for_each(fail, max_concurrency=2)


@ending
async def is_cancelled(flow: AnyFlow, failing: AnyFlow) -> None:
    task = asyncio.ensure_future(flow.for_each(ignore))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


@ending
async def is_cancelled_while_it_waits(flow: AnyFlow, failing: AnyFlow) -> None:
    task = asyncio.ensure_future(flow.concat(Flow.never()).for_each(ignore))
    await settle()
    task.cancel()
    await asyncio.wait([task])


@ending
async def is_taken_early(flow: AnyFlow, failing: AnyFlow) -> None:
    assert len(await flow.take(1).to_list()) == 1


@ending
async def gives_the_first(flow: AnyFlow, failing: AnyFlow) -> None:
    await flow.first()


@ending
async def is_left_by_break(flow: AnyFlow, failing: AnyFlow) -> None:
    async for _ in flow:
        break


@ending
async def is_left_before_its_first_element(flow: AnyFlow, failing: AnyFlow) -> None:
    items = aiter(flow)
    await settle()
    del items


@ending
async def is_left_with_the_block(flow: AnyFlow, failing: AnyFlow) -> None:
    async with flow.open() as items:
        await anext(items)


@ending
async def ends_at_a_subscriber(flow: AnyFlow, failing: AnyFlow) -> None:
    recorder = Recorder(100)
    flow.subscribe(recorder)
    await over(recorder)


@ending
async def fails_at_a_subscriber(flow: AnyFlow, failing: AnyFlow) -> None:
    recorder = Recorder(100)
    failing.subscribe(recorder)
    await over(recorder)
    recorder.signals.clear()  # the traceback of a failure leads to all that took part in it


@ending
async def is_cancelled_by_a_subscriber(flow: AnyFlow, failing: AnyFlow) -> None:
    recorder = Recorder(1)
    flow.subscribe(recorder)
    while not recorder.items:
        await asyncio.sleep(0)
    recorder.cancel()
    await settle()


@ending
async def meets_a_subscriber_that_raises(flow: AnyFlow, failing: AnyFlow) -> None:
    flow.subscribe(Raising(1))
    await settle()


async def over(recorder: Recorder) -> None:
    """Wait for the end of a stream that may signal on another thread."""
    while not recorder.over.is_set():
        await asyncio.sleep(0)


class Raising(Recorder):
    def on_next(self, item: Any) -> None:
        raise FailureError


def ignore(item: object) -> None:
    """Take an element."""


def fail(item: object) -> None:
    raise FailureError


def is_ours(module: str) -> bool:
    return module.startswith("reactive_aio.") and not module.startswith(
        ("reactive_aio._clocks.", "reactive_aio.testing.")
    )


ERRORS_AS_ELEMENTS = {"materialize", "dematerialize"}
"""An error that is an element refers to itself where it is raised: its traceback refers to the frame that held it."""


@contextmanager
def nothing_of_ours_left(*, unless: bool) -> Generator[None]:
    """See that every object of the library that is made in a block is gone behind it, by its reference count alone."""
    gc.disable()
    gc.freeze()  # what there was is out of the way of get_objects
    try:
        yield
        left = [type(each).__qualname__ for each in gc.get_objects() if is_ours(type(each).__module__)]
        assert left == [] or unless, "kept alive by a cycle, or by something that outlives its stream"
    finally:
        gc.unfreeze()
        gc.enable()


async def end(entry: Entry, way: Callable[[AnyFlow], AnyFlow], run: Ending, settings: Settings) -> None:
    with hooks.using(on_error_dropped=ignore):
        await run(entry.make(3, way, settings), entry.fail(3, way, settings))


def fused(flow: AnyFlow) -> AnyFlow:
    return flow


@pytest.mark.costly
@pytest.mark.parametrize("way", [fused, Flow.from_publisher], ids=["fused", "apart"])
@pytest.mark.parametrize("entry", HERE, ids=str)
async def test_nothing_is_left_however_it_ends(entry: Entry, way: Any) -> None:
    for run in ENDINGS:
        await end(entry, way, run, Settings(prefetch=2))  # what is generated for a row of operators is kept
        await settle()
        try:
            with nothing_of_ours_left(unless=entry.method in ERRORS_AS_ELEMENTS):
                async with no_leaks():
                    await end(entry, way, run, Settings(prefetch=2))
        except AssertionError as error:
            error.add_note(f"it {run.__name__}")
            raise


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop of somebody else's, on a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("run", ENDINGS, ids=lambda run: run.__name__)
@pytest.mark.parametrize("entry", [entry for entry in REGISTRY if entry.threaded], ids=str)
async def test_no_thread_is_left_however_it_ends(
    entry: Entry, run: Ending, elsewhere: asyncio.AbstractEventLoop
) -> None:
    async with no_leaks():
        await end(entry, fused, run, Settings(2, schedulers.thread("left behind"), elsewhere))
        for _ in range(5):  # what has been cancelled without waiting for it still has to be told there and back
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), elsewhere))
