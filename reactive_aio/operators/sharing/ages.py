"""The age of elements that are kept for later subscribers."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from attrs import define, field

from ..._core.containers import new_deque
from .delivery import soon

if TYPE_CHECKING:
    from .broadcast import Broadcast


@define(eq=False)
class Ages:
    """Makes a log forget elements of an age, by a timer of the event loop on which they are made."""

    broadcast: Broadcast
    loop: asyncio.AbstractEventLoop
    seconds: float
    _made: deque[tuple[float, int]] = field(init=False, factory=new_deque)
    """When lists are of that age, each with the number after its last element; only those in the replay."""
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)

    def add(self, behind: int) -> None:
        """Take note that the elements before this number have been made now."""
        made, first = self._made, self.broadcast.log.head.first
        while made and made[0][1] <= first:
            made.popleft()
        made.append((self.loop.time() + self.seconds, behind))
        self._wind()

    def stop(self) -> None:
        """Forget nothing any more, because no reader can come; from any thread."""
        soon(self.loop, self._stop)

    def _stop(self) -> None:
        self._made.clear()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _wind(self) -> None:
        if self._made and self._timer is None:
            due = self._made[0][0]
            self._timer = self.loop.call_at(due, self._forget, due)

    def _forget(self, due: float) -> None:
        """Forget the elements that are due at this time.

        No look at the clock: that of uvloop counts milliseconds, and its callbacks may come half of one early. Nor is a
        time computed back. A float may come out less than it was, and the same timer would be set for ever.
        """
        timer, self._timer = self._timer, None
        if timer is None:
            return
        log, made = self.broadcast.log, self._made
        head = log.head  # it is let go of behind the lock
        with self.broadcast.mutex:
            while made and made[0][0] <= due:
                log.forget(made.popleft()[1])
        del head
        self._wind()
