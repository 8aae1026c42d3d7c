"""The budget of time: who works on an event loop, for how long, and the clock that measures it.

All that works on one loop shares its budget. All that want a turn wait in one queue. One callback has them take their turns one after another,
for about a millisecond in all. Then the loop has its own turn, and those who are left wait for the next callback.
Who is woken meanwhile waits behind the others. So a hundred busy flows hold the loop for no longer than one does, and each has its turn once a round.
Work that goes from one flow to another, as from a shared run to its readers, takes no turn of the loop for each list.

To measure work, call ``budgets.clock()``. A test replaces the clock here, and nowhere else.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextvars import Context
from threading import Lock
from time import perf_counter
from typing import Any, Final

from attrs import define, field

from .containers import new_deque, new_set

clock: Callable[[], float] = perf_counter
"""The seconds by which work is measured. To be called as ``budgets.clock()``, and never imported by name."""

TURN = 1e-3
"""Seconds for which turns are taken before the event loop has its own."""

SHORT = 2e-4
"""Seconds that work has which begins late in a turn."""

QUICK: Final = 50e-6
"""Seconds that some elements may take for the next ones to be twice as many, before there is a look at the clock."""

SHARES: Final = 10
"""Into how many parts a turn is divided at most. A shorter part would cost more than is done in it."""

BUDGET: Final = "_reactive_aio_budget"
"""The attribute of an event loop that holds its budget."""


@define
class Stride:
    """The number of elements between two looks at the clock. It is one at first, and doubles while they are quick.

    Where they are slow, it becomes the number that would have been quick. So a slow function, of this stage or of one
    behind it, never holds the event loop for many elements.
    """

    longest: int
    length: int = field(init=False, default=1)
    _then: float = field(init=False, default=0.0)
    """The time of the latest look."""

    def begin(self) -> int:
        """Begin to measure. Return the number of elements to take before the first look."""
        self._then = clock()
        return self.length

    def is_over(self, deadline: float) -> bool:
        """Look at the clock, and choose the number of elements before the next look. Return whether the time is up."""
        now = clock()
        taken, self._then = now - self._then, now
        self.length = min(2 * self.length, self.longest) if taken <= QUICK else int(self.length * QUICK / taken) or 1
        return now >= deadline


class Taker(ABC):
    """Something that may wait for its turn."""

    __slots__ = ()

    @abstractmethod
    def come(self) -> None:
        """Take the turn, which ends at ``until`` of the budget. Work that is left waits for another turn."""

    @abstractmethod
    def strand(self, closed: RuntimeError) -> None:
        """Give up, because the loop calls nothing any more; on any thread."""


@define(eq=False)
class Going(Taker):
    """A task that has worked for as long as it may, and waits until it may go on."""

    budget: Budget
    future: asyncio.Future[float] | None = None
    """Returns how long, if the task awaits it."""
    part: float | None = field(init=False, default=None)
    """How long the task may go on, if it was let go on before it had come to await that."""

    def come(self) -> None:
        """Let the task go on, in a step of its own, which is counted here."""
        if self.future is None:
            self.part = self.budget.lend()
        elif not self.future.done():
            self.future.set_result(self.budget.lend())

    def strand(self, closed: RuntimeError) -> None:
        """Nothing: the loop has no step for the task any more."""


def resume(waiters: deque[Any], share: float, until: float, entered: Context) -> None:
    """Let the tasks that await some futures go on, one after another, until the time is up. A turn calls this, outside of all tasks.

    A task may work for its ``share`` of seconds. A future whose wait is over is passed over.
    The turn has ``entered`` its context. A reader that goes on behind a future without its task does so in that one.
    The step of a task is made here and now, as a callback of its own would make it. It takes half the time of one: the loop
    makes no objects for it, and does not look for what else is due.
    """
    now = clock()
    while waiters:
        waiter = waiters.popleft()
        try:
            # As all of asyncio's futures have them: a list of pairs, or None.
            ((step, context),) = waiter._callbacks
        except (AttributeError, TypeError, ValueError):
            if not waiter.done():
                waiter.set_result(now + share)
        else:
            waiter.remove_done_callback(step)
            waiter.set_result(now + share)
            if context is entered:  # it can't be entered again
                step(waiter)
            else:
                context.run(step, waiter)
        now = clock()
        if now >= until:
            return


@define(eq=False)
class Later(Taker):
    """A call that waits until others have had their turns."""

    call: Callable[[None], None]
    context: Context

    def come(self) -> None:
        """Call."""
        self.context.run(self.call, None)

    def strand(self, closed: RuntimeError) -> None:
        """Nothing, as with any callback of a loop that is closed."""


@define(eq=False)
class Budget:
    """The time of one event loop, and the members that wait for a turn there."""

    loop: asyncio.AbstractEventLoop
    until: float = field(init=False, default=0.0)
    """When the turn that is running is to end; 0.0 while none is. The functions that it calls work until then too."""
    part: float = field(init=False, factory=lambda: TURN)
    """The planned length of the latest turn, which depends on how many wait."""
    _end: float = field(init=False, default=0.0)
    """When the callback that is running is to end."""
    _waiting: deque[Taker] = field(init=False, factory=new_deque)
    """Threads append to it. Only the loop takes from it."""
    _due: Lock = field(init=False, factory=Lock)
    """Held while a callback is scheduled, or running: so there is never more than one."""
    context: Context = field(init=False, factory=Context)
    """The context of the callback. It is empty, because a context that has been entered can't be entered again."""
    arrange: Callable[[deque[Taker]], int] = field(init=False, default=len)
    """Puts the waiting takers in order, and returns how many of them may have their turns now. By default all may, in the order of their arrival."""
    begun: set[Any] = field(init=False, factory=new_set)
    """The tasks and regions that have begun on the loop and have not ended. See `_runtime.host.begun`."""
    lent: float = field(init=False, default=0.0)
    """When tasks that run flows themselves are to let the event loop have a turn."""

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Budget:
        """Return the budget of a loop."""
        try:
            held: Budget = loop.__dict__[BUDGET]
        except KeyError:
            held = loop.__dict__.setdefault(BUDGET, cls(loop))  # in one step, as other threads begin regions here too
        except AttributeError:  # a loop that takes no attributes
            held = cls(loop)
        return held

    # -- those who wait

    def add(self, taker: Taker, schedule: Callable[..., object] | None = None) -> None:
        """Schedule a turn. Another thread passes ``call_soon_threadsafe``, which wakes the loop."""
        self._waiting.append(taker)
        try:
            if self._due.acquire(False):
                (schedule or self.loop.call_soon)(self._come, context=self.context)
            elif self.loop.is_closed():
                raise RuntimeError("Event loop is closed")
        except RuntimeError as closed:
            self._strand(closed)

    def post(self, taker: Taker) -> None:
        """Schedule a turn, from another thread, as `add` does, but with a callback for each call.

        A thread that posts one taker at a time has less to do: the lock is taken on the loop.
        """
        self._waiting.append(taker)
        try:
            self.loop.call_soon_threadsafe(self._arrive, context=self.context)
        except RuntimeError as closed:
            self._strand(closed)

    def _arrive(self) -> None:
        if self._due.acquire(blocking=False):
            self._come()

    def _strand(self, closed: RuntimeError) -> None:
        """Make all waiting members give up, on any thread."""
        while True:
            try:
                taker = self._waiting.popleft()
            except IndexError:  # there are no more, or another thread has taken the last
                return
            taker.strand(closed)

    def turn_now(self) -> bool:
        """Take a turn for the running task at once, if nobody waits for one and the last one is long over. Return whether it was taken."""
        now = clock()
        if now < self.lent + TURN or not self._due.acquire(blocking=False):
            return False
        # The callback comes behind the tasks that run now. No other turn is taken before it.
        self.loop.call_soon(self._come, context=self.context)
        self.lent = now + TURN
        return True

    async def turn(self) -> float:
        """Wait for a turn, in a task that has worked for as long as it may; return when that is to end."""
        future: asyncio.Future[float] = self.loop.create_future()
        self.add(Going(self, future))
        part = await future
        return clock() + part

    async def breath(self) -> float:
        """Wait for a turn as `turn` does. If the time suffices for all that wait, this takes one turn of the loop and not two."""
        if not self._due.acquire(blocking=False):
            return await self.turn()
        # The callback comes right before the task goes on, and does not wait for it: the task may never go on.
        going = Going(self)
        self._waiting.append(going)
        self.loop.call_soon(self._come, context=self.context)
        await asyncio.sleep(0)
        if going.part is None:  # others came before it, and have used up the time
            going.future = self.loop.create_future()
            part = await going.future
            return clock() + part
        now = clock()
        # Where others that came meanwhile were quick, it has the rest of their time, too.
        self.part = going.part + max(self._end - now, 0.0)
        return now + self.part

    def _come(self) -> None:
        """Run the turns of the waiting members, and of those that they wake, as long as there is time.

        The others come first in the next callback.
        """
        waiting = self._waiting
        now = clock()
        self._end = now + TURN
        try:
            left = self.arrange(waiting)
            while left:
                self.part = part = max((self._end - now) / left, TURN / SHARES)
                self.until = now + part
                waiting.popleft().come()
                now = clock()
                if now >= self._end - 1e-9:  # what has been lent in parts does not add up exactly
                    break
                left = left - 1 or self.arrange(waiting)
        finally:
            self.until = 0.0
            self._done()

    def _done(self) -> None:
        """Schedule the next callback for the waiting members, if there are any."""
        again = bool(self._waiting)
        if not again:
            self._due.release()
            # In this order: who is added while it is held is seen here.
            again = bool(self._waiting) and self._due.acquire(blocking=False)
        if again:
            try:
                self.loop.call_soon(self._come, context=self.context)
            except RuntimeError as closed:
                self._strand(closed)

    # -- time

    def lend(self) -> float:
        """Lend the running turn to code outside of the callback. Return how long it lasts."""
        self._end -= self.part
        return self.part

    def leave_rest(self) -> None:
        """Leave the rest of the callback that is running to the tasks that it wakes. The event loop comes to them behind it."""
        self.lent = max(self.lent, self._end)

    def deadline(self) -> float:
        """Return when work is to end that begins now, outside of the turns."""
        return clock() + self.part

    def moment(self) -> float:
        """Return when work that begins in the middle of a turn is to end: with the turn, but not before it has had a moment.

        Without it what comes late in a turn would be cut into single elements, each with a turn of its own.
        """
        return max(self.until, clock() + SHORT)

    def begin(self) -> float:
        """Begin a turn that has not been waited for, and return when it is to end.

        It ends by setting ``until`` back.
        """
        self.until = until = clock() + self.part
        return until
