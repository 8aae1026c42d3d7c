"""The report of a run: on the terminal, and in a file that can be compared and drawn."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table

from .harness import Measured, Outcome, Row, Spread, Verdict, number

PACKAGES = (
    "reactive-aio", "uvloop", "anyio", "aiochan", "aioitertools", "aiologic", "aiometer", "aiostream", "asyncstdlib", "culsans",
    "janus", "pypeln", "reactivex", "streamable", "streamz", "pyspark",
)  # fmt: skip


@attrs.frozen
class Machine:
    """Where and with what the figures were made."""

    python: str
    system: str
    processor: str
    cores: int
    packages: dict[str, str]

    @classmethod
    def here(cls) -> Machine:
        """Describe this one."""
        python = f"{platform.python_implementation()} {platform.python_version()}"
        system = f"{platform.system()} {platform.release().partition('-')[0]}"
        packages = {name: found for name in PACKAGES if (found := _version(name))}
        return cls(python, system, _processor(), os.cpu_count() or 0, packages)

    def __str__(self) -> str:
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        return f"{self.python} on {self.system}, {self.cores} cores ({self.processor}); {packages}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    """Name the processor, as far as the machine tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


@attrs.frozen
class Report:
    """A whole run."""

    machine: Machine
    quick: bool
    date: str
    outcomes: tuple[Outcome, ...]
    absent: dict[str, str]
    """The modules of rows that could not be measured here at all, and why."""

    @property
    def verdicts(self) -> list[Verdict]:
        """Every bar, met or missed."""
        return [verdict for outcome in self.outcomes for verdict in outcome.verdicts]

    def updated(self, later: Report) -> Report:
        """Return the rows of both runs, each with its date and processor. A row that both have is that of the later run."""
        newer = {_key(outcome): later._of_its_own(outcome) for outcome in later.outcomes}
        rows = [newer.pop(_key(outcome), outcome) for outcome in self.outcomes]
        rows += newer.values()
        chapters = list(dict.fromkeys(outcome.row.chapter for outcome in rows))
        rows.sort(key=lambda outcome: chapters.index(outcome.row.chapter))
        return attrs.evolve(self, outcomes=tuple(rows))

    def _of_its_own(self, outcome: Outcome) -> Outcome:
        """Return a row that says when and where it was measured."""
        if outcome.date:
            return outcome
        return attrs.evolve(outcome, date=self.date, processor=self.machine.processor)

    def save(self, path: Path) -> None:
        """Write it to a file."""
        path.write_text(json.dumps(attrs.asdict(self, filter=_kept), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Report:
        """Read it back, without the functions that made it."""
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        outcomes = tuple(_outcome(each) for each in read["outcomes"])
        return cls(Machine(**read["machine"]), read["quick"], read["date"], outcomes, read["absent"])


def _key(outcome: Outcome) -> tuple[str, str]:
    return outcome.row.chapter, outcome.row.title


def _kept(attribute: attrs.Attribute[Any], value: object) -> bool:
    return attribute.name not in {"contestants", "bars", "expect"}


def _outcome(read: dict[str, Any]) -> Outcome:
    read["row"]["metrics"] = tuple(read["row"]["metrics"])
    row = Row(**read["row"], contestants=())
    measured = tuple(map(_measured, read["measured"]))
    return Outcome(
        row,
        measured,
        tuple(Verdict(**each) for each in read["verdicts"]),
        read.get("date", ""),
        read.get("processor", ""),
    )


def _measured(read: dict[str, Any]) -> Measured:
    read["figures"] = {name: Spread(**spread) for name, spread in read["figures"].items()}
    read["ratio"] = Spread(**read["ratio"]) if read["ratio"] else None
    return Measured(**read)


def show_row(outcome: Outcome, console: Console) -> None:
    """Print the table of a row."""
    table = Table(title=outcome.row.title, title_justify="left")
    names = outcome.row.figures
    table.add_column("contestant")
    limit = outcome.row.limit or outcome.measured[0].name
    for title in (names[0], "from .. to", *names[1:], f"to {limit}", "from .. to", "elements"):
        table.add_column(title, justify="right")
    table.add_column("")
    most = max(each.elements for each in outcome.measured)
    for each in outcome.measured:
        if each.absent:
            table.add_row(each.name, *[""] * (len(names) + 4), "absent")
            continue
        first, *others = (each.figures[name] for name in names)
        cells = (number(first.median), _range(first), *(number(other.median) for other in others))
        ratio = ("", "") if each.ratio is None else (f"{each.ratio.median:.2f}x", _range(each.ratio))
        fewer = "*" if each.elements < most else ""
        table.add_row(each.name, *cells, *ratio, f"{each.elements:,}{fewer}", each.note)
    console.print(table)
    for each in outcome.measured:
        if each.absent:
            console.print(f"  absent  {each.name}: {each.absent}", highlight=False, markup=False)
    for verdict in outcome.verdicts:
        console.print(f"  {_word(verdict):8}{verdict.bar}: {verdict.ours}", markup=False)
    console.print()


def show_bars(verdicts: Sequence[Verdict], console: Console) -> None:
    """Print every bar beside our figure."""
    table = Table(title="the bars", title_justify="left")
    for column in ("workload", "bar", "ours", ""):
        table.add_column(column, justify="right" if column == "ours" else "left")
    for each in verdicts:
        table.add_row(each.row, each.bar, each.ours, _word(each))
    console.print(table)


def _word(verdict: Verdict) -> str:
    return {True: "met", False: "MISSED", None: "-"}[verdict.met]


def _range(spread: Spread) -> str:
    return f"{number(spread.low)} .. {number(spread.high)}"
