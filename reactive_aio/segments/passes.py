"""The life of a region in passes: one automaton, driven by the event loop, by workers and by Spark's tasks.

::

    STARTING ──────► READING ──────────────► FINISHING ──────► OVER
    the stages give  passes over stretches   the stages give   nothing
    what comes       of input                what they still   follows
    before input                             hold

A phase without anything to give is passed through by an empty pass. A pass may be suspended, for want of demand or time, and
is gone on with later. READING ends when the input has ended, or when a stage needs no more of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from itertools import islice
from math import inf
from typing import Any

from attrs import define, field

from .run import RegionRun


class InputBroken(BaseException):
    """Raised by the input of a region where it ends in the middle: what drives the passes takes it, and no stage may."""


class Phase(Enum):
    """What the next pass of a region gives."""

    STARTING = auto()
    READING = auto()
    FINISHING = auto()
    OVER = auto()


@define(eq=False)
class Passes:
    """The passes of one region in one subscription."""

    run: RegionRun
    phase: Phase = field(init=False)
    current: Iterator[Any] | None = field(init=False, default=None)
    """The pass that is under way."""

    def __attrs_post_init__(self) -> None:
        self.phase = Phase.STARTING if self.run.starts else Phase.READING

    def begin(self, items: Iterator[Any] | None, until: float) -> Iterator[Any] | None:
        """Begin the next pass, over ``items`` while READING; soon after ``until`` it ends or pauses. None if all is over."""
        phase = self.phase
        if phase is Phase.READING:
            assert items is not None
            self.current = self.run.over(items, until)
        elif phase is Phase.STARTING:
            self.current = self.run.starting(until)
        elif phase is Phase.FINISHING:
            self.current = self.run.finishing(until)
        return self.current

    def ended(self, *, input_ended: bool) -> None:
        """Note that the pass has given all that it had; what comes next is another pass of this phase, or of the next."""
        self.current = None
        if self.phase is Phase.READING:
            if input_ended or (self.run.may_stop and self.run.done):
                self.phase = Phase.FINISHING
        elif not self.run.paused:
            self.phase = Phase.READING if self.phase is Phase.STARTING else Phase.OVER

    def finish(self) -> None:
        """Read no more."""
        self.phase = Phase.FINISHING

    @property
    def is_finishing(self) -> bool:
        """Whether no more is read."""
        return self.phase is Phase.FINISHING or self.phase is Phase.OVER

    # -- for those who have all of the input, and no demand

    def fill(self, given: list[Any], items: Iterator[Any], most: int, until: float) -> None:
        """Append what the pass gives next, or the next pass: ``most`` elements, fewer where it ends or the time is up.

        ``items`` are all of the input.
        """
        current = self.current
        if current is None:
            # Only a pass over input looks at the clock: nobody waits for what a worker gives of itself.
            current = self.begin(items, until if self.phase is Phase.READING else inf)
            if current is None:
                return
        else:
            self.run.pace.deadline = until
        before = len(given)
        given.extend(islice(current, most))
        if len(given) - before < most:
            self.ended(input_ended=self.run.pace.ended)
