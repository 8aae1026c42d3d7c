"""Flows that are nested hundreds deep end as any other flow. An example is a page of results, followed by the next page.

A signal passes a few levels on one stack, and then waits for a turn. So neither elements, ends, failures nor cancels, nor the
cleanup of all levels, come to the interpreter's limit of recursion, which would leave the flow without an end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing

import pytest

from reactive_aio import Flow, hooks
from tests.subscribers import idle

LEVELS = 450
FRAMES = 400
"""Frames that the flow may take, fewer than it has levels. It takes 290, so there are some for a finalizer too."""

Nest = Callable[[Flow[int]], Flow[int]]
End = Callable[[Flow[int]], Awaitable[object]]


async def read(flow: Flow[int]) -> AsyncIterator[int]:
    async for item in flow:
        yield item


async def counted(flow: Flow[int]) -> AsyncIterator[int]:
    yield await flow.count()


NESTS: dict[str, Nest] = {
    "concat": lambda flow: Flow.of(1).concat(Flow.defer(lambda: flow)),
    "concat in front": lambda flow: flow.concat(Flow.of(1)),
    "flat_map": lambda flow: Flow.of(1).flat_map(lambda _: flow),
    "concat_map": lambda flow: Flow.of(1).concat_map(lambda _: flow),
    "switch_map": lambda flow: Flow.of(1).switch_map(lambda _: flow),
    "merge": lambda flow: flow.merge(Flow.of(1)),
    "on_error_resume_next": lambda flow: flow.on_error_resume_next(Flow.error),
    "do_finally": lambda flow: flow.do_finally(lambda: None),
    "share": lambda flow: flow.share(),
    "flow as async iterable": Flow.from_async_iterable,
}
READERS: dict[str, Nest] = {
    "generator": lambda flow: Flow.from_async_iterable(lambda: read(flow)),
    "generator that awaits": lambda flow: Flow.from_async_iterable(lambda: counted(flow)),
}
"""Nests whose cleanup, after a cancel, is that of generators, which the interpreter leaves to the event loop."""

every_nest = pytest.mark.parametrize("nest", {**NESTS, **READERS}.values(), ids=[*NESTS, *READERS])


async def iterated(flow: Flow[int]) -> None:
    async with aclosing(aiter(flow)) as items:
        async for _ in items:
            pass


every_end = pytest.mark.parametrize("end", [Flow.count, iterated], ids=["awaited", "iterated"])


@pytest.fixture(autouse=True)
def few_frames() -> Iterator[None]:
    limit, frame, depth = sys.getrecursionlimit(), sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + FRAMES)
    yield
    sys.setrecursionlimit(limit)


@pytest.fixture
def dropped() -> Iterator[list[BaseException]]:
    errors: list[BaseException] = []
    with hooks.using(on_error_dropped=errors.append):
        yield errors


def levels_of(nest: Nest, flow: Flow[int]) -> Flow[int]:
    for _ in range(LEVELS):
        flow = nest(flow)
    return flow


async def suspended(*items: int) -> AsyncIterator[int]:
    for item in items:
        await asyncio.sleep(0)
        yield item


async def failing() -> AsyncIterator[int]:
    await asyncio.sleep(0)
    raise OSError("down")
    yield 1


@every_end
@every_nest
async def test_it_has_an_end(nest: Nest, end: End, dropped: list[BaseException]) -> None:
    async with asyncio.timeout(60):
        await end(levels_of(nest, Flow.from_async_iterable(lambda: suspended(1, 2))))
    assert dropped == []


@every_end
@every_nest
async def test_a_failure_comes_through(nest: Nest, end: End, dropped: list[BaseException]) -> None:
    async with asyncio.timeout(60):
        with pytest.raises(OSError, match="down"):
            await end(levels_of(nest, Flow.from_async_iterable(failing)))
    assert dropped == []


@every_end
@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
async def test_a_cancel_ends_when_all_is_cleaned_up(nest: Nest, end: End, dropped: list[BaseException]) -> None:
    opened, closed = asyncio.Event(), asyncio.Event()

    async def waiting() -> AsyncIterator[int]:
        try:
            opened.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            closed.set()

    async with asyncio.timeout(60):
        task = asyncio.ensure_future(end(levels_of(nest, Flow.from_async_iterable(waiting))))
        await opened.wait()
        task.cancel()
        await asyncio.wait([task])
    assert (task.cancelled(), closed.is_set(), dropped) == (True, True, [])


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
async def test_a_failure_of_the_cleanup_is_told_once(nest: Nest, dropped: list[BaseException]) -> None:
    opened = asyncio.Event()

    async def waiting() -> AsyncIterator[int]:
        try:
            opened.set()
            yield 1
            await asyncio.Event().wait()
        finally:
            raise OSError("can't close")

    items = aiter(levels_of(nest, Flow.from_async_iterable(waiting)))
    raised: list[BaseException] = []
    async with asyncio.timeout(60):
        while not opened.is_set():
            await anext(items)
        try:
            await items.aclose()
        except OSError as error:
            raised.append(error)
        await idle()
    assert ["can't close"] == list(map(str, [*raised, *dropped]))
