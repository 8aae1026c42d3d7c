"""The scheduler of an event loop that other code runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Final

from attrs import define, field, frozen

from .._core.here import Here
from ..errors import SchedulerClosedError
from .base import Attachment, Released, nobody

WATCH: Final = 0.25
"""Seconds between two looks at a loop of other code, which does not report its end."""


@define(eq=False)
class _Watched:
    """A region's hold on another loop, with a timer on the subscriber's loop that checks it."""

    loop: asyncio.AbstractEventLoop
    lost: Callable[[BaseException], None]
    watcher: asyncio.AbstractEventLoop | None
    timer: asyncio.TimerHandle | None = field(init=False, default=None)
    detached: bool = field(init=False, default=False)

    def watch(self) -> None:
        """Check whether the loop still runs, now and after a while."""
        if self.detached or self.watcher is None:
            return
        if self.loop.is_closed() or not self.loop.is_running():
            self.lost(_closed(self.loop))
        else:
            self.timer = self.watcher.call_later(WATCH, self.watch)

    def detach(self, released: Released) -> None:
        """Stop looking. Nothing else was started."""
        self.detached = True
        self.lost = nobody  # who holds this, and would be held by it
        timer, self.timer = self.timer, None
        if timer is not None and self.watcher is not None:
            # The watcher may be closed at any moment; so is its timer then.
            with suppress(RuntimeError):
                self.watcher.call_soon_threadsafe(timer.cancel)
        released()


def _closed(loop: asyncio.AbstractEventLoop) -> SchedulerClosedError:
    state = "is closed" if loop.is_closed() else "is not running"
    return SchedulerClosedError(f"the event loop of a region {state}: {loop!r}")


@frozen
class LoopScheduler(Here):
    """An event loop that other code runs."""

    STAYS: ClassVar[str] = "a scheduler can't be pickled: its event loop belongs to this process"

    target: asyncio.AbstractEventLoop

    @property
    def name(self) -> str:
        """How plans show the place."""
        return f"loop({type(self.target).__name__} at {id(self.target):#x})"

    def is_here(self) -> bool:
        """Return whether the place is the running event loop."""
        try:
            return asyncio.get_running_loop() is self.target
        except RuntimeError:
            return False

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the loop, and check it from the subscriber's."""
        if self.target.is_closed() or not self.target.is_running():
            raise _closed(self.target)
        try:
            watcher = asyncio.get_running_loop()
        except RuntimeError:
            watcher = None
        attachment = _Watched(self.target, lost, None if watcher is self.target else watcher)
        attachment.watch()
        return attachment


def loop(a_loop: asyncio.AbstractEventLoop) -> LoopScheduler:
    """Run the region on ``a_loop``, which other code runs on another thread.

    The loop must be running when the flow is subscribed to, else the flow ends with SchedulerClosedError. The same
    happens within a second when the loop stops or is closed meanwhile. (Reactor:
    ``Schedulers.fromExecutor``.)
    """
    if not isinstance(a_loop, asyncio.AbstractEventLoop):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"loop() takes an event loop, not {type(a_loop).__name__}")
    return LoopScheduler(a_loop)
