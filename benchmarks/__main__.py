"""``python -m benchmarks``: measure, compare, print; ``--quick`` for a look, ``--json FILE`` to keep the figures."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import attrs
from rich.console import Console
from rich.progress import track
from rich.table import Table

from . import bench_boundary, bench_fused, bench_memory
from .harness import Outcome, Row, measure


def all_rows(n: int, *, spark: bool) -> list[Row]:
    """Give every row that can be measured here."""
    rows = bench_fused.rows(n)
    rows += bench_boundary.rows(n, "asyncio", asyncio.new_event_loop)
    try:
        import uvloop
    except ImportError:
        pass
    else:
        rows += bench_boundary.rows(n, "uvloop", uvloop.new_event_loop)
    if spark:
        from . import bench_spark

        rows += bench_spark.rows(3 * n)
    return rows


def show(outcome: Outcome, console: Console) -> None:
    table = Table(title=f"{outcome.row.title} ({outcome.row.elements:,} elements)", title_justify="left")
    for column in ("contestant", "ns an element", "from", "to", "to ours"):
        table.add_column(column, justify="left" if column == "contestant" else "right")
    ours = outcome.measured[0].median
    for each in outcome.measured:
        figures = (f"{each.median:,.0f}", f"{each.low:,.0f}", f"{each.high:,.0f}", f"{each.median / ours:.2f}x")
        table.add_row(each.name, *figures)
    console.print(table)
    for text, met in outcome.verdicts:
        console.print(f"  {'met   ' if met else 'MISSED'}  {text}\n")


def machine() -> str:
    loops = ", ".join(f"{name} {version(name)}" for name in ("anyio", "uvloop", "culsans"))
    return f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, {loops}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three rounds of a tenth of the elements")
    parser.add_argument("--no-spark", action="store_true", help="leave out the rows that need Spark")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    options = parser.parse_args()
    console = Console()
    console.print(machine())
    rows = all_rows(100_000 if options.quick else 1_000_000, spark=not options.no_spark)
    outcomes = [measure(row, quick=options.quick) for row in track(rows, "measuring", console=console, transient=True)]
    for outcome in outcomes:
        show(outcome, console)
    text, flat = bench_memory.report(quick=options.quick)
    console.print(f"  {'met   ' if flat else 'MISSED'}  {text}")
    if options.json:
        kept = [
            {"row": each.row.title, "measured": [attrs.asdict(m) for m in each.measured], "verdicts": each.verdicts}
            for each in outcomes
        ]
        options.json.write_text(json.dumps({"machine": machine(), "rows": kept, "memory": text}, indent=2))
    missed = not flat or any(not met for each in outcomes for _, met in each.verdicts)
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
