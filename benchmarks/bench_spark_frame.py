"""A frame that a flow becomes: rows, or batches of them, through a Python function and into files, against `mapInArrow`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from reactive_aio import Flow

from .bench_spark import CPU_OF_ALL, PROC, timed
from .bench_spark_rows import BY_HAND, frame
from .harness import WALL, Bar, Contestant, Row
from .spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA: Final = "id long, value double, name string"


def rows(n: int) -> list[Row]:
    """Rows made tuples, a function for each, and what comes of it written to Parquet; by Spark's tasks alone, so without the loop.

    By hand columns are turned to Python's and back in the quickest way there is.
    """
    return [
        _row("rows through a function and into files", 2 * n, TO_FILES, at_most=1.05),
        _row("batches through a function and into files", 2 * n, IN_BATCHES, at_most=1.1),
    ]


def _row(name: str, n: int, works: dict[str, Callable[[int], int]], at_most: float) -> Row:
    metrics = (CPU_OF_ALL,) if PROC.exists() else ()
    return Row(
        name,
        n,
        tuple(Contestant(each, partial(timed, partial(work, n), n)) for each, work in works.items()),
        tuple(Bar(BY_HAND, at_most=at_most, metric=metric) for metric in metrics),
        rounds=5,
        warm=5,
        metrics=(WALL, CPU_OF_ALL),
        expect=lambda n: n,
        limit=BY_HAND,
    )


def _priced() -> Callable[[Any], Any]:
    # Made in here, so that it travels to the workers by value.
    def priced(row: tuple[Any, ...]) -> tuple[int, float, str]:
        key, kind, value, name, even = row
        return key, value * kind if even else value, name.upper()

    return priced


def _arrow_schema() -> Any:
    import pyarrow as pa

    arrow: Any = pa  # whose stubs know types by halves
    return arrow.schema([("id", arrow.int64()), ("value", arrow.float64()), ("name", arrow.string())])


def written(made: DataFrame) -> int:
    folder = tempfile.mkdtemp()
    try:
        made.write.mode("overwrite").parquet(folder)
        return session().read.parquet(folder).count()
    finally:
        shutil.rmtree(folder)


def by_frame(n: int) -> int:
    return written(Flow.from_spark(frame(n), as_=tuple).map(_priced()).to_frame(SCHEMA))


def by_hand(n: int) -> int:
    priced = _priced()

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        arrow: Any = pa  # whose stubs know arrays by halves
        schema = _arrow_schema()
        for batch in batches:
            columns = [column.to_numpy(zero_copy_only=False).tolist() for column in batch.columns]
            made = zip(*map(priced, zip(*columns, strict=True)), strict=True)
            arrays: list[Any] = [
                arrow.array(list(column), each.type) for column, each in zip(made, schema, strict=True)
            ]
            yield arrow.RecordBatch.from_arrays(arrays, schema=schema)

    return written(frame(n).mapInArrow(work, SCHEMA))


def by_pylist(n: int) -> int:
    priced = _priced()

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        schema = _arrow_schema()
        for batch in batches:
            made = [priced(tuple(row.values())) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in made], schema)

    return written(frame(n).mapInArrow(work, SCHEMA))


TO_FILES: Final[dict[str, Callable[[int], int]]] = {
    "reactive_aio, to_frame": by_frame,
    BY_HAND: by_hand,
    "mapInArrow by hand, to_pylist": by_pylist,
}


def _priced_batch() -> Callable[[Any], Any]:
    def priced(batch: Any) -> Any:
        import pyarrow as pa
        from pyarrow import compute

        arrow: Any = pa
        functions: Any = compute  # which are made when the module is imported
        key, kind, value, name, even = batch.columns
        value = functions.if_else(even, functions.multiply(value, functions.cast(kind, arrow.float64())), value)
        return arrow.RecordBatch.from_arrays([key, value, functions.utf8_upper(name)], ["id", "value", "name"])

    return priced


def batches_by_frame(n: int) -> int:
    import pyarrow as pa

    return written(Flow.from_spark(frame(n), as_=pa.RecordBatch).map(_priced_batch()).to_frame(SCHEMA))


def batches_by_hand(n: int) -> int:
    priced = _priced_batch()
    return written(frame(n).mapInArrow(lambda batches: map(priced, batches), SCHEMA))


IN_BATCHES: Final[dict[str, Callable[[int], int]]] = {
    "reactive_aio, to_frame": batches_by_frame,
    BY_HAND: batches_by_hand,
}
