"""The handover: moves made elements to the next region, while a function blocks the thread of their region.

A region gives a list when its turn is over. On a thread of its own its source may block in the middle of a list, as a
loop that polls does. Then nobody on that thread can give the elements that are there. So the loop of the next region
does, which has a timer for that. The first element of a list sets the timer. It rings a millisecond later.

A list that is filled in time is not taken apart: the first ring only notes it. The second ring hands it over, if the
region is still at it. So what is made arrives within about two milliseconds. The timer stays as long as lists come and
go.
"""

from __future__ import annotations

import threading
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, Final

from attrs import define, field

DELAY: Final = 1e-3
"""Seconds between two looks at a list."""


@define(eq=False)
class Handover:
    """Between two regions on different loops: filled on the one, looked at on the other.

    The lists are only appended to, by the region alone, so that the other thread may copy what is there.

    Invariant, while the lock is free: of an element that is held the timer knows, or the next one sets it.
    """

    _loop: AbstractEventLoop
    """Of the next region."""
    _context: Context
    """Of the next region."""
    _give: Callable[[list[Any]], None] | None
    """Passes elements to the next region, from any thread."""
    idle: list[bool] = field(init=False, factory=lambda: [True])
    """Holds something while no timer is set. A list, because its truth is the fastest test for each element."""
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _list: list[Any] | None = field(init=False, default=None)
    """The list that is being filled."""
    _handed: int = field(init=False, default=0)
    """The number of its elements that have been handed over."""
    _lists: int = field(init=False, default=0)
    """The number of lists that have been begun."""
    _noted: int = field(init=False, default=-1)
    """The number at the last ring."""

    _timer: TimerHandle | None = field(init=False, default=None)

    # -- for the region that makes the elements

    def begin(self) -> list[Any]:
        """Return a list to be filled."""
        made: list[Any] = []
        with self._lock:
            self._list, self._handed = made, 0
            self._lists += 1
        return made

    def arm(self) -> None:
        """Set the timer, after an element, if none is set."""
        self.idle.clear()
        with suppress(RuntimeError):  # the loop is closed, as the region is about to hear
            self._loop.call_soon_threadsafe(self._wind, context=self._context)

    def rest(self, made: list[Any]) -> list[Any]:
        """Return the part of a list that has not been handed over. The region emits it."""
        with self._lock:
            self._list = None
            return made[self._handed :] if self._handed else made

    def close(self) -> None:
        """Hand over nothing any more."""
        with self._lock:
            self._list = self._give = None

    # -- on the loop of the next region

    def stop(self) -> None:
        """Take nothing any more."""
        self.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wind(self) -> None:
        if self._give is not None and self._timer is None:
            self._timer = self._loop.call_later(DELAY, self._ring, context=self._context)

    def _ring(self) -> None:
        self._timer = None
        # In this order: an element that comes behind this sets the timer, and one before it is seen below.
        self.idle.append(True)
        with self._lock:
            same, self._noted = self._noted == self._lists, self._lists
            if same:
                made = self._list
                if made is not None and self._give is not None and len(made) > self._handed:
                    items = made[self._handed :]
                    self._handed += len(items)
                    self._give(items)
                return
        # Lists come and go. The timer stays: to set it from another thread costs that thread more.
        if self.idle:
            self.idle.clear()
            self._wind()
