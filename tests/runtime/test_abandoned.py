"""A subscription is held until it has ended: an abandoned iterator may be collected, but its cleanup runs to its end.

An event loop has weak references to its tasks only. A task may wait for an object that only the task refers to. Then
both are garbage, with everything in one reference cycle with them: an abandoned iterator, its regions, its source. The
collector would close the source in the middle. Each cleanup here waits for gates of that kind, and the collector runs
in between.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from queue import SimpleQueue
from typing import Any

import anyio
import pytest
from attrs import define, field

from reactive_aio import Flow, TaskCancelledError, hooks, schedulers
from reactive_aio._runtime.host import begun
from tests.subscribers import idle

GATES = 3
"""For how many gates each cleanup waits."""


@pytest.fixture(autouse=True)
def collected_by_hand() -> Iterator[None]:
    """The collector runs where a test calls it, and looks at what the test has made."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


@pytest.fixture
async def complaints(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The complaints of the event loops and of the interpreter."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_value))
    monkeypatch.setattr(asyncio.BaseEventLoop, "call_exception_handler", lambda _, context: told.append(context))
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: told.append(context)
    )  # uvloop's is no such loop
    return told


class Gate(asyncio.Event):
    """An event to which only he refers who waits for it."""


@define(eq=False)
class Cleanup:
    """Counts the cleanups that have begun and those that have ended."""

    begun: int = 0
    ended: int = 0
    _gates: SimpleQueue[tuple[asyncio.AbstractEventLoop, weakref.ref[Gate]]] = field(
        init=False, factory=SimpleQueue[tuple[asyncio.AbstractEventLoop, "weakref.ref[Gate]"]]
    )
    """The gates to open. A cleanup on a thread adds to them while the test takes from them."""

    def at_once(self) -> None:
        """Clean up in one go."""
        self.begun += 1
        self.ended += 1

    async def slowly(self) -> None:
        """Clean up, with waits between."""
        self.begun += 1
        for _ in range(GATES):
            gate = Gate()
            self._gates.put((asyncio.get_running_loop(), weakref.ref(gate)))
            await gate.wait()
        self.ended += 1

    async def over(self, expected: int) -> None:
        """Open one gate after another, and collect between, until so many have ended."""
        async with asyncio.timeout(60):
            while self.ended < expected:
                gc.collect()
                await idle(5)
                while not self._gates.empty():
                    self._open(*self._gates.get())

    def _open(self, loop: asyncio.AbstractEventLoop, reference: weakref.ref[Gate]) -> None:
        gate = reference()
        assert gate is not None, "a cleanup is gone, in the middle"
        loop.call_soon_threadsafe(gate.set)


# -- what is begun


async def never() -> None:
    """Wait for what nobody else knows."""
    await asyncio.Event().wait()


async def waiting(cleanup: Cleanup) -> AsyncIterator[int]:
    """Yield one element, and wait for the next one without end."""
    try:
        yield 0
        await never()
    finally:
        await cleanup.slowly()


def waiting_source(cleanup: Cleanup) -> Flow[int]:
    return Flow.defer(lambda: Flow.from_async_iterable(waiting(cleanup)))


def source_that_waits_for_demand(cleanup: Cleanup) -> Flow[int]:
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 0
            yield 1
            await never()
        finally:
            await cleanup.slowly()

    return Flow.from_async_iterable(numbers())


def source_in_a_block(cleanup: Cleanup) -> Flow[int]:
    async def numbers() -> AsyncIterator[int]:
        async with resource(cleanup) as first:
            yield first
            await never()

    return Flow.from_async_iterable(numbers())


def generator(cleanup: Cleanup) -> Flow[int]:
    def numbers() -> Iterator[int]:
        try:
            while True:
                yield 0
        finally:
            cleanup.at_once()

    return Flow.from_iterable(numbers())


@asynccontextmanager
async def resource(cleanup: Cleanup) -> AsyncGenerator[int]:
    try:
        yield 0
    finally:
        await cleanup.slowly()


def using(cleanup: Cleanup) -> Flow[int]:
    def open_resource() -> AbstractAsyncContextManager[int]:
        return resource(cleanup)

    return Flow.using(open_resource, lambda _: waiting_source(cleanup))


def create(cleanup: Cleanup) -> Flow[int]:
    async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
        try:
            await emit(0)
            await never()
        finally:
            await cleanup.slowly()

    return Flow.create(produce)


def from_callback(cleanup: Cleanup) -> Flow[int]:
    def register(emitter: Any) -> Callable[[], object]:
        emitter.next(0)
        return cleanup.at_once

    return Flow.from_callback(register)


def map_async(cleanup: Cleanup) -> Flow[int]:
    async def awaited(n: int) -> int:
        if n:
            try:
                await never()
            finally:
                await cleanup.slowly()
        return n

    return Flow.range(3).map_async(awaited, max_concurrency=3)


def filter_when(cleanup: Cleanup) -> Flow[int]:
    async def wanted(n: int) -> bool:
        if n:
            try:
                await never()
            finally:
                await cleanup.slowly()
        return True

    return Flow.range(3).filter_when(wanted, max_concurrency=3)


def flat_map(cleanup: Cleanup) -> Flow[int]:
    return Flow.range(2).flat_map(lambda _: waiting_source(cleanup))


def concat(cleanup: Cleanup) -> Flow[int]:
    return Flow.concat(waiting_source(cleanup), Flow.of(1))


def group_by(cleanup: Cleanup) -> Flow[Any]:
    return waiting_source(cleanup).group_by(lambda n: n)


