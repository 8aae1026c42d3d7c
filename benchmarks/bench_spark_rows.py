"""Rows of a DataFrame as Python values: brought to the event loop, and made into objects where they lie."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from reactive_aio import Flow

from .bench_spark import CPU_OF_ALL, PROC, timed
from .harness import WALL, Bar, Contestant, Row
from .spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS: Final = ("id", "id % 97 AS kind", "id / 7 AS value", "concat('r', id % 1000) AS name", "id % 2 = 0 AS even")
PARTITIONS: Final = 2
ITERATED: Final = "df.toLocalIterator"
BY_HAND: Final = "mapInArrow by hand"


@attrs.frozen
class Reading:
    """A row of five columns."""

    id: int
    kind: int
    value: float
    name: str
    even: bool


@cache
def frame(n: int, partitions: int = PARTITIONS) -> DataFrame:
    return session().range(0, n, 1, partitions).selectExpr(*COLUMNS)


def rows(n: int) -> list[Row]:
    """Rows to the loop as tuples, and rows made into objects of a class in the workers, where each is looked at.

    The JVM has the flags that it has on a cluster. `local_session` uses the first compiler alone, for a quick
    start. With that one the JVM takes up to twice as long for each row. Ours are made while the loop is at work, and the others
    wait for the JVM.
    """
    metrics = (WALL, CPU_OF_ALL) if PROC.exists() else (WALL,)
    return [
        Row(
            "five columns to the loop as tuples",
            n,
            tuple(Contestant(name, partial(timed, partial(work, n), n)) for name, work in TO_THE_LOOP.items()),
            (Bar(ITERATED, times_faster=5),),
            rounds=3,
            warm=5,
            metrics=(WALL, CPU_OF_ALL),
            expect=lambda n: n * (n - 1) // 2,
            limit="df.toArrow, columns to lists",
        ),
        Row(
            "five columns to objects of a class, in the workers",
            2 * n,
            tuple(Contestant(name, partial(timed, partial(work, 2 * n), 2 * n)) for name, work in TO_OBJECTS.items()),
            tuple(Bar(BY_HAND, at_most=1.3, metric=metric) for metric in metrics),
            rounds=5,
            warm=5,
            metrics=(WALL, CPU_OF_ALL),
            expect=lambda n: (n + 1) // 2,
            limit=BY_HAND,
        ),
    ]


# --- rows to the loop -------------------------------------------------------------------------------------------------


def ours(n: int, *, ordered: bool, wire: str = "tcp") -> int:
    flow = Flow.from_spark(frame(n), as_=tuple, ordered=ordered, wire=wire)

    async def main() -> int:
        total = 0
        async with flow.buffer(1_000).open() as lists:
            async for rows in lists:
                total += sum(row[0] for row in rows)
        return total

    return asyncio.run(main())


def total(rows: Iterable[Any]) -> int:
    """Add up the first column, of rows made tuples."""
    return sum(row[0] for row in map(_tuple, rows))


_tuple: Final[Callable[[Any], tuple[Any, ...]]] = tuple


def iterated(n: int, *, ahead: bool) -> int:
    return total(frame(n).toLocalIterator(prefetchPartitions=ahead))


def collected(n: int) -> int:
    return total(frame(n).collect())


def from_arrow(n: int) -> int:
    """The whole in the driver's memory, and the columns turned to Python's by the quickest way there is."""
    columns: list[Any] = frame(n).toArrow().columns
    return total(zip(*(column.to_pandas().tolist() for column in columns), strict=True))


TO_THE_LOOP: Final[dict[str, Callable[[int], int]]] = {
    "reactive_aio, ordered=False": partial(ours, ordered=False),
    "reactive_aio, in order": partial(ours, ordered=True),
    "reactive_aio, by results": partial(ours, ordered=True, wire="results"),
    ITERATED: partial(iterated, ahead=False),
    "df.toLocalIterator, a partition ahead": partial(iterated, ahead=True),
    "df.collect": collected,
    "df.toArrow, columns to lists": from_arrow,
}


# --- rows to objects, where they lie ----------------------------------------------------------------------------------


def _even() -> Callable[[Reading], bool]:
    # Made in here, so that it travels to the workers by value.
    def even(reading: Reading) -> bool:
        return reading.even

    return even


def objects(n: int) -> int:
    flow = Flow.from_spark(frame(n), as_=Reading, ordered=False).filter(_even())

    async def main() -> int:
        return await flow.count()

    return asyncio.run(main())


def objects_by_hand(n: int) -> int:
    """Column by column through numpy, as quick as one can write it."""
    even = _even()

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        count = 0
        for batch in batches:
            columns = [column.to_numpy(zero_copy_only=False).tolist() for column in batch.columns]
            count += sum(1 for _ in filter(even, (Reading(*row) for row in zip(*columns, strict=True))))
        yield pa.RecordBatch.from_pydict({"count": [count]})

    return sum(row[0] for row in frame(n).mapInArrow(work, "count long").collect())


def objects_by_pylist(n: int) -> int:
    """As the documentation of Arrow has it."""
    even = _even()

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        count = 0
        for batch in batches:
            count += sum(1 for _ in filter(even, (Reading(**row) for row in batch.to_pylist())))
        yield pa.RecordBatch.from_pydict({"count": [count]})

    return sum(row[0] for row in frame(n).mapInArrow(work, "count long").collect())


TO_OBJECTS: Final[dict[str, Callable[[int], int]]] = {
    "reactive_aio": objects,
    BY_HAND: objects_by_hand,
    "mapInArrow by hand, to_pylist": objects_by_pylist,
}
