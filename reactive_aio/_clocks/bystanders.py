"""The other threads of the process, and whether they may still call the loop of a test."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread as pools
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, Final

from .windows import Wave

# Of the standard library, unchanged from Python 3.7 to 3.15: the threads of all pools, each with its queue of jobs.
POOLS: Final[Mapping[threading.Thread, Any]] = getattr(pools, "_threads_queues", {})
WORKER: Final = getattr(getattr(pools, "_worker", None), "__code__", None)
SCHEDULERS: Final = {"reactive_aio.schedulers.thread", "reactive_aio.schedulers.threads"}

ASKING: Final = threading.Lock()

LOOKS: Final = 20
HANDOVER: Final = 1e-3
"""Seconds for a worker with a new job to wake up: its queue may be empty by then."""

RUNNING: Final = {"run", "run_forever", "run_until_complete"}


class Bystanders:
    """The threads beside a loop.

    Those that were there before it are none of its business, except where they run regions. Of the others, a
    worker of a pool is at work while it has a job, and a thread with an event loop while that has anything to
    run. Any other thread is at work until it ends.
    """

    def __init__(self, before: Iterable[threading.Thread] | None = None) -> None:
        self._before = weakref.WeakSet(threading.enumerate() if before is None else before)

    def busy(self, *, settling: bool, loops: Iterable[asyncio.AbstractEventLoop] = ()) -> str | None:
        """Return which thread may still call, or None.

        A thread whose loop has only timers and sockets to wait for is left alone with ``settling``. ``loops`` are
        asked as well, whenever their threads began.
        """
        reason = self._look(settling=settling, loops=loops)
        looks = 0 if reason is not None else self._looks()
        while looks and reason is None:
            time.sleep(HANDOVER)
            reason = self._look(settling=settling, loops=loops)
            looks -= 1
        return reason

    def _looks(self) -> int:
        """Return how often to look again: a job may be on its way from the queue to a waking worker."""
        frames = _frames_of_others()
        workers = [thread for thread in self._concerned() if thread in POOLS and thread not in self._before]
        if all(_is_counted_idle(frames.get(thread.ident or 0)) for thread in workers):
            return len(workers[:1])
        return LOOKS

    def _look(self, *, settling: bool, loops: Iterable[asyncio.AbstractEventLoop]) -> str | None:
        asked = dict.fromkeys(loops, "given")
        seen = set(self._concerned())
        frames = _frames_of_others()
        for thread in seen:
            frame = frames.get(thread.ident or 0)
            if is_idle_worker(thread, frame):
                continue
            if thread in self._before and not _runs_regions(thread):
                continue
            loop = _loop_of(_stack(frame))
            if loop is not None and loop.is_running():
                asked[loop] = thread.name
            else:
                return f"thread {thread.name!r} is at work"
        reason = self._ask(asked, settling=settling) if asked else None
        if reason is None and any(thread not in seen for thread in self._concerned()):
            return "a thread has just started"  # by one of those that have been asked
        return reason

    def _concerned(self) -> Iterator[threading.Thread]:
        aside = (threading.current_thread(), threading.main_thread())
        return (thread for thread in threading.enumerate() if thread not in aside)

    def _ask(self, loops: Mapping[asyncio.AbstractEventLoop, str], *, settling: bool) -> str | None:
        # Two that ask each other at the same time would both wait in vain.
        if not ASKING.acquire(blocking=False):
            return "another loop is looking around"
        try:
            windows = Wave(list(loops)).wait()
        finally:
            ASKING.release()
        if windows is None:
            return f"the event loop of thread {' or '.join(map(repr, loops.values()))} has something to run"
        expecting = [loops[window.loop] for window in windows if window.expects]
        if expecting and not settling:
            return f"thread {expecting[0]!r} has an event loop that waits for timers or sockets"
        return None

    def strangers(self) -> bool:
        """Return whether there are threads from before the loop: one of them may know the loop."""
        frames = _frames_of_others()
        known = (thread for thread in self._concerned() if thread in self._before)
        return any(not is_idle_worker(thread, frames.get(thread.ident or 0)) for thread in known)


def is_worker(thread: threading.Thread) -> bool:
    """Return whether the thread is a pool's, the standard library's or anyio's."""
    return thread in POOLS or hasattr(thread, "idle_workers")


def is_idle_worker(thread: threading.Thread, frame: FrameType | None) -> bool:
    """Return whether the thread is a pool's, the standard library's or anyio's, and has no job."""
    idle_workers = getattr(thread, "idle_workers", None)
    if idle_workers is not None:
        return thread in idle_workers
    jobs = POOLS.get(thread)
    return jobs is not None and jobs.empty() and frame is not None and frame.f_code is WORKER


def _is_counted_idle(frame: FrameType | None) -> bool:
    """Return whether a pool of the standard library takes all its workers for idle.

    Now and then it counts one too few.
    """
    if frame is None or frame.f_code is not WORKER:
        return False
    pool = frame.f_locals["executor_reference"]()
    return pool is not None and pool._idle_semaphore._value >= len(pool._threads)


def _frames_of_others() -> dict[int, FrameType]:
    """Return the innermost frame of every thread but this one, whose own would be tied to what it holds."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - it is documented
    del frames[threading.get_ident()]
    return frames


def _runs_regions(thread: threading.Thread) -> bool:
    """Return whether the thread is a scheduler's, by what it was started with: it may not have come to run that yet."""
    started_with = getattr(thread, "_target", None) or type(thread)
    return getattr(started_with, "__module__", None) in SCHEDULERS


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _loop_of(stack: Iterable[FrameType]) -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in a stack."""
    for frame in stack:
        if frame.f_code.co_name in RUNNING:
            owner = frame.f_locals.get("self")
            loop = getattr(owner, "_loop", None) if isinstance(owner, asyncio.Runner) else owner
            if isinstance(loop, asyncio.AbstractEventLoop):
                return loop
    return None
