"""Runs made of decisions, so that every run up to a bound can be made, and each can be made again.

A model asks `Choices` wherever it could go on in several ways. A run is known by the numbers it chose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import pytest
from attrs import define, field

Move = tuple[str, Callable[[], None]]
Moves = Callable[[], Iterator[Move]]


class Violation(BaseException):
    """The accounts disagree; nothing between here and the test is to catch it."""


class Known(BaseException):
    """The situation has been met before."""


def let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the library catch no Violation and no Known, as it catches whatever else comes out of a user's code."""
    for name, module in list(sys.modules.items()):
        if name.startswith("reactive_aio.") and hasattr(module, "FAILURES"):
            monkeypatch.setattr(module, "FAILURES", Exception)


def check(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Violation(otherwise)


@define(eq=False)
class Choices:
    """The decisions of one run: those prescribed, and then the first option each time."""

    prescribed: Sequence[int] = ()
    trail: list[tuple[int, int]] = field(init=False, factory=list)
    """Each decision with the number of its options."""
    schedule: list[str] = field(init=False, factory=list)
    stack: list[str] = field(init=False, factory=list)
    """The moves and calls that have begun and not returned."""

    def choose(self, options: int) -> int:
        """Make a decision."""
        at = len(self.trail)
        choice = self.prescribed[at] if at < len(self.prescribed) else 0
        self.trail.append((choice, options))
        return choice

    def make(self, call: str, label: str, move: Callable[[], None]) -> None:
        """Make a move from inside a call."""
        self.schedule.append("  " * len(self.stack) + label)
        self.stack.append(call + label)
        move()
        self.stack.pop()

    @property
    def free(self) -> bool:
        """Whether what was prescribed has been used up."""
        return len(self.trail) >= len(self.prescribed)

    def following(self) -> list[int] | None:
        """Return the decisions of the next run; None behind the last."""
        trail = list(self.trail)
        while trail:
            choice, options = trail.pop()
            if choice + 1 < options:
                return [each for each, _ in trail] + [choice + 1]
        return None


def explore(run: Callable[[Choices, set[object]], None], again: str) -> set[str]:
    """Make every run, and give the lines of all their schedules; a violation comes out with its schedule.

    ``again`` says how that run is made again, with {numbers} for its decisions.
    """
    lines: set[str] = set()
    known: set[object] = set()
    prescribed: list[int] | None = []
    while prescribed is not None:
        choices = Choices(prescribed)
        try:
            run(choices, known)
        except Violation as violation:
            violation.add_note("\n".join(f"    {line}" for line in choices.schedule))
            violation.add_note(f"    again by: {again.format(numbers=[choice for choice, _ in choices.trail])}")
            raise
        except Known:
            pass
        lines.update(choices.schedule)
        prescribed = choices.following()
    return lines
