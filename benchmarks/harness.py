"""Measure on a machine that other programs use too.

The contestants of a row take turns in one process, round after round, so a busy machine slows them alike. The result is
the ratio of one to another in the same round: the median and the range of all rounds. CPU time stands beside wall time,
because it hardly depends on other programs. Absolute figures are for orientation.
"""

from __future__ import annotations

import gc
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from time import perf_counter, process_time
from typing import Final

from attrs import field, frozen

CPU: Final = "CPU ns"
WALL: Final = "wall ns"


@frozen
class Figures:
    """The return value of a contestant that measures itself: its figures by their names, and its result."""

    values: Mapping[str, float]
    result: object = None


class Stopwatch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._cpu, self._wall = process_time(), perf_counter()

    def figures(self, result: object, elements: int) -> Figures:
        """Stop, and give the times for each element."""
        wall, cpu = perf_counter() - self._wall, process_time() - self._cpu
        return Figures({CPU: cpu * 1e9 / elements, WALL: wall * 1e9 / elements}, result)


@frozen
class Contestant:
    """One way to do the work of a row; its result must equal everybody else's."""

    name: str
    run: Callable[..., object]
    """Does the work of the row and gives the result or `Figures`; where ``sized``, of as many elements as it is handed."""
    sized: bool = False
    needs: str = ""
    """The module of somebody else's that it is about; without it the contestant is reported as absent."""
    note: str = ""


@frozen
class Bar:
    """A bar that a row has to meet: for our figure in relation to another's, or by itself."""

    against: str = ""
    at_most: float | None = None
    times_faster: float | None = None
    metric: str = ""
    """The figure that counts, if not the row's first."""
    of: str = ""
    """Whose figure it is, if not that of the row's first contestant."""


@frozen
class Row:
    """A workload, its contestants (ours first) and its bars."""

    title: str
    elements: int
    contestants: tuple[Contestant, ...]
    bars: tuple[Bar, ...] = ()
    rounds: int = 7
    warm: int = 0
    """The rounds before those that count, in which a JVM compiles what they run."""
    cpu: bool = False
    """Whether to compare CPU time: steadier, and fair where nobody waits for another process."""
    metrics: tuple[str, ...] = ()
    """The figures that its contestants measure for themselves; none where the harness takes the time."""
    expect: Callable[[int], object] | None = None
    """The right result for a number of elements; without it the contestants must agree."""
    limit: str = ""
    """The contestant to whom the others are related, which is what can be had at best."""
    chapter: str = ""
    """The subject of its module."""
    loop: str = ""
    """The kind of event loop it runs on; the title without it is that of the workload."""
    series: str = ""
    """A name in common to rows that differ in one number, which is ``x``."""
    x: float = 0
    x_name: str = ""

    @property
    def workload(self) -> str:
        """The title, whatever the event loop."""
        return self.title.removesuffix(f", {self.loop}")

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures, the one that counts first."""
        return self.metrics or ((CPU, WALL) if self.cpu else (WALL, CPU))


@frozen
class Spread:
    """A median and the range it comes from."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Sum up what the rounds gave."""
        return cls(statistics.median(values), min(values), max(values))


@frozen
class Measured:
    """The result of one contestant, for each element where the harness took the time."""

    name: str
    elements: int = 0
    figures: Mapping[str, Spread] = field(factory=dict[str, Spread])
    ratio: Spread | None = None
    """The figure that counts, in relation to that of the limit."""
    note: str = ""
    absent: str = ""
    """Why there are no figures."""


@frozen
class Verdict:
    """Whether a bar was met; None where the other one is absent."""

    row: str
    bar: str
    ours: str
    met: bool | None


@frozen
class Outcome:
    """The result of a row."""

    row: Row
    measured: tuple[Measured, ...]
    verdicts: tuple[Verdict, ...] = ()
    date: str = ""
    """When it was measured, if not with the rest of its report."""
    processor: str = ""
    """The processor on which it was measured then."""


@frozen
class Effort:
    """How much to spend: seconds for one turn of a contestant, how many rounds of turns, and whether any are to warm up."""

    turn: float
    rounds: int
    warms: bool = True


THOROUGH: Final = Effort(0.15, 7)
QUICK: Final = Effort(0.02, 3, warms=False)


def missing(needs: str) -> str:
    """Return why a contestant can't take part, or an empty text if it can."""
    try:
        if needs:
            with warnings.catch_warnings(action="ignore"):
                import_module(needs)
    except Exception as error:  # noqa: BLE001 - whatever keeps somebody else's package from being imported
        return f"{needs} can't be imported: {error!r}"
    return ""


def measure(row: Row, effort: Effort, tell: Callable[[str], None] = lambda _: None) -> Outcome:
    """Run the contestants in turns and compare; ``tell`` hears whose turn it is."""
    absent = {each.name: missing(each.needs) for each in row.contestants}
    turns: dict[str, _Turns] = {}
    for each in row.contestants:
        if not absent[each.name]:
            tell(each.name)
            try:
                turns[each.name] = _Turns(row, each, effort)
            except Exception as error:
                if not each.needs:
                    raise
                absent[each.name] = f"failed: {error!r}"
    _check_agreement(row, turns)
    limit = turns.get(row.limit or row.contestants[0].name)
    ours = turns.get(row.contestants[0].name)
    if ours and limit:
        # Those whose ratio counts get as much, whatever the machine was at when it was found out how much that is.
        ours.elements = limit.elements = max(ours.elements, limit.elements)
    orders = _orders([*turns.values()])
    for _ in range(row.warm if effort.warms else 0):
        for turn in next(orders):
            turn.warm_up()
    for _ in range(min(row.rounds, effort.rounds)):
        for turn in next(orders):
            tell(turn.contestant.name)
            turn.take()
    measured = tuple(
        turns[each.name].summary(limit) if each.name in turns else Measured(each.name, absent=absent[each.name])
        for each in row.contestants
    )
    return Outcome(row, measured, tuple(_verdict(row, bar, turns) for bar in row.bars))


