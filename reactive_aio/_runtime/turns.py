"""Turns on an event loop: the one door through which anything reaches a region.

What comes from another thread (a request, a cancel, a chunk from the region upstream) goes through one queue and
wakes the loop once, however much has gathered; none is needed while the region is awake. Nor is one needed between
regions of one subscription on one loop, those of inner flows among them: they are a company, whose members take their
turns one after another in one callback, for as long as that is short.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextvars import Context
from threading import get_ident
from typing import Any

from attrs import Factory, define, field

from .._core import budgets
from .._core.budgets import Budget
from .._core.guard import FAILURES
from ..errors import SchedulerClosedError
from ..hooks import drop_error

Event = tuple[Callable[[Any], None], Any]


@define(eq=False)
class Company:
    """Regions of one subscription that share an event loop; all of it is confined to that loop's thread.

    However many of them wait for their turns, one callback is scheduled. So to the budget of the loop they are one.
    """

    loop: asyncio.AbstractEventLoop
    budget: Budget = field(init=False, default=Factory(lambda self: Budget.of(self.loop), takes_self=True))
    waiting: deque[Turns] = field(init=False, factory=deque["Turns"])
    """The members whose turn comes in the callback that is running, or in the next."""
    meeting: bool = field(init=False, default=False)
    """Whether a member's callback is running."""
    due: bool = field(init=False, default=False)
    """Whether a callback is scheduled for those that wait."""
    context: Context = field(init=False, factory=Context)
    """The context of the callbacks: nobody's, since a context that has been entered can't be entered again."""

    def add(self, member: Turns) -> None:
        """Have a turn of a member come, while none of them has its own: in the next callback."""
        self.waiting.append(member)
        if not self.due:
            self._schedule()

    def _schedule(self) -> None:
        self.due = True
        self.budget.waiting.add(self)
        try:
            self.loop.call_soon(self._come, context=self.context)
        except RuntimeError as closed:
            self.due = False
            while self.waiting:
                self.waiting.popleft().strand(closed)

    def _come(self) -> None:
        self.due = False
        if self.waiting:
            self.meet(self.waiting.popleft())
        else:
            self.budget.waiting.discard(self)

    def meet(self, first: Turns) -> None:
        """Have a member take its turn, and then those that wait or that it has woken."""
        waiting, budget = self.waiting, self.budget
        outer = budget.until
        self.meeting = True
        try:
            if not outer:  # else a consumer is run by hand, in the middle of another flow's turn
                budget.begin(self)
            first.context.run(first.take_turn)
            while waiting and budgets.clock() < budget.short:
                member = waiting.popleft()
                member.context.run(member.take_turn)
        finally:
            self.meeting = False
            budget.until = outer
            if waiting and not self.due:
                self._schedule()


class Turns(ABC):
    """What works in turns on one event loop, and can be reached from any thread."""

    __slots__ = ("_awake", "_events", "_gone", "_ident", "budget", "company", "context", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, context: Context) -> None:
        self.loop = loop
        self.budget = Budget.of(loop)
        self.context = context
        # Foreign threads append, the loop's thread takes; whoever finds `awake` false wakes the loop.
        self._events: deque[Event] = deque()  # bounded by demand: chunks, and requests until they are summed up
        self._awake = False
        self._ident = 0  # of the loop's thread, once it is known
        self._gone: BaseException | None = None  # why there are no turns any more
        self.company: Company | None = None

    @abstractmethod
    def _work(self) -> bool:
        """Do what there is to do; True if the time is up before it is done."""

    @abstractmethod
    def broken(self, error: BaseException) -> None:
        """Fail with what has left a turn."""

    @abstractmethod
    def lost(self, error: BaseException) -> None:
        """Give up: there will be no turns any more."""

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Have ``handle(value)`` called on the loop; any number of posts cost one wake-up."""
        self._events.append((handle, value))
        if not self._awake:
            self._wake()

    def hand(self, handle: Callable[[Any], None], value: Any) -> None:
        """As `post`, from one who never calls in the middle of a turn of this; on the loop ``handle`` runs at once.

        But not before what has been posted: a turn whose time was up may have left some of that.
        """
        if get_ident() != self._ident or self._events:
            self.post(handle, value)
            return
        handle(value)
        if not self._awake:
            self._awake = True
            self._wake_here()

    def _wake(self) -> None:
        """Have a turn come, from any thread, where none is due."""
        self._awake = True
        if get_ident() == self._ident:
            self._wake_here()
        else:
            self._schedule_by(self.loop.call_soon_threadsafe)

    def _wake_here(self) -> None:
        """Have a turn come, on the loop's thread."""
        company = self.company
        if company is None:
            self._schedule_by(self.loop.call_soon)
        elif company.meeting:
            company.waiting.append(self)
        else:
            company.add(self)

    def _schedule_by(self, call: Callable[..., object]) -> None:
        if self._gone is not None:
            self.give_up(self._gone)
            return
        try:
            if self.company is None:
                self.budget.waiting.add(self)
                call(self.take_turn, context=self.context)
            else:
                self.budget.waiting.add(self.company)
                call(self.meet, context=self.company.context)
        except RuntimeError as closed:
            self.strand(closed)

    def strand(self, closed: RuntimeError) -> None:
        """Give up, because the loop takes no callback any more."""
        self.budget.waiting.discard(self)
        error = SchedulerClosedError(f"the event loop of a region was closed in the middle: {self.loop!r}")
        error.__cause__ = closed
        self.give_up(error)

    def give_up(self, error: BaseException) -> None:
        """See to what is left, as there will be no turns any more; from any thread, and again for all that is posted later."""
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
            if not self._events:
                return
            self._awake = True

    def _let_go(self) -> None:
        """Handle what was posted too late, on whatever thread: it may hold what is to be cancelled, or a failure to be told."""
        while True:
            try:
                handle, value = self._events.popleft()
            except IndexError:  # there are no more, or another thread has taken the last
                return
            try:
                handle(value)
            except FAILURES as error:
                drop_error(error)

    def meet(self) -> None:
        """The callback that another thread has scheduled for a member of a company."""
        assert self.company is not None
        self.company.meet(self)

    def take_turn(self) -> None:
        """Take what has been posted, then work; what is left when the time is up waits for the next turn."""
        events, budget = self._events, self.budget
        outer, late = budget.until, False
        until = outer or budget.begin(self)
        try:
            while True:
                while events and not late:
                    handle, value = events.popleft()
                    handle(value)
                    # Another thread may post as fast as they are taken here.
                    late = budgets.clock() >= until
                if self._work() or late:
                    self._wake_here()
                    return
                # In this order: a post that finds `awake` still true is seen by the check that follows.
                self._awake = False
                if not events:
                    return
                self._awake = True
        except FAILURES as error:
            # The net: whatever it is, and whoever has raised it, the flow ends with it, and the loop goes on.
            self._awake = False
            self.caught(error)
        finally:
            budget.until = outer

    def caught(self, error: BaseException) -> None:
        """Fail with what has left a turn, or a call that takes the place of one."""
        try:
            self.broken(error)
        except FAILURES as another:
            drop_error(another)
        if self._events and not self._awake:
            self._wake()
