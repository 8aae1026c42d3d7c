"""A region on Spark, its elements brought to the event loop, against the same functions in a hand-written job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from reactive_aio import Flow

from .harness import WALL, Bar, Contestant, Figures, Row
from .spark_session import session

if TYPE_CHECKING:
    from pyspark import RDD

CPU_OF_ALL: Final = "CPU ns, all processes"
PROC: Final = Path("/proc/self/stat")
TICKS: Final = os.sysconf("SC_CLK_TCK")


@cache
def numbers(n: int, partitions: int) -> RDD[int]:
    return session().sparkContext.range(0, n, numSlices=partitions)


def rows(n: int) -> list[Row]:
    """Map, filter, map in the workers; half of 5 * 10**6 elements come back and are counted.

    Both sides run in one session with a slot more than there are cores, and with the same number of tasks. The CPU time
    is that of all processes: this one, the JVM and the workers.

    By hand everything is collected, in the memory of the driver, first in its JVM, and then here. Ours stays under
    bounded demand: no more than `prefetch` elements are under way, and the driver's memory is flat. On one
    partition that is all the difference. On two, elements as they come are compared with what is collected
    in order, since that is what a hand-written job gives. In order, ours computes one partition after the other, and
    so on one core: what the second makes meanwhile can't be kept under bounded demand. That is for orientation.
    """
    by_hand = "mapPartitions of the chain, collect"
    metrics = (WALL, CPU_OF_ALL) if PROC.exists() else (WALL,)
    bars = tuple(Bar(by_hand, at_most=1.15, metric=metric) for metric in metrics)
    return [_row(5 * n, 1, bars), _row(5 * n, 2, bars)]


def _row(n: int, partitions: int, bars: tuple[Bar, ...]) -> Row:
    # Defined in here, so that they travel to the workers by value.
    def increment(x: int) -> int:
        return x + 1

    def even(x: int) -> bool:
        return x % 2 == 0

    def triple(x: int) -> int:
        return 3 * x

    def chain(items: Iterable[int]) -> Iterator[int]:
        return map(triple, filter(even, map(increment, items)))

    def loop(items: Iterable[int]) -> Iterator[int]:
        for x in items:
            y = x + 1
            if y % 2 == 0:
                yield 3 * y

    def ours(*, ordered: bool) -> int:
        flow = Flow.from_spark(numbers(n, partitions), ordered=ordered)

        async def main() -> int:
            return await flow.map(increment).filter(even).map(triple).count()

        return asyncio.run(main())

    def chained_by_hand() -> int:
        return len(numbers(n, partitions).mapPartitions(chain).collect())

    def looped_by_hand() -> int:
        return len(numbers(n, partitions).mapPartitions(loop).collect())

    def iterated() -> int:
        return sum(1 for _ in numbers(n, partitions).mapPartitions(chain).toLocalIterator(prefetchPartitions=True))

    kinds: dict[str, Callable[[], int]] = {
        "reactive_aio, ordered=False": partial(ours, ordered=False),
        "reactive_aio, in order": partial(ours, ordered=True),
        "mapPartitions of the chain, collect": chained_by_hand,
        "mapPartitions of a loop, collect": looped_by_hand,
        "mapPartitions, toLocalIterator": iterated,
    }
    if partitions == 1:
        del kinds["reactive_aio, ordered=False"]  # the same
    return Row(
        f"region on Spark to the loop, partitions: {partitions}",
        n,
        tuple(Contestant(name, partial(timed, work, n)) for name, work in kinds.items()),
        bars,
        expect=lambda n: n // 2,
        metrics=(WALL, CPU_OF_ALL),
        limit="mapPartitions of the chain, collect",
    )


def timed(work: Callable[[], int], n: int) -> Figures:
    cpu, wall = _cpu_of_all(), perf_counter()
    result = work()
    wall, cpu = perf_counter() - wall, _cpu_of_all() - cpu
    return Figures({WALL: wall * 1e9 / n, CPU_OF_ALL: cpu * 1e9 / n}, result)


def _cpu_of_all() -> float:
    """Add up the CPU seconds of this process, the JVM and the workers, also of those that have ended; 0 without /proc."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # Behind the name, which is in brackets and may be anything: state, parent, ..., and the four times.
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended just now
            continue
        process = int(status.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))
    ours, found = {os.getpid()}, 1
    while found:
        children = {process for process, parent in parents.items() if parent in ours} - ours
        ours |= children
        found = len(children)
    return sum(ticks.get(process, 0) for process in ours) / TICKS
