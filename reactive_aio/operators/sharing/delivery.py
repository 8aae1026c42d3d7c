"""Delivery: notifies the readers of a log, on their event loops, that there are elements."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Final

from attrs import Factory, define, field

from ..._core import budgets
from ..._core.budgets import Budget, Taker
from ..._core.containers import new_deque, new_dict, new_list
from ...schedulers.base import Attachment

if TYPE_CHECKING:
    from .broadcast import Broadcast
    from .log import Cursor
    from .reader import Reader, ReaderChunk

AT_ONCE: Final = 64
"""For how many readers is taken at most while the lock is held."""


@define(eq=False)
class Waking(Taker):
    """The tasks of one event loop that wait and may go on: they share one turn, however many there are."""

    broadcast: Broadcast
    budget: Budget
    waiters: deque[asyncio.Future[float]] = field(init=False, factory=new_deque)
    """Each wakes a task, and says when the event loop is to have a turn."""
    posted: bool = field(init=False, default=False)
    """Whether the turn is to come, or is running."""
    asking: list[Reader] | None = field(init=False, default=None)
    """In a turn: the readers whose tasks wait again. Each requests one element at the end of the turn, under one lock."""

    def add(self, waiter: asyncio.Future[float]) -> None:
        """Let a task go on, in a turn; on the loop."""
        self.waiters.append(waiter)
        if not self.posted:
            self.post()

    def post(self) -> None:
        """Schedule the turn."""
        self.posted = True
        self.budget.add(self)

    def come(self) -> None:
        """Let the tasks go on, one after another, until the time is up."""
        waiters, budget = self.waiters, self.budget
        until, budget.until = budget.until, 0.0  # for what they begin this is no turn
        asking = self.asking = []
        try:
            share = budgets.TURN / max(len(waiters), budgets.SHARES)
            budgets.resume(waiters, share, until, budget.context)
        finally:  # a task may end the event loop by a KeyboardInterrupt
            self.asking = None
            self.posted = bool(waiters)
            if waiters:
                budget.add(self)
            if asking:
                self.broadcast.want_next(asking)

    def strand(self, closed: RuntimeError) -> None:
        """Nothing: the loop has no step for a task any more."""


@define(eq=False)
class Delivery(Taker):
    """The readers of one log that are on one event loop: they share one turn, however many there are.

    `note` is called with the lock of the log, from any thread. All else happens on the loop.
    """

    broadcast: Broadcast
    loop: asyncio.AbstractEventLoop
    readers: dict[Reader, Cursor] = field(init=False, factory=new_dict)
    """All readers, with their places."""
    due: list[Reader] = field(init=False, factory=new_list)
    """Readers with demand for elements that were there, and readers found due since the latest news."""
    news: bool = field(init=False, default=False)
    """Whether the log has grown since the last check for due readers."""
    taken: deque[ReaderChunk] = field(init=False, factory=new_deque)
    """Elements and ends that have been taken and not passed on yet. A region that has ended discards its elements."""
    watch: Attachment | None = field(init=False, default=None)
    """Called when the event loop that makes the elements has ended, if that is another one."""
    posted: bool = field(init=False, default=False)
    """Whether a turn is to come."""
    ident: int = field(init=False, factory=get_ident)
    """Of the thread of the loop."""
    budget: Budget = field(init=False, default=Factory(lambda self: Budget.of(self.loop), takes_self=True))
    waking: Waking = field(
        init=False, default=Factory(lambda self: Waking(self.broadcast, self.budget), takes_self=True)
    )

    def note(self, reader: Reader) -> bool:
        """Notify a reader. Return True if `post` has to be called when the lock has been released."""
        if not reader.is_due:
            reader.is_due = True
            self.due.append(reader)
        if self.posted:
            return False
        self.posted = True
        return True

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for a turn, and this is the thread of the event loop."""
        return not self.posted and get_ident() == self.ident

    def summon(self) -> list[Reader]:
        """Return the readers that are due, at most `AT_ONCE` of them.

        A turn comes again where there are more. With the lock, on the loop.
        """
        due = self.due
        if self.news:
            self.news = False
            ended = self.broadcast.log.ended
            for reader, cursor in self.readers.items():  # by the thousand
                if not reader.is_due and (ended or cursor.goal > cursor.at):
                    reader.is_due = True
                    due.append(reader)
        self.due = due[AT_ONCE:]
        self.posted = bool(self.due)
        return due[:AT_ONCE]

    def put_off(self) -> bool:
        """Schedule a turn for the taken elements, as `note` does; on the loop, with the lock."""
        posted, self.posted = self.posted, True
        return not posted

    def post(self) -> None:
        """Schedule a turn, from any thread and without the lock."""
        if get_ident() == self.ident:
            self.budget.add(self)
        else:
            self.budget.post(self)

    def come(self) -> None:
        """Pass readers the elements that are there, in a turn. The tasks that wait for them go on in it.

        So tasks that the end of a turn has parted come together again. Else the source would make the next element for
        some of them before the others have had this one, element after element.
        """
        again = bool(self.taken)  # others may have become due behind these
        if not again:
            taken, again = self.broadcast.take_due(self)
            self.taken.extend(taken)
        waking = self.waking
        posted, waking.posted = waking.posted, True  # no turn of its own
        try:
            self.hand_out(again=again)
        finally:
            if not posted:
                waking.posted = False
                if waking.waiters:
                    waking.come()

    def hand_out(self, *, again: bool = False) -> None:
        """Pass readers the elements that were taken, each in its own context, until the time is up.

        The rest comes behind whatever else waits for a turn, which is posted then or if it is to come ``again``.
        """
        taken, clock, until = self.taken, budgets.clock, self.budget.until
        while taken:
            reader, items, end = taken.popleft()
            if end is None:
                reader.take_in(items)
            else:
                reader.context.run(reader.give, items, end)
            if clock() >= until:
                break
        if again or (taken and self.broadcast.put_off(self)):
            self.post()

    def send(self, call: Callable[..., object], *args: object) -> None:
        """Call something on the loop, from any thread and without the lock."""
        try:
            self.loop.call_soon_threadsafe(call, *args)
        except RuntimeError as closed:
            self.strand(closed)

    def unwatch(self) -> None:
        """Look after that loop no more, as no reader is left here; from any thread."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.detach(_released)

    def strand(self, closed: RuntimeError) -> None:
        """Count all as gone, since their loop has been closed; their regions find that out by an event that can't be posted."""
        for reader, items, end in self.taken:
            reader.inlet.post(partial(reader.give, items), end)
        self.taken.clear()
        for reader in tuple(self.readers):
            reader.inlet.post(_nothing, None)
            self.broadcast.leave(reader)


def soon(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: object) -> None:
    """Call something on a loop, from any thread. Do nothing if the loop has been closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *args)


def _released(join: Callable[[], None] | None = None) -> None:
    """Nothing waits for the end of a look-out."""


def _nothing(_: None) -> None:
    """An event that only wakes."""
