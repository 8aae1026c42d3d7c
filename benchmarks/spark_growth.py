"""Read one partition of five columns, and tell what it took: python -m benchmarks.spark_growth WAY ROWS HEAP."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

from reactive_aio import Flow

from .bench_spark_rows import COLUMNS
from .spark_session import session

LOOKS = 5
"""How often to look at the heap on the way."""


class Sums:
    """Adds up what comes, and looks at the JVM's heap from time to time, behind a collection."""

    def __init__(self, context: Any, n: int) -> None:
        self._java = context._jvm
        self._every = max(1, n // LOOKS)
        self._due = self._every
        self._count = 0
        self.total = 0
        self.heap = 0.0

    def add(self, rows: Iterable[Any]) -> None:
        """Add the first column."""
        for row in rows:
            self.total += row[0]
            self._count += 1
        if self._count >= self._due:
            self._due += self._every
            self._java.System.gc()
            memory = self._java.java.lang.management.ManagementFactory.getMemoryMXBean()
            self.heap = max(self.heap, memory.getHeapMemoryUsage().getUsed() / 2**20)


async def ours(frame: Any, sums: Sums) -> None:
    async with Flow.from_spark(frame, as_=tuple).buffer(1_000).open() as lists:
        async for rows in lists:
            sums.add(rows)


def iterated(frame: Any, sums: Sums) -> None:
    for row in frame.toLocalIterator():
        sums.add([tuple(row)])


def peak_kib() -> int:
    """Return the peak memory of the process. The figure of `resource` includes its parent's, from before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(way: str, n: int, heap: str) -> None:
    spark = session("local[2]", heap)
    frame = spark.range(0, n, 1, 1).selectExpr(*COLUMNS)
    spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()  # so that a worker is there
    sums = Sums(spark.sparkContext, n)
    start = perf_counter()
    if way == "reactive_aio":
        asyncio.run(ours(frame, sums))
    else:
        iterated(frame, sums)
    seconds = perf_counter() - start
    peak = peak_kib() / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "heap": sums.heap, "total": sums.total}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