def window(cleanup: Cleanup) -> Flow[Any]:
    return waiting_source(cleanup).window(5)


def boundary(cleanup: Cleanup) -> Flow[int]:
    return waiting_source(cleanup).publish_on(schedulers.current(), prefetch=2).map(lambda n: n)


def on_a_thread(cleanup: Cleanup) -> Flow[int]:
    return waiting_source(cleanup).subscribe_on(schedulers.thread("abandoned"))


def over_a_thread(cleanup: Cleanup) -> Flow[int]:
    return waiting_source(cleanup).publish_on(schedulers.thread("abandoned"), prefetch=2).map(lambda n: n)


def awaited_on_a_thread(cleanup: Cleanup) -> Flow[int]:
    return map_async(cleanup).subscribe_on(schedulers.thread("abandoned"))


HOW_MANY: dict[Callable[[Cleanup], Flow[Any]], int] = {
    waiting_source: 1,
    source_that_waits_for_demand: 1,
    source_in_a_block: 1,
    generator: 1,
    using: 2,
    create: 1,
    from_callback: 1,
    map_async: 2,
    filter_when: 2,
    flat_map: 2,
    concat: 1,
    group_by: 1,
    window: 1,
    boundary: 1,
    on_a_thread: 1,
    over_a_thread: 1,
    awaited_on_a_thread: 2,
}
"""Flows that give one element, and how many cleanups each has."""


# -- how it is abandoned


class Holder:
    """An object that refers to itself."""

    def __init__(self, items: AsyncIterator[Any]) -> None:
        self.itself = self
        self.items = items


async def in_a_cycle(flow: Flow[Any]) -> None:
    holder = Holder(aiter(flow))
    await anext(holder.items)
    await idle()


async def read(flow: Flow[Any], came: asyncio.Event, *, inside: bool) -> None:
    """Read in a frame that refers to itself, by the traceback of the error that it keeps."""
    try:
        async for _ in flow:
            came.set()
            if inside:
                await never()
    except BaseException as error:
        _kept = error
        raise


async def by_a_task_that_is_cancelled(flow: Flow[Any]) -> None:
    came = asyncio.Event()
    task = asyncio.ensure_future(read(flow, came, inside=False))
    await came.wait()
    await idle()
    task.cancel()
    await asyncio.wait([task])


async def by_a_timeout(flow: Flow[Any]) -> None:
    came = asyncio.Event()

    async def out_of_time() -> None:
        async with asyncio.timeout(None) as timeout:
            waits = asyncio.ensure_future(came.wait())
            waits.add_done_callback(lambda _: timeout.reschedule(asyncio.get_running_loop().time()))
            await read(flow, came, inside=False)

    with suppress(TimeoutError):
        await out_of_time()


async def by_a_group_of_which_another_fails(flow: Flow[Any]) -> None:
    came = asyncio.Event()

    async def fail() -> None:
        await came.wait()
        raise OSError("another task")

    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(read(flow, came, inside=True))
            group.create_task(fail())


async def by_a_scope_that_is_cancelled(flow: Flow[Any]) -> None:
    came = asyncio.Event()
    with anyio.CancelScope() as scope:
        waits = asyncio.ensure_future(came.wait())
        waits.add_done_callback(lambda _: scope.cancel())
        await read(flow, came, inside=False)


async def by_a_group_of_anyio(flow: Flow[Any]) -> None:
    came = asyncio.Event()

    async def run() -> None:
        await read(flow, came, inside=True)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await came.wait()
        group.cancel_scope.cancel()


WAYS = [
    in_a_cycle,
    by_a_task_that_is_cancelled,
    by_a_timeout,
    by_a_group_of_which_another_fails,
    by_a_scope_that_is_cancelled,
    by_a_group_of_anyio,
]


@pytest.mark.costly
@pytest.mark.parametrize("abandon", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("flow", HOW_MANY, ids=lambda flow: flow.__name__)
async def test_what_an_abandoned_iterator_has_begun_runs_to_its_end(
    flow: Callable[[Cleanup], Flow[Any]], abandon: Callable[[Flow[Any]], Awaitable[None]], complaints: list[Any]
) -> None:
    threads = threading.active_count()
    cleanup = Cleanup()

    await abandon(flow(cleanup))
    await cleanup.over(HOW_MANY[flow])
    async with asyncio.timeout(60):
        while begun(asyncio.get_running_loop()) or threading.active_count() > threads:
            await asyncio.sleep(0)

    gc.collect()
    assert (HOW_MANY[flow], HOW_MANY[flow]) == (cleanup.begun, cleanup.ended)
    assert complaints == []


def test_an_iterator_to_which_its_own_source_refers_is_held_by_that_and_ends_with_the_loop() -> None:
    cleanup = Cleanup()
    dropped: list[BaseException] = []

    async def begin() -> None:
        held: list[Any] = []

        async def numbers() -> AsyncIterator[int]:
            try:
                yield len(held)
                await never()
            finally:
                cleanup.begun += 1
                for _ in range(GATES):
                    await asyncio.sleep(0)
                cleanup.ended += 1

        with hooks.using(on_error_dropped=dropped.append):
            held.append(aiter(Flow.from_async_iterable(numbers())))
        await anext(held[0])

    async def abandon() -> None:
        await begin()
        gc.collect()
        await idle()
        assert (0, 0) == (cleanup.begun, cleanup.ended)

    with asyncio.Runner() as runner:
        runner.run(abandon())

    gc.collect()
    assert (1, 1) == (cleanup.begun, cleanup.ended)
    assert [TaskCancelledError] == list(map(type, dropped))
