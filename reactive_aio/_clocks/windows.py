"""Whether an event loop has anything to run. It is asked on the loop itself, which may be of any kind.

asyncio's own loops show the queue of their ready callbacks. uvloop does not. There a profile function listens for a few
passes of the loop, and hears every Python function that anything but the question itself runs.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any, Final

from attrs import define, field

PASSES: Final = 4
"""Passes of a loop to observe. A callback of C code alone is not seen, but the callbacks that it wakes are."""

GLANCE: Final = 0.005
"""Real seconds between two looks at a thread that does not report its end."""

LONGEST: Final = 0.25
"""Real seconds after which a loop that has not answered counts as busy."""

QUEUES: Final[dict[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]]] = {}
"""The callers that ask whether a loop is at rest. The first has its turn. A loop without callers is not in here."""


def ready_of(loop: asyncio.AbstractEventLoop) -> deque[asyncio.Handle] | None:
    """Return the ready callbacks of a loop that shows them."""
    return getattr(loop, "_ready", None)


def callback_of(handle: asyncio.Handle) -> Any:
    """Return the callback of a handle. There is no public way to get it."""
    return getattr(handle, "_callback", None)


def expects(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether an idle loop may wake up without a call: a timer, a socket, or an unknown loop."""
    timers: list[asyncio.TimerHandle] | None = getattr(loop, "_scheduled", None)
    selector: Any = getattr(loop, "_selector", None)
    if timers is None or selector is None:
        return True
    return any(not timer.cancelled() for timer in timers) or len(selector.get_map()) > 1


def _counts(handle: asyncio.Handle) -> bool:
    """Return whether a ready callback does anything but drain the pipe that woke the loop."""
    return not handle.cancelled() and getattr(callback_of(handle), "__name__", "") != "_read_from_self"


def _is_due(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a timer has run out whose callback the loop will make ready in its next pass."""
    timers: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return any(timer.when() <= loop.time() and not timer.cancelled() for timer in timers)


@define(eq=False)
class Window:
    """One look at one loop, in its thread. ``heard`` is true if anything else ran or was ready."""

    loop: asyncio.AbstractEventLoop
    closed: Callable[[Window], object]
    heard: bool = field(init=False, default=False)
    expects: bool = field(init=False, default=True)
    _left: int = field(init=False, default=PASSES)
    _previous: Any = field(init=False, default=None)

    def open(self) -> None:
        """Begin, in a callback of the loop."""
        ready = ready_of(self.loop)
        if ready is None:
            self.loop.call_soon(self._passed)
            self._listen()
        else:
            # A loop that is about to stop has nothing more to run, but its thread has.
            stopping = getattr(self.loop, "_stopping", False)
            self.heard = stopping or any(map(_counts, ready.copy())) or _is_due(self.loop)
            self._close()

    def _close(self) -> None:
        self.expects = expects(self.loop)
        self.closed(self)

    def _listen(self) -> None:
        self._previous = sys.getprofile()
        sys.setprofile(self._hear)

    def _hear(self, frame: FrameType, event: str, _: object) -> None:
        if not self.loop.is_running():
            # It has stopped before `_passed` had its turn, and may never run again: the thread goes on without this function.
            self.heard = True
            sys.setprofile(self._previous)
        elif event == "call" and frame.f_code is not Window._passed.__code__:
            self.heard = True

    def _passed(self) -> None:
        if sys.getprofile() == self._hear:
            sys.setprofile(self._previous)
        self._left -= 1
        if self._left and not self.heard:
            self.loop.call_soon(self._passed)
            self._listen()
        else:
            self._close()


class Wave:
    """Windows on several loops of other threads that are all open at one instant.

    When nothing is heard in any of them, there was an instant at which no loop had anything to run. So none can have woken another.
    """

    def __init__(self, loops: Sequence[asyncio.AbstractEventLoop]) -> None:
        self._condition = threading.Condition()
        self._loops = loops
        self._expected = len(loops)
        self._arrived = 0
        self._closed: list[Window] = []
        self._abandoned = False
        for loop in loops:
            window = Window(loop, self._close)
            try:
                loop.call_soon_threadsafe(self._arrive, window)
            except RuntimeError:  # the loop has been closed in this moment
                self._abandoned = True

    def _arrive(self, window: Window) -> None:
        """Wait, in the thread of a loop, until all of them are here."""
        with self._condition:
            self._arrived += 1
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._abandoned or self._arrived == self._expected, LONGEST)
            if self._abandoned:
                return
        window.open()

    def _close(self, window: Window) -> None:
        with self._condition:
            self._closed.append(window)
            self._condition.notify_all()

    def wait(self) -> Sequence[Window] | None:
        """Wait for the answers and return the windows, or None if one of the loops has something to run."""
        with self._condition:
            deadline = time.monotonic() + LONGEST
            while not self._decided() and time.monotonic() < deadline:
                self._condition.wait(GLANCE)  # a loop that ends does not answer
            self._abandoned = True
            self._condition.notify_all()
            done = len(self._closed) == self._expected and not any(window.heard for window in self._closed)
            return self._closed if done else None

    def _decided(self) -> bool:
        return (
            self._abandoned
            or len(self._closed) == self._expected
            or any(window.heard for window in self._closed)
            or not all(loop.is_running() for loop in self._loops)
        )


async def settle_here(busy: Callable[[], str | None], within: float) -> None:
    """Return when nothing is ready on the running loop, and no other thread works.

    Callers have their turns one after another: two that ask at the same time would hear each other without end.
    """
    loop = asyncio.get_running_loop()
    deadline = time.monotonic() + within
    queue = QUEUES.setdefault(loop, deque())
    turn = loop.create_future()
    queue.append(turn)
    try:
        if queue[0] is not turn:
            await asyncio.wait([turn], timeout=within)
            if not turn.done():
                raise TimeoutError("the loop does not settle: another caller waits for the same, and for longer")
        # This step may be a part of a callback that has more to do, which the loop does not show.
        await asyncio.sleep(0)
        await _rest(loop, busy, deadline)
    finally:
        queue.remove(turn)
        if not queue:
            del QUEUES[loop]
        elif not queue[0].done():
            queue[0].set_result(None)


def _runs_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether the running loop shows that something is ready."""
    ready = ready_of(loop)
    return ready is not None and any(map(_counts, ready.copy()))


async def _rest(loop: asyncio.AbstractEventLoop, busy: Callable[[], str | None], deadline: float) -> None:
    while True:
        # A look at the others takes milliseconds, so not for each callback that is still to run here.
        # In this order, and without a turn of the loop between: what the others did before they came to rest is
        # scheduled here when the window opens.
        reason = None if _runs_on(loop) else busy()
        answered: asyncio.Future[Window] = loop.create_future()
        Window(loop, partial(_answer, answered)).open()
        if (await answered).heard:
            reason = reason or "callbacks are scheduled again and again"
        if reason is None:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the loop does not settle: {reason}")
        await asyncio.sleep(0)


def _answer(answered: asyncio.Future[Window], window: Window) -> None:
    if not answered.done():  # the caller may have been cancelled before a window that listens has closed
        answered.set_result(window)
