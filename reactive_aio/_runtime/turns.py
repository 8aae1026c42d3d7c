"""Turns on an event loop: the one door through which anything reaches a region.

Calls from another thread (a request, a cancel, a chunk from the region upstream) go through one queue and wake the loop
once, however much has gathered. None is needed while the region is awake. Nor is one needed between regions of one
subscription on one loop, those of inner flows among them. They are a company: its members take their turns one after
another, for as long as one turn lasts.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from contextvars import Context
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any

from attrs import Factory, define, field

from .._core import budgets
from .._core.budgets import Budget, Taker
from .._core.containers import new_deque
from .._core.guard import FAILURES
from ..errors import SchedulerClosedError
from ..hooks import drop_error

Event = tuple[Callable[[Any], None], Any]


@define(eq=False)
class Company(Taker):
    """Regions of one subscription that share an event loop. All of it is confined to that loop's thread.

    However many of them wait for their turns, to the budget of the loop they are one. Whom a member wakes has its turn in the
    same callback.
    """

    loop: asyncio.AbstractEventLoop
    budget: Budget = field(init=False, default=Factory(lambda self: Budget.of(self.loop), takes_self=True))
    waiting: deque[Turns] = field(init=False, factory=new_deque)
    """The members that wait for their turns."""
    _due: bool = field(init=False, default=False)
    """Whether they wait in the budget, or are having their turns."""

    def add(self, member: Turns) -> None:
        """Schedule a turn of a member."""
        self.waiting.append(member)
        if not self._due:
            self._due = True
            self.budget.add(self)

    def meet(self, first: Turns) -> None:
        """Let a member take its turn, and then those that wait or that it has woken."""
        self.waiting.appendleft(first)
        self._meet()

    def serve(self, member: Turns, ask: Callable[[int], bool], n: int) -> None:
        """Call ``ask(n)`` for a member in the place of its turn, which follows if that returns True. Then the others take theirs."""
        due, self._due = self._due, True
        try:
            more = member.context.run(ask, n)
        finally:
            self._due = due
        if more:
            self.meet(member)
        elif self.waiting:
            self._meet()

    def come(self) -> None:
        """Let the waiting members take their turns, and those that they wake."""
        self._due = False
        self._meet()

    def _meet(self) -> None:
        waiting, budget = self.waiting, self.budget
        outer, due = budget.until, self._due
        self._due = True
        try:
            until = outer or budget.begin()
            while waiting:
                member = waiting.popleft()
                member.context.run(member.take_turn)
                if budgets.clock() >= until:
                    break
        finally:
            budget.until = outer
            self._due = due
            if waiting and not due:
                self._due = True
                budget.add(self)

    def strand(self, closed: RuntimeError) -> None:
        """Give up, each of them."""
        self._due = False
        while self.waiting:
            self.waiting.popleft().strand(closed)


class Turns(Taker):
    """An object that works in turns on one event loop, and can be reached from any thread."""

    __slots__ = ("_awake", "_events", "_gone", "_ident", "_posted", "budget", "company", "context", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, context: Context) -> None:
        self.loop = loop
        self.budget = Budget.of(loop)
        self.context = context
        # Foreign threads append, the loop's thread takes; the one that finds `awake` false wakes the loop.
        # A queue of a small kind: a deque takes most of a kilobyte while it is empty, and most are.
        self._events: SimpleQueue[Event] = (
            SimpleQueue()
        )  # bounded by demand: chunks, and requests until they are summed up
        # Whether there may be events: set behind each, and cleared before they are taken.
        self._posted = False
        self._awake = False
        self._ident = 0  # of the loop's thread, once it is known
        self._gone: BaseException | None = None  # why there are no turns any more
        self.company: Company | None = None

    @abstractmethod
    def _work(self) -> bool:
        """Do what there is to do; True if the time is up before it is done."""

    @abstractmethod
    def broken(self, error: BaseException) -> None:
        """Fail with an exception that left a turn."""

    @abstractmethod
    def lost(self, error: BaseException) -> None:
        """Give up: there will be no turns any more."""

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Call ``handle(value)`` on the loop. Any number of posts cost one wake-up."""
        self._events.put((handle, value))
        self._posted = True
        if self._awake:
            return
        if self._gone is None and get_ident() != self._ident:
            # As `_wake`, without its call: each list and each request that crosses threads comes by here.
            self._awake = True
            self.budget.add(self, self.loop.call_soon_threadsafe)
        else:
            self._wake()

    def _wake(self) -> None:
        """Schedule a turn, from any thread, if none is due."""
        self._awake = True
        if get_ident() == self._ident:
            self._wake_here()
        elif self._gone is not None:
            self.give_up(self._gone)
        else:
            self.budget.add(self, self.loop.call_soon_threadsafe)

    def _wake_here(self) -> None:
        """Schedule a turn, on the loop's thread."""
        if self._gone is not None:
            self.give_up(self._gone)
        elif self.company is None:
            self.budget.add(self)
        else:
            self.company.add(self)

    def come(self) -> None:
        """Take a turn, and let the members of the company take theirs."""
        if self.company is None:
            self.context.run(self.take_turn)
        else:
            self.company.meet(self)

    def strand(self, closed: RuntimeError) -> None:
        """Give up, because the loop takes no callback any more."""
        error = SchedulerClosedError(f"the event loop of a region was closed while the region ran: {self.loop!r}")
        error.__cause__ = closed
        self.give_up(error)

    def give_up(self, error: BaseException) -> None:
        """Handle what is left, because there will be no more turns; from any thread, and again for later posts."""
        self._gone = error
        # A copy, since another thread may be in the context itself.
        self.context.copy().run(self._end_without_turns, error)

    def _end_without_turns(self, error: BaseException) -> None:
        try:
            self.lost(error)
        except FAILURES as another:
            drop_error(another)
        while True:
            self._let_go()
            # In this order, as in `take_turn`. Who posts from now on comes here again.
            self._awake = False
            if self._events.empty():
                return
            self._awake = True

    def _let_go(self) -> None:
        """Handle events that were posted too late, on any thread. They may hold a subscription to cancel, or a failure to report."""
        while True:
            try:
                handle, value = self._events.get_nowait()
            except Empty:  # there are no more, or another thread has taken the last
                return
            try:
                handle(value)
            except FAILURES as error:
                drop_error(error)

    def take_turn(self) -> None:
        """Handle the posts, then work. The rest waits for the next turn when the time is up."""
        events, budget = self._events, self.budget
        outer, late = budget.until, False
        until = outer or budget.begin()
        try:
            while True:
                if self._posted:
                    self._posted = False
                    while not late and not events.empty():
                        handle, value = events.get_nowait()
                        handle(value)
                        # Another thread may post as fast as they are taken here.
                        late = budgets.clock() >= until
                    if late:
                        self._posted = True
                if self._work() or late:
                    self._wake_here()
                    return
                # In this order: a post that finds `awake` still true is seen by the check that follows.
                self._awake = False
                if not self._posted:
                    return
                self._awake = True
        except FAILURES as error:
            # The net: every exception, from any code, ends the flow, and the loop goes on.
            self._awake = False
            if not events.empty():  # never cleared here: another thread may have set it by now
                self._posted = True
            self.caught(error)
        finally:
            budget.until = outer

    def caught(self, error: BaseException) -> None:
        """Fail with an exception that left a turn, or a call in place of a turn."""
        try:
            self.broken(error)
        except FAILURES as another:
            drop_error(another)
        if not self._awake and self._posted:
            self._wake()
