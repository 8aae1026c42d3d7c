"""How a flow out of Spark grows with its rows: the time of each, and the memory of the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache, partial
from typing import Final

from .harness import WALL, Bar, Contestant, Figures, Row

PEAK: Final = "MiB of the driver's Python"
HEAP: Final = "MiB of live objects in its JVM"
HEAP_OF_ALL: Final = "1g"
MOST_ITERATED: Final = 1_000_000
"""The rows of one partition up to which the driver's JVM can hold them all, as ``toLocalIterator`` has it."""
SIZES: Final = (100_000, 1_000_000, 10_000_000, 20_000_000, 50_000_000)


def rows(n: int) -> list[Row]:
    """One partition of 10**5 to 5 * 10**7 rows of five columns, as tuples to the loop; up to 10**5 in a quick run.

    Each in a process of its own, whose JVM has a heap of 1 GiB in which driver and executor are together.
    """
    sizes = [size for size in SIZES if size <= max(n, SIZES[0]) or n >= MOST_ITERATED]
    return [
        *(_row(size, "rows of one partition to the loop", (WALL,)) for size in sizes),
        *(_row(size, "memory of the driver, by rows of one partition", (PEAK, HEAP)) for size in sizes),
    ]


def _row(size: int, series: str, metrics: tuple[str, ...]) -> Row:
    ways = ["reactive_aio"] + ["df.toLocalIterator"] * (size <= MOST_ITERATED)
    bars = tuple(Bar(at_most=most, metric=metric) for metric, most in ((PEAK, 300), (HEAP, 300)) if metric in metrics)
    return Row(
        f"{series}: {size:,}",
        size,
        tuple(Contestant(way, partial(_figures, way, size)) for way in ways),
        bars,
        rounds=1,
        metrics=metrics,
        expect=lambda n: n * (n - 1) // 2,
        series=series,
        x=size,
        x_name="rows",
    )


@cache
def _figures(way: str, n: int) -> Figures:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.spark_growth", way, str(n), HEAP_OF_ALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{way} with {n} rows: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Figures({WALL: found["seconds"] * 1e9 / n, PEAK: found["peak"], HEAP: found["heap"]}, found["total"])