class _Turns:
    """The turns of one contestant."""

    def __init__(self, row: Row, contestant: Contestant, effort: Effort) -> None:
        self.row = row
        self.contestant = contestant
        self.elements = row.elements
        self.rounds: list[Mapping[str, float]] = []
        if contestant.sized:
            self.elements = min(1_000, row.elements)
            self._run()
            self.elements = self._fitting(effort.turn)
        first = self._run()
        self.first = first.result
        if row.rounds == 1 and not contestant.sized:
            self.rounds.append(first.values)  # it takes long, so that once has to do

    def _fitting(self, seconds: float) -> int:
        """Return the number of elements that takes about so long. A slow contestant gets fewer."""
        while True:
            fitting = min(self.row.elements, int(self.elements * seconds / min(self._took(), self._took())))
            if fitting < 4 * self.elements:
                return _rounded(fitting)
            # Too short to tell: start-up costs may make up the most of it.
            self.elements = min(fitting // 2, 10 * self.elements)

    def _took(self) -> float:
        """Return the seconds that a turn takes, or would if it had the machine for itself."""
        cpu, wall = process_time(), perf_counter()
        self._run()
        wall, cpu = perf_counter() - wall, process_time() - cpu
        return max(cpu, wall / 4)

    def _run(self) -> Figures:
        stopwatch = Stopwatch()
        run = self.contestant.run
        result = run(self.elements) if self.contestant.sized else run()
        figures = result if isinstance(result, Figures) else stopwatch.figures(result, self.elements)
        if self.row.expect is not None and figures.result != (right := self.row.expect(self.elements)):
            raise AssertionError(f"{self.contestant.name!r} in {self.row.title!r}: {figures.result!r} is not {right!r}")
        return figures

    def warm_up(self) -> None:
        """Take a turn that does not count."""
        self._run()

    def take(self) -> None:
        """Take one turn, if there are any left."""
        if len(self.rounds) < self.row.rounds:
            gc.collect()
            self.rounds.append(self._run().values)

    def ratios(self, other: _Turns, metric: str) -> Spread:
        """Relate each round's figure to that of another in the same round."""
        pairs = zip(self.rounds, other.rounds, strict=True)
        return Spread.of([mine[metric] / max(theirs[metric], 1e-9) for mine, theirs in pairs])

    def figure(self, metric: str) -> Spread:
        """Sum up a figure."""
        return Spread.of([each[metric] for each in self.rounds])

    def summary(self, limit: _Turns | None) -> Measured:
        """Sum up."""
        figures = self.row.figures
        ratio = self.ratios(limit, figures[0]) if limit is not None else None
        spreads = {name: self.figure(name) for name in figures}
        return Measured(self.contestant.name, self.elements, spreads, ratio, self.contestant.note)


def _orders(turns: list[_Turns]) -> Iterator[list[_Turns]]:
    """Yield an order for each round, so that nobody always follows the same one, or always comes first."""
    while True:
        yield turns
        yield turns[::-1]
        turns = [*turns[1:], turns[0]]


def _rounded(n: int) -> int:
    """Round down to 1, 2 or 5 times a power of ten."""
    power = int(10 ** (len(str(max(n, 1))) - 1))
    return max(each * power for each in (1, 2, 5) if each * power <= max(n, 1))


def _check_agreement(row: Row, turns: Mapping[str, _Turns]) -> None:
    results = {name: each.first for name, each in turns.items()}
    if row.expect is None and len({repr(result) for result in results.values()}) > 1:
        raise AssertionError(f"the contestants of {row.title!r} disagree: {results}")


def _verdict(row: Row, bar: Bar, turns: Mapping[str, _Turns]) -> Verdict:
    name = bar.of or row.contestants[0].name
    metric = bar.metric or row.figures[0]
    title = row.title if bar.of in ("", row.contestants[0].name) else f"{row.title}: {bar.of}"
    what = _words(bar, metric)
    if name not in turns or (bar.against and bar.against not in turns):
        return Verdict(title, what, "not measured", None)
    ours = turns[name]
    if not bar.against:
        assert bar.at_most is not None
        figure = ours.figure(metric).median
        return Verdict(title, what, number(figure), figure <= bar.at_most)
    if bar.at_most is not None:
        ratio = ours.ratios(turns[bar.against], metric).median
        return Verdict(title, what, f"{ratio:.2f}x", ratio <= bar.at_most)
    assert bar.times_faster is not None
    faster = turns[bar.against].ratios(ours, metric).median
    return Verdict(title, what, f"{faster:.1f}x", faster >= bar.times_faster)


def number(value: float) -> str:
    """Show a figure with as many digits as it deserves."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _words(bar: Bar, metric: str) -> str:
    if bar.times_faster is not None:
        return f"{metric}: at least {bar.times_faster:g}x faster than {bar.against}"
    if bar.against:
        return f"{metric}: at most {bar.at_most:g}x {bar.against}"
    return f"{metric}: at most {bar.at_most:,g}"
