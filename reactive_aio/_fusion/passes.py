"""The life of a region in passes: one automaton, driven by the event loop, by workers and by Spark's tasks.

::

    STARTING ──────► READING ──────────────► FINISHING ──────► OVER
    the stages give  passes over stretches   the stages give   nothing
    what comes       of input                what they still   follows
    before input                             hold

A pass may be suspended, for want of demand or time, and is gone on with later. A stage may also end it because its time is
up: `rest` goes on with the stages before it, which may be between several results for one element. READING ends when the
input has ended, or when a stage needs no more of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import Enum, auto
from itertools import islice
from math import inf
from typing import Any, Final, Literal

from .fuse import Pace


class InputBroken(BaseException):
    """Raised by the input of a region where it ends in the middle: what drives the passes takes it, and no stage may."""


class Phase(Enum):
    """The result of the next pass of a region."""

    STARTING = auto()
    READING = auto()
    FINISHING = auto()
    OVER = auto()


# By names of the module: to look one up on the class takes Python far longer, and each list asks.
STARTING: Final[Literal[Phase.STARTING]] = Phase.STARTING
READING: Final[Literal[Phase.READING]] = Phase.READING
FINISHING: Final[Literal[Phase.FINISHING]] = Phase.FINISHING
OVER: Final[Literal[Phase.OVER]] = Phase.OVER


class Passes(ABC):
    """The passes of one region in one subscription."""

    __slots__ = ("current", "may_stop", "pace", "paused", "phase")

    def __init__(self, *, starts: bool, may_stop: bool) -> None:
        self.phase: Phase = STARTING if starts else READING
        self.current: Iterator[Any] | None = None
        """The pass that is under way."""
        self.pace = Pace()
        self.paused = False
        """Whether `starting` or `finishing` has stopped because the time is up, and has to be called again."""
        self.may_stop = may_stop
        """Whether some stage may come to need no more input, so that ``done`` is worth asking."""

    @abstractmethod
    def over(self, items: Iterator[Any], deadline: float) -> Iterator[Any]:
        """Begin a pass over a stretch of input that returns soon after ``deadline``, by `budgets.clock`."""

    @abstractmethod
    def starting(self, until: float = inf) -> Iterator[Any]:
        """Return what the stages have before any input. Soon after ``until`` it stops, with ``paused`` set."""

    @abstractmethod
    def finishing(self, until: float = inf) -> Iterator[Any]:
        """Return what the stages still hold when the input has ended; stops as `starting` does."""

    @abstractmethod
    def rest(self) -> Iterator[Any] | None:
        """Return the rest of a pass that a stage has ended in the middle of its input, because its time was up.

        Return None if no stage has done so.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """Return whether some stage needs no more input."""

    def begin(self, items: Iterator[Any] | None, until: float) -> Iterator[Any] | None:
        """Begin the next pass, over ``items`` while READING.

        Soon after ``until`` it ends or pauses. None if all is over.
        """
        phase = self.phase
        if phase is READING:
            assert items is not None
            self.current = self.over(items, until)
        elif phase is STARTING:
            self.current = self.starting(until)
        elif phase is FINISHING:
            self.current = self.finishing(until)
        return self.current

    def ended(self, *, input_ended: bool) -> None:
        """Note that the pass has emitted everything. Next is its `rest`, another pass of this phase, or of the next one."""
        self.current = None
        if self.phase is READING:
            self.current = self.rest()
            if self.current is not None:
                return
            if input_ended or (self.may_stop and self.done):
                self.phase = FINISHING
        elif not self.paused:
            self.phase = READING if self.phase is STARTING else OVER

    def finish(self) -> None:
        """Read no more."""
        self.phase = FINISHING

    def fill(self, given: list[Any], items: Iterator[Any], most: int, until: float) -> None:
        """Append results of the pass, or of the next pass: ``most``, or fewer at its end or when the time is up.

        For those who have all of the input, which are ``items``, and no demand.
        """
        current = self.current
        if current is None:
            # Only a pass over input looks at the clock: nobody waits for what a worker gives of itself.
            current = self.begin(items, until if self.phase is READING else inf)
            if current is None:
                return
        else:
            self.pace.deadline = until
        before = len(given)
        given.extend(islice(current, most))
        if len(given) - before < most:
            self.ended(input_ended=self.pace.ended)
