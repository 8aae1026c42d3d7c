"""List the rows that got slower from one run to another, beyond the spread of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen
from rich.console import Console
from rich.table import Table

from .harness import Measured, Row, Spread, number
from .report import Report

NOTICED: Final = 1.05
"""By how much medians must differ to be spoken of."""


@frozen
class Change:
    """One figure in two runs."""

    row: str
    contestant: str
    metric: str
    before: Spread
    after: Spread

    @property
    def slower(self) -> bool:
        """Whether it got worse, and the ranges of the two runs don't even touch."""
        return self.after.low > self.before.high and self.after.median > NOTICED * self.before.median

    @property
    def faster(self) -> bool:
        """Whether it got better, likewise."""
        return Change(self.row, self.contestant, self.metric, self.after, self.before).slower


def changes(before: Report, after: Report, *, everybody: bool = False) -> Iterator[Change]:
    """Pair the figures of ours, or everybody's, that both runs have."""
    old = {(outcome.row.title, each.name): each for outcome in before.outcomes for each in outcome.measured}
    for outcome in after.outcomes:
        for each in outcome.measured:
            was = old.get((outcome.row.title, each.name))
            if was is None or was.absent or each.absent or not (everybody or each.name.startswith("reactive_aio")):
                continue
            metric, now = _figure(outcome.row, each)
            yield Change(outcome.row.title, each.name, metric, _figure(outcome.row, was)[1], now)


def _figure(row: Row, measured: Measured) -> tuple[str, Spread]:
    """Return the ratio to the limit, which does not depend on the machine, or else the figure itself."""
    if row.limit and row.limit != measured.name and measured.ratio is not None:
        return f"to {row.limit}", measured.ratio
    metric = row.figures[0]
    return metric, measured.figures[metric]


def show(before: Report, after: Report, console: Console, *, everybody: bool = False) -> int:
    """Print what changed; 1 if anything got slower."""
    found = list(changes(before, after, everybody=everybody))
    if before.machine != after.machine:
        console.print(f"[bold]not the same machine or versions:[/]\n  {before.machine}\n  {after.machine}")
    told = [each for each in found if each.slower or each.faster]
    if told:
        table = Table("workload", "contestant", "figure", "before", "after", "")
        for each in told:
            word = "SLOWER" if each.slower else "faster"
            change = f"{word} {each.after.median / max(each.before.median, 1e-9):.2f}x"
            table.add_row(each.row, each.contestant, each.metric, _words(each.before), _words(each.after), change)
        console.print(table)
    slower = sum(each.slower for each in found)
    console.print(f"{len(found)} figures compared: {slower} slower, {len(told) - slower} faster, beyond the spread")
    return 1 if slower else 0


def _words(spread: Spread) -> str:
    return f"{number(spread.median)} ({number(spread.low)} .. {number(spread.high)})"
