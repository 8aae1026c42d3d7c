"""The age of elements that are kept for later subscribers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from attrs import Factory, define, field

from ..._core.containers import new_deque
from ...schedulers.clock import has_virtual_time
from .broadcast import Then, do
from .delivery import soon

if TYPE_CHECKING:
    from .broadcast import Broadcast


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the clock by which the ages of elements count, for any thread.

    That is virtual time, if the loop has it. Another loop's own clock may stand still while the loop is busy or closed.
    """
    return loop.time if has_virtual_time(loop) else time.monotonic


@define(eq=False)
class Ages:
    """Makes a log forget elements of an age.

    It does so when a subscriber comes, on any thread, by a clock that goes on whatever the event loops do. A timer of
    the loop on which they are made does it too, only to free memory.
    """

    broadcast: Broadcast
    loop: asyncio.AbstractEventLoop
    seconds: float
    _clock: Callable[[], float] = field(init=False, default=Factory(lambda self: clock_of(self.loop), takes_self=True))
    _made: deque[tuple[float, float, int]] = field(init=False, factory=new_deque)
    """When lists are of that age, by the clock and by the loop's, with the number after their last element.

    Only those in the replay. It changes with the lock.
    """
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)

    def add(self, behind: int) -> None:
        """Take note that the elements before this number have been made now."""
        with self.broadcast.mutex:
            made, first = self._made, self.broadcast.log.head.first
            while made and made[0][2] <= first:
                made.popleft()
            made.append((self._clock() + self.seconds, self.loop.time() + self.seconds, behind))
        self._wind()

    def look(self) -> Iterable[Then]:
        """Forget the elements that are of that age now; with the lock. The caller holds the log's head."""
        made, now, behind = self._made, self._clock(), 0
        while made and made[0][0] <= now:
            behind = made.popleft()[2]
        return self.broadcast.forget(behind)

    def stop(self) -> None:
        """Forget nothing any more, because no reader can come; from any thread."""
        soon(self.loop, self._stop)

    # -- on the loop

    def _stop(self) -> None:
        with self.broadcast.mutex:
            self._made.clear()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _wind(self) -> None:
        with self.broadcast.mutex:
            due = self._made[0][1] if self._made and self._timer is None else None
        if due is not None:
            self._timer = self.loop.call_at(due, self._forget, due)

    def _forget(self, due: float) -> None:
        """Forget the elements that are due at this time.

        No look at the clock: that of uvloop counts milliseconds, and its callbacks may come half of one early. Nor is a
        time computed back. A float may come out less than it was, and the same timer would be set for ever.
        """
        timer, self._timer = self._timer, None
        if timer is None:
            return
        head = self.broadcast.log.head  # it is let go of behind the lock
        with self.broadcast.mutex:
            made, behind = self._made, 0
            while made and made[0][1] <= due:
                behind = made.popleft()[2]
            calls = tuple(self.broadcast.forget(behind))
        del head
        do(calls)
        self._wind()
