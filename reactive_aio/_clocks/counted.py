"""The clock that measures work on virtual loops: each look at it adds a little.

By the clock of the machine a turn ends after some elements in one run of a test, and after some more in the next. Then tasks
run in another order each time. By this one every run has the same turns.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, get_ident
from time import perf_counter
from typing import Final

from attrs import define, field

from .._core import budgets
from .._core.containers import new_dict

LOOK: Final = 1e-5
"""Seconds that a look adds. So a turn of a millisecond has a hundred looks."""


@define(eq=False)
class CountedClock:
    """Stands for ``budgets.clock`` while a virtual loop runs. Threads without one have the clock of the machine."""

    _times: dict[int, float] = field(init=False, factory=new_dict)
    """By thread."""
    _lock: Lock = field(init=False, factory=Lock)

    def __call__(self) -> float:
        """Return the time."""
        thread = get_ident()
        if (now := self._times.get(thread)) is None:
            return perf_counter()
        self._times[thread] = now = now + LOOK
        return now

    @contextmanager
    def counting(self, work: Work) -> Generator[None]:
        """Count the looks of this thread, as the work of a loop. A test that has a clock of its own keeps it."""
        thread = get_ident()
        with self._lock:
            outer = self._times.get(thread)  # there is one if a running loop is run once more, which fails
            self._times[thread] = work.time
            if budgets.clock is perf_counter:
                budgets.clock = self
        try:
            yield
        finally:
            with self._lock:
                work.time = self._times.pop(thread)
                if outer is not None:
                    self._times[thread] = outer
                if not self._times and budgets.clock is self:
                    budgets.clock = perf_counter


@define(eq=False)
class Work:
    """The work of one loop. It goes on from one run of the loop to the next."""

    time: float = 1.0


CLOCK: Final = CountedClock()
