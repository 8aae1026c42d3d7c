"""How to measure on a machine that one does not have to oneself.

The contestants of a row take turns in one process, round after round, so that whatever slows the machine
slows them alike; what counts is the ratio of their medians. Absolute figures are printed for orientation.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from time import perf_counter, process_time

from attrs import field, frozen


@frozen
class Contestant:
    """One way to do the work of a row; ``run`` gives a result that must equal everybody else's."""

    name: str
    run: Callable[[], object]


@frozen
class Bar:
    """What a row has to show: our median over another's, or the other's over ours."""

    against: str
    at_most: float | None = None
    times_faster: float | None = None

    def met(self, ours: float, other: float) -> tuple[str, bool]:
        """Give the ratio in words and whether it is good enough."""
        if self.at_most is not None:
            ratio = ours / other
            return f"{ratio:.2f}x the time of {self.against} (at most {self.at_most}x)", ratio <= self.at_most
        assert self.times_faster is not None
        ratio = other / ours
        return f"{ratio:.1f}x faster than {self.against} (at least {self.times_faster}x)", ratio >= self.times_faster


@frozen
class Row:
    """A workload, its contestants (ours first) and its bars."""

    title: str
    elements: int
    contestants: tuple[Contestant, ...]
    bars: tuple[Bar, ...] = ()
    rounds: int = 7
    cpu: bool = False
    """Whether to compare CPU time: steadier, and fair where nobody waits for another process."""


@frozen
class Measured:
    """What came out for one contestant, in nanoseconds an element."""

    name: str
    median: float
    low: float
    high: float


@frozen
class Outcome:
    """What came out for a row."""

    row: Row
    measured: tuple[Measured, ...]
    verdicts: tuple[tuple[str, bool], ...] = field(factory=tuple)


def measure(row: Row, *, quick: bool) -> Outcome:
    """Run the contestants in turns and compare."""
    times: dict[str, list[float]] = {each.name: [] for each in row.contestants}
    clock = process_time if row.cpu else perf_counter
    results = {each.name: each.run() for each in row.contestants}  # the warm-up, and the check
    if len({repr(result) for result in results.values()}) != 1:
        raise AssertionError(f"the contestants of {row.title!r} disagree: {results}")
    for _ in range(3 if quick else row.rounds):
        for each in row.contestants:
            gc.collect()
            started = clock()
            each.run()
            times[each.name].append((clock() - started) * 1e9 / row.elements)
    measured = tuple(Measured(name, statistics.median(t), min(t), max(t)) for name, t in times.items())
    median = {each.name: each.median for each in measured}
    ours = median[row.contestants[0].name]
    return Outcome(row, measured, tuple(bar.met(ours, median[bar.against]) for bar in row.bars))
