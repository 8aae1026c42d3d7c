"""Checks that nothing is left over: tasks, timers, threads, async generators, objects."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import AsyncGeneratorType, TracebackType
from typing import Any, Self, TypeVar

from .._clocks.bystanders import is_idle_worker
from .settling import settle

T = TypeVar("T")


class LeakError(AssertionError):
    """Something that was started in a block still exists after it. The message says what."""


class LeakCheck:
    """Compares the state after a block with the state before it; see `no_leaks`."""

    def __init__(self) -> None:
        self._before: dict[int, object] = {}  # by identity; the objects are kept, so that no other gets their id
        self._tracked: list[tuple[weakref.ref[Any], str]] = []
        self._collecting = False

    def track(self, thing: T) -> T:
        """Check after the block that an object is gone, by its reference count alone. Return the object."""
        self._tracked.append((weakref.ref(thing), repr(thing)))
        return thing

    async def __aenter__(self) -> Self:
        await settle()  # what has been started before the block may be about to set a timer
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await settle()
        except TimeoutError:
            self.__exit__(None, None, None)  # says what was left, where that is the reason
            raise
        self.__exit__(kind, error, trace)

    def __enter__(self) -> Self:
        self._collecting = gc.isenabled()
        gc.disable()
        self._before = {id(thing): thing for thing, _ in _present()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = [told for thing, told in _present() if id(thing) not in self._before]
        left += [_held(thing(), told) for thing, told in self._tracked if thing() is not None]
        self._before, self._tracked = {}, []
        if self._collecting:
            gc.enable()
        # After a failure its traceback holds whatever was there; the failure is what matters.
        if left and error is None:
            raise LeakError("\n  ".join(["left behind:", *left]))


def _held(thing: object, told: str) -> str:
    holders = {type(each).__name__ for each in gc.get_referrers(thing)} - {"frame"}
    return f"object {told}, held by: {', '.join(sorted(holders)) or 'a frame'}"


def _present() -> Iterator[tuple[object, str]]:
    """Yield each kind of thing that can be left over, with a function that describes it."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - it is documented
    for thread in threading.enumerate():
        # The idle workers of a pool are its own business, and stay by design.
        if not is_idle_worker(thread, frames.get(thread.ident or 0)):
            yield thread, f"thread {thread.name!r}"
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    for task in asyncio.all_tasks(loop):
        if task is not asyncio.current_task():
            yield task, f"task {task!r}"
    timers: Iterable[asyncio.TimerHandle] = getattr(loop, "_scheduled", ())
    for timer in timers:
        if not timer.cancelled():
            yield timer, f"timer {timer!r}"
    generators: Iterable[AsyncGeneratorType[Any, Any]] = getattr(loop, "_asyncgens", ())
    for generator in list(generators):
        if generator.ag_frame is not None:
            yield generator, f"async generator {generator!r}, not closed"


def no_leaks() -> LeakCheck:
    """Check that a block leaves nothing behind, by ``async with``, or by ``with`` outside of an event loop.

    At its end it waits until the loop is at rest. Then there must be no new task, timer, thread or open async
    generator, and objects that were passed to ``track`` must be gone. Garbage collection is off in the block, so an
    object that needs it is a leak. A failure in the block is raised unchanged. (Timers are
    seen on asyncio's loops, not on uvloop.)

    >>> import asyncio
    >>> from reactive_aio import Flow
    >>> from reactive_aio.testing import no_leaks, run_virtual
    >>> async def main():
    ...     async with no_leaks() as check:
    ...         async with check.track(Flow.range(3)).open() as items:
    ...             await anext(items)
    ...         del items
    >>> run_virtual(main())
    """
    return LeakCheck()
