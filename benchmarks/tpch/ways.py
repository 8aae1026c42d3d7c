"""The ways to run a query: by Spark's SQL, by hand, by our operators on Spark, and on the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_aio import Flow

from .queries import Query, Tuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[Tuple]
KEYS: Final = 100_000_000  # orders are more than the default at a scale of 0.1


def tables(spark: SparkSession, folder: Path) -> None:
    """Make the files the session's views."""
    for path in folder.glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)


def in_order(rows: Iterable[Any]) -> Rows:
    """Make rows tuples in an order of their own, since no way promises one."""
    return sorted(tuple(row) for row in rows)


def by_sql(spark: SparkSession, query: Query) -> Rows:
    return in_order(spark.sql(query.sql).collect())


def _finished(spark: SparkSession, query: Query, kept: DataFrame) -> Rows:
    kept.createOrReplaceTempView("kept")
    if query.small:
        spark.sql(query.small).createOrReplaceTempView("small")
    return in_order(spark.sql(query.after).collect())


def by_frame(spark: SparkSession, query: Query) -> Rows:
    frame = spark.sql(f"SELECT {query.columns} FROM lineitem")
    return _finished(spark, query, Flow.from_spark(frame, as_=tuple).map_not_none(query.keep).to_frame(query.schema))


def behind_filter(spark: SparkSession, query: Query) -> Rows:
    """Spark filters by the condition, which it then sees in its plan, and functions have the rows that are left."""
    frame = spark.sql(f"SELECT {query.columns} FROM lineitem WHERE {query.where}")
    return _finished(spark, query, Flow.from_spark(frame, as_=tuple).map_not_none(query.keep).to_frame(query.schema))


def by_map_in_arrow(spark: SparkSession, query: Query) -> Rows:
    """The same function for each row, columns turned to Python's and back in the quickest way there is."""
    return _finished(spark, query, _kept_in_arrow(spark.sql(f"SELECT {query.columns} FROM lineitem"), query))


def by_map_in_arrow_behind_filter(spark: SparkSession, query: Query) -> Rows:
    frame = spark.sql(f"SELECT {query.columns} FROM lineitem WHERE {query.where}")
    return _finished(spark, query, _kept_in_arrow(frame, query))


def _kept_in_arrow(frame: DataFrame, query: Query) -> DataFrame:
    keep = query.keep
    names = [part.split()[0] for part in query.schema.split(", ")]
    texts = [part.endswith("string") for part in query.schema.split(", ")]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        arrow: Any = pa
        types = [arrow.string() if text else arrow.int64() for text in texts]
        for batch in batches:
            columns = [column.to_numpy(zero_copy_only=False).tolist() for column in batch.columns]
            kept = [row for row in map(keep, zip(*columns, strict=True)) if row is not None]
            made = zip(*kept, strict=True) if kept else [()] * len(types)
            arrays = [arrow.array(list(column), kind) for column, kind in zip(made, types, strict=True)]
            yield arrow.RecordBatch.from_arrays(arrays, names)

    return frame.mapInArrow(work, query.schema)


def by_rdd(spark: SparkSession, query: Query) -> Rows:
    keep, parts = query.keep, query.parts

    def added(mine: Tuple, others: Tuple) -> Tuple:
        return tuple(map(sum, zip(mine, others, strict=True)))

    def by_first(row: Tuple) -> tuple[Any, Tuple]:
        return row[0], tuple(row)

    kept: Any = spark.sql(f"SELECT {query.columns} FROM lineitem").rdd.map(keep).filter(lambda row: row is not None)
    if query.small:
        small: Any = spark.sql(query.small).rdd.map(by_first)
        kept = kept.map(by_first).join(small).values()
    return in_order((*key, *sums) for key, sums in kept.map(parts).reduceByKey(added).collect())


def rows_of(folder: Path, table: str, columns: str) -> Iterator[Tuple]:
    """Read rows of a file as tuples, a batch at a time."""
    from pyarrow import parquet

    files: Any = parquet
    file: Any = files.ParquetFile(folder / f"{table}.parquet")
    names = columns.split(", ")
    for batch in file.iter_batches(columns=names):
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def on_the_loop(folder: Path, query: Query) -> Rows:
    kept: Flow[Any] = Flow.from_iterable(rows_of(folder, "lineitem", query.columns)).map_not_none(query.keep)
    if query.small:
        small = _small(folder, query.small)
        pairs = kept.group_by_key(_first, max_keys=KEYS).join(small.group_by_key(_first, max_keys=KEYS))
        kept = pairs.map(_second)
    sums = kept.map(query.parts).group_by_key(_first, max_keys=KEYS).map(_second).reduce(_added, any_order=True)
    return in_order((*key, *values) for key, values in sums.run_sync())


def _small(folder: Path, sql: str) -> Flow[Tuple]:
    from datetime import date

    if "customer" in sql:
        day = date(1995, 3, 15)
        customers = Flow.from_iterable(rows_of(folder, "customer", "c_custkey, c_mktsegment"))
        building = customers.filter(lambda row: row[1] == "BUILDING").group_by_key(_first, max_keys=KEYS)
        orders = Flow.from_iterable(rows_of(folder, "orders", "o_custkey, o_orderkey, o_orderdate"))
        early = orders.filter(lambda row: row[2] < day).group_by_key(_first, max_keys=KEYS)
        return early.join(building, max_size=1).map(lambda pair: pair[1][0][1:])
    columns, _, table = sql.removeprefix("SELECT ").partition(" FROM ")
    return Flow.from_iterable(rows_of(folder, table, columns))


def _first(row: Any) -> Any:
    return row[0]


def _second(row: Any) -> Any:
    return row[1]


def _added(mine: Tuple, others: Tuple) -> Tuple:
    return tuple(map(sum, zip(mine, others, strict=True)))


BY_FRAME: Final = "reactive_aio, to_frame"
BY_HAND: Final = "mapInArrow by hand"
BY_SQL: Final = "Spark's SQL"
WAYS: Final[dict[str, Callable[[SparkSession, Query], Rows]]] = {
    BY_FRAME: by_frame,
    BY_HAND: by_map_in_arrow,
    "RDD by hand": by_rdd,
    BY_SQL: by_sql,
}
BEHIND_FILTER: Final = "reactive_aio, to_frame behind Spark's filter"
FILTERED: Final[dict[str, Callable[[SparkSession, Query], Rows]]] = {
    BEHIND_FILTER: behind_filter,
    "mapInArrow by hand behind Spark's filter": by_map_in_arrow_behind_filter,
}
ON_THE_LOOP: Final = "reactive_aio, on the loop"


def ways_of(query: Query) -> dict[str, Callable[[SparkSession, Query], Rows]]:
    """Return the ways on Spark. A query with a condition also has those in which Spark filters."""
    return {**WAYS, **FILTERED} if query.where else WAYS
