"""The serialised drain: however many callers ask for it, on any thread, one loop does the work."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from attrs import Factory, define, field

from .._core import budgets
from .._core.budgets import Budget, Later
from .._plan.source import Feed


@define(eq=False)
class Drain(ABC):
    """Works by steps, one after another and never one inside another.

    A call from inside a step only leaves a note, and the loop that is at work goes on for it. So the stack does not
    grow. When the time is up, after one step at least, the rest waits for a turn of the event loop.
    """

    inlet: Feed[Any]
    budget: Budget = field(init=False, default=Factory(lambda self: Budget.of(self.inlet.loop), takes_self=True))
    """The time of its event loop."""
    busy: bool = field(init=False, default=False)
    """Whether the loop is at work."""
    _noted: bool = field(init=False, default=False)
    _due: bool = field(init=False, default=False)

    @property
    def idle(self) -> bool:
        """Whether it may work now: it is not at work, and no failure is being handled below on the stack.

        Python would make that failure the context of whatever fails in the steps.
        """
        return not self.busy and sys.exception() is None

    @abstractmethod
    def step(self) -> bool:
        """Do a piece of work. Return False if there is none for now."""

    def go(self) -> None:
        """Work now, or have the loop that is at work go on."""
        self._noted = True
        if self.busy:
            return
        if self.idle:
            self._go_on(None)
        else:
            self.later()  # see `idle`

    def work(self, piece: Callable[[], None]) -> None:
        """Do a piece of work in the place of a step; to be called where it is `idle`."""
        self.busy = True
        try:
            piece()
        finally:
            self.busy = False
        if self._noted:
            self.go()

    def later(self) -> None:
        """Work in an event, or have the loop that is at work go on: a region that asks is in the middle of its turn."""
        self._noted = True
        if not self.busy and not self._due:
            self._due = True
            self.inlet.post(self._turn, None)

    def _turn(self, _: None) -> None:
        self._due = False
        if not self.busy:
            self._go_on(None)

    def _go_on(self, _: None) -> None:
        self.busy = True
        budget = self.budget
        outer = budget.until
        if outer:
            until = budget.moment()
        else:
            until = budget.until = budgets.clock() + budget.part
        try:
            while self._noted:
                self._noted = False
                if self.step():
                    self._noted = True
                if self._noted and budgets.clock() >= until:
                    break
        finally:
            self.busy = False
            budget.until = outer
        if self._noted and not self._due:
            self._due = True
            self.next_part(self._turn)

    def next_part(self, call: Callable[[None], None]) -> None:
        """Go on with work for which the time was up, when the others on the event loop have worked."""
        self.budget.add(Later(call, self.inlet.context))

    def next_turn(self, call: Callable[[None], None]) -> None:
        """Call a function after the other callbacks of the event loop. An event does not wait for those."""
        self.inlet.loop.call_soon(call, None, context=self.inlet.context)
