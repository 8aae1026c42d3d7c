"""Turns on an event loop: the one door through which anything reaches a region.

What comes from another thread (a request, a cancel, a chunk from the region upstream) goes through one queue and
wakes the loop once, however much has gathered; none is needed while the region is awake.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextvars import Context
from threading import get_ident
from typing import Any

from ..errors import SchedulerClosedError

Event = tuple[Callable[[Any], None], Any]


class Turns(ABC):
    """What works in turns on one event loop, and can be reached from any thread."""

    __slots__ = ("_awake", "_events", "_ident", "context", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, context: Context) -> None:
        self.loop = loop
        self.context = context
        # Foreign threads append, the loop's thread takes; whoever finds `awake` false wakes the loop.
        self._events: deque[Event] = deque()  # bounded by demand: chunks, and requests until they are summed up
        self._awake = False
        self._ident = 0  # of the loop's thread, once it is known

    @abstractmethod
    def _work(self) -> bool:
        """Do what there is to do; True if the time is up before it is done."""

    @abstractmethod
    def lost(self, error: BaseException) -> None:
        """Give up: there will be no turns any more."""

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Have ``handle(value)`` called on the loop; any number of posts cost one wake-up."""
        self._events.append((handle, value))
        if not self._awake:
            self._wake()

    def _wake(self) -> None:
        """Have a turn come, from any thread, where none is due."""
        self._awake = True
        try:
            if get_ident() == self._ident:
                self.loop.call_soon(self.turn, context=self.context)
            else:
                self.loop.call_soon_threadsafe(self.turn, context=self.context)
        except RuntimeError as closed:
            error = SchedulerClosedError(f"the event loop of a region was closed in the middle: {self.loop!r}")
            error.__cause__ = closed
            self.lost(error)

    def turn(self) -> None:
        """The scheduled callback: take what has been posted, then work."""
        events = self._events
        try:
            while True:
                while events:
                    handle, value = events.popleft()
                    handle(value)
                if self._work():
                    self.loop.call_soon(self.turn, context=self.context)
                    return
                # In this order: a post that finds `awake` still true is seen by the check that follows.
                self._awake = False
                if not events:
                    return
                self._awake = True
        except BaseException:
            # An interrupt on its way out through the loop; the cancel that follows it must find a way in.
            self._awake = False
            raise
