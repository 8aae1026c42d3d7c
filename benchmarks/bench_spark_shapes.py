"""Frames of many partitions, of many columns and of few rows, brought to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from reactive_aio import Flow

from .bench_spark import CPU_OF_ALL, PROC, timed
from .bench_spark_rows import ITERATED, frame, iterated, ours
from .harness import WALL, Bar, Contestant, Row
from .spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLLECTED: Final = "df.collect"
MAPPED: Final = "mapInArrow by hand, a sum of one column"
ROWS_OF_A_PARTITION: Final = 100
WIDE: Final = 2_000
"""Columns."""
WIDE_ROWS: Final = 200
LONG: Final = 300_000
"""The rows of a turn, at least. A frame of fewer rows is read several times, since one reading is too short to measure."""
TIMES_FASTER: Final = {600_000: 4, 30_000: 1.5}
"""Rows, and how many times faster than with `toLocalIterator` they are to be."""


def rows(n: int) -> list[Row]:
    """Each against the call of PySpark's that suits its shape; CPU counts, of all processes."""
    partitions = (200, 1_000) if n >= 1_000_000 else (60,)
    small = [
        _row(f"{count:,} partitions of {ROWS_OF_A_PARTITION} rows", partial(small_ones, count), 3)
        for count in partitions
    ]
    sizes = [_to_the_loop(size, times) for size, times in TIMES_FASTER.items() if size < n]
    many_columns = _row(f"{WIDE:,} columns of {WIDE_ROWS} rows", wide, 1.3, {MAPPED: mapped})
    return [*small, many_columns, *sizes]


def _to_the_loop(size: int, times_faster: float) -> Row:
    times = max(1, LONG // size)
    works = {"reactive_aio": partial(ours, size, ordered=False), ITERATED: partial(iterated, size, ahead=False)}
    return Row(
        f"five columns to the loop as tuples, {size:,} rows",
        times * size,
        tuple(
            Contestant(name, partial(timed, partial(_times, times, work), times * size)) for name, work in works.items()
        ),
        (Bar(ITERATED, times_faster=times_faster, metric=CPU_OF_ALL),) if PROC.exists() else (),
        rounds=5,
        warm=20,
        metrics=(CPU_OF_ALL, WALL),
        limit=ITERATED,
        expect=lambda _: times * size * (size - 1) // 2,
    )


def _times(times: int, work: Callable[[], int]) -> int:
    return sum(work() for _ in range(times))


def _on(work: Callable[[DataFrame], int], make: Callable[[], DataFrame]) -> int:
    return work(make())


def _row(
    title: str,
    make: Callable[[], DataFrame],
    at_most: float,
    others: Mapping[str, Callable[[DataFrame], int]] = MappingProxyType({}),
) -> Row:
    of_frame: dict[str, Callable[[DataFrame], int]] = {"reactive_aio": flowing, COLLECTED: collected, **others}
    works = {name: partial(_on, work, make) for name, work in of_frame.items()}
    return Row(
        title,
        1,
        tuple(Contestant(name, partial(timed, work, 1)) for name, work in works.items()),
        (Bar(COLLECTED, at_most=at_most, metric=CPU_OF_ALL),) if PROC.exists() else (),
        rounds=3,
        warm=2,
        metrics=(CPU_OF_ALL, WALL),
        limit=COLLECTED,
    )


@cache
def small_ones(partitions: int) -> DataFrame:
    return frame(partitions * ROWS_OF_A_PARTITION, partitions)


@cache
def wide() -> DataFrame:
    return session().range(0, WIDE_ROWS, 1, 1).selectExpr(*(f"id * {at} AS c{at}" for at in range(WIDE)))


def flowing(made: DataFrame) -> int:
    return sum(row[-1] for row in asyncio.run(_all(made)))


async def _all(made: DataFrame) -> list[tuple[int, ...]]:
    return await Flow.from_spark(made, as_=tuple).to_list()


def mapped(made: DataFrame) -> int:
    """Bring all columns to the workers as one, as PySpark takes the square of their number otherwise, and make no values."""

    def last(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import compute

        functions: Any = compute
        for batch in batches:
            total = functions.sum(batch.column(0).field(WIDE - 1)).as_py()
            yield pa.RecordBatch.from_pydict({"last": [total]})

    rows: list[Any] = made.selectExpr("struct(*) AS row").mapInArrow(last, "last long").collect()
    return sum(row[0] for row in rows)


def collected(made: DataFrame) -> int:
    rows: list[Any] = made.collect()
    return sum(row[-1] for row in rows)
