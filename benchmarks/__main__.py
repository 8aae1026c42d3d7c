"""``python -m benchmarks``: measure every workload, its contestants in turns, and print our figures beside the bars.

    run [--quick] [--only NAME ...]    measure; the default
    compare BEFORE AFTER               show what of ours got slower, beyond the spread; exit code 1 if anything did
    docs FILE [FILE ...]               write the page of the documentation and its plots

The modules ``bench_*`` are found by their names; each has a function ``rows`` of the number of elements.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial, reduce
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from attrs import evolve
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from . import compare, page
from .harness import QUICK, THOROUGH, Outcome, Row, measure
from .report import Machine, Report, show_bars, show_row

HERE = Path(__file__).parent
PREFIX = "bench_"


FIRST = ("fused", "boundary", "threads", "regions", "round_trip", "map_async", "assembly", "memory", "idle")


def names() -> list[str]:
    """Return the modules of workloads, by what follows their prefix, in the order of the page."""
    found = [each.name.removeprefix(PREFIX) for each in iter_modules([str(HERE)]) if each.name.startswith(PREFIX)]
    return [*(name for name in FIRST if name in found), *(name for name in found if name not in FIRST)]


def all_rows(n: int, wanted: Sequence[str], absent: dict[str, str]) -> Iterator[Row]:
    """Yield every row that can be measured here; ``absent`` takes the modules that can't be, and why."""
    for name in wanted:
        try:
            module = import_module(f".{PREFIX}{name}", __package__)
            chapter = (module.__doc__ or name).splitlines()[0].rstrip(".")
            yield from (evolve(row, chapter=chapter) for row in module.rows(n))
        except ImportError as error:
            absent[name] = str(error)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    console = _console()
    effort, n = (QUICK, 100_000) if options.quick else (THOROUGH, 1_000_000)
    absent = dict.fromkeys(options.without, "left out as asked")
    wanted = [name for name in options.only or names() if name not in absent]
    machine = Machine.here()
    console.print(str(machine), highlight=False, markup=False)
    rows = list(all_rows(n, wanted, absent))
    outcomes: list[Outcome] = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(rows))
        for row in rows:
            outcomes.append(measure(row, effort, partial(_tell, progress, task, row)))
            show_row(outcomes[-1], console)
            progress.advance(task)
    report = Report(machine, options.quick, f"{datetime.now(UTC):%Y-%m-%d}", tuple(outcomes), absent)
    show_bars(report.verdicts, console)
    for name, reason in absent.items():
        console.print(f"not measured: {name}: {reason}", highlight=False, markup=False)
    if options.json:
        report.save(options.json)
    if options.docs:
        page.write(report)
    missed = any(verdict.met is False for verdict in report.verdicts)
    return 1 if missed and not options.quick else 0


def compare_files(options: argparse.Namespace) -> int:
    """Compare."""
    before, after = Report.load(options.before), Report.load(options.after)
    return compare.show(before, after, _console(), everybody=options.everybody)


def write_docs(options: argparse.Namespace) -> int:
    """Draw."""
    first, *later = map(Report.load, options.figures)
    page.write(reduce(Report.updated, later, first))
    return 0


def _console() -> Console:
    console = Console()
    if not console.is_terminal:
        console.width = 140
    return console


def _tell(progress: Progress, task: TaskID, row: Row, contestant: str) -> None:
    progress.update(task, description=f"{row.title}: {contestant}")


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    description = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(prog="benchmarks", description=__doc__, formatter_class=description)
    commands = made.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure")
    running.add_argument("--quick", action="store_true", help="about a minute, to see that all is well; no exit code")
    running.add_argument("--only", nargs="+", metavar="NAME", choices=names(), help=f"of {', '.join(names())}")
    running.add_argument("--without", nargs="+", metavar="NAME", choices=names(), default=[])
    running.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    running.add_argument("--docs", action="store_true", help="write the page of the documentation and its plots")
    running.set_defaults(call=run)
    comparing = commands.add_parser("compare", help="show what got slower from one file of figures to another")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--everybody", action="store_true", help="not only ours")
    comparing.set_defaults(call=compare_files)
    drawing = commands.add_parser("docs", help="write the page of the documentation from files of figures")
    drawing.add_argument("figures", type=Path, nargs="+", help="rows of later files take the places of those before")
    drawing.set_defaults(call=write_docs)
    return made


def main(arguments: Sequence[str]) -> int:
    """Run a command; without one, measure."""
    commands = {"run", "compare", "docs", "-h", "--help"}
    given = arguments if arguments and arguments[0] in commands else ["run", *arguments]
    options = parser().parse_args(given)
    code: int = options.call(options)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
