"""Delivery: how the readers of a log hear on their event loops that there is something to take."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING

from attrs import Factory, define, field

from ..._core import budgets
from ..._core.budgets import Budget, Taker
from ...schedulers.base import Attachment

if TYPE_CHECKING:
    from .broadcast import Broadcast
    from .reader import Reader


@define(eq=False)
class Delivery(Taker):
    """The readers of one log that are on one event loop: they share one turn, however many there are.

    `note` is called with the lock of the log, from any thread. All else happens on the loop.
    """

    broadcast: Broadcast
    loop: asyncio.AbstractEventLoop
    readers: dict[Reader, None] = field(init=False, factory=dict["Reader", None])
    """All that are there."""
    due: deque[Reader] = field(init=False, factory=deque["Reader"])
    """Those for whom there is something, in the order in which they are told."""
    watch: Attachment | None = field(init=False, default=None)
    """Tells that the event loop that makes the elements has ended, if that is another one."""
    posted: bool = field(init=False, default=False)
    """Whether a turn is to come, or has."""
    _ident: int = field(init=False, factory=get_ident)
    _budget: Budget = field(init=False, default=Factory(lambda self: Budget.of(self.loop), takes_self=True))

    def note(self, reader: Reader) -> bool:
        """Have a reader told; True if `post` is to be called when the lock has been released."""
        if not reader.is_due:
            reader.is_due = True
            self.due.append(reader)
        if self.posted:
            return False
        self.posted = True
        return True

    def note_all(self, *, end: bool = False) -> bool:
        """Have those told for whom there is something, or with ``end`` all of them, as `note` does."""
        due = self.due
        for reader in self.readers:  # by the thousand
            if not reader.is_due and (end or reader.cursor.is_due):
                reader.is_due = True
                due.append(reader)
        if self.posted or not due:
            return False
        self.posted = True
        return True

    def post(self) -> None:
        """Have a turn come, from any thread and without the lock."""
        self._budget.add(self, None if get_ident() == self._ident else self.loop.call_soon_threadsafe)

    def come(self) -> None:
        """Tell readers, each in its own context, until the time is up; the others come behind whatever else waits for a turn."""
        until = self._budget.until
        due = self.due
        while due:
            reader = due.popleft()
            reader.tell()
            if budgets.clock() >= until:
                break
        with self.broadcast.mutex:
            again = self.posted = bool(due)
        if again:
            self.post()

    def send(self, call: Callable[..., object], *args: object) -> None:
        """Have something called on the loop, from any thread and without the lock."""
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
        for reader in tuple(self.readers):
            reader.inlet.post(_nothing, None)
            self.broadcast.leave(reader)


def soon(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: object) -> None:
    """Have something called on a loop, from any thread; nothing more where the loop has been closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *args)


def _released(join: Callable[[], None] | None = None) -> None:
    """Nothing waits for the end of a look-out."""


def _nothing(_: None) -> None:
    """An event that only wakes."""
