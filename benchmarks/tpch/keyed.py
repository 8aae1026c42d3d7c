"""Keyed work: sessions of a click stream, a count of words, and the greatest values of each key."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from reactive_aio import Flow

from .ways import KEYS, Rows, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Flowing = Callable[[Flow[Any]], Flow[Any]]


@frozen
class Work:
    """One workload, and what it is in each way."""

    name: str
    table: str
    columns: str
    sql: str
    ours: Flowing
    """Makes a flow of rows one of results, on Spark and on the loop."""
    schema: str
    by_rdd: Callable[[Any], Any]
    in_arrow: Callable[[Any], Any]
    """Makes a frame one of results, by the quicker one of `applyInArrow` and `mapInArrow`."""
    by_group: Callable[[Any], Any] | None = None
    """The same by `applyInArrow`, where that is the slower one."""


def sessions() -> Work:
    """A session ends where a user makes no click for half an hour."""
    pause = 1_800

    def user(row: tuple[int, int]) -> int:
        return row[0]

    def at(row: tuple[int, int]) -> int:
        return row[1]

    def step(state: tuple[int, int], row: tuple[int, int]) -> tuple[int, int]:
        last, count = state
        return row[1], count + (row[1] - last > pause)

    def counted(pair: Any) -> tuple[int, int]:
        return pair[0], pair[1][1]

    def ours(flow: Flow[Any]) -> Flow[Any]:
        return flow.group_by_key(user, order_by=at, max_keys=KEYS).fold(step, (-1_000_000, 0)).map(counted)

    def of_times(times: Iterable[int]) -> int:
        count, last = 0, -1_000_000
        for time in sorted(times):
            count += time - last > pause
            last = time
        return count

    def of_table(table: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        arrow: Any = pa
        times = np.sort(table.column("at").to_numpy())
        count = 1 + int((np.diff(times) > pause).sum())
        return arrow.table({"user": table.column("user")[:1], "sessions": arrow.array([count], arrow.int64())})

    before = "lag(at, 1, -1000000) OVER (PARTITION BY user ORDER BY at)"
    return Work(
        "sessions of a click stream",
        "clicks",
        "user, at",
        f"SELECT user, sum(new) FROM (SELECT user, CAST(at - {before} > {pause} AS int) AS new FROM clicks) GROUP BY user",
        ours,
        "user long, sessions long",
        lambda rdd: rdd.map(tuple).groupByKey().mapValues(of_times),
        lambda frame: frame.groupBy("user").applyInArrow(of_table, "user long, sessions long"),
    )


def words() -> Work:
    """How often each word is in the comments of the lines of orders."""

    def split(row: tuple[str]) -> list[str]:
        return row[0].split()

    def itself(word: str) -> str:
        return word

    def once(word: str) -> tuple[str, int]:
        return word, 1

    def ours(flow: Flow[Any]) -> Flow[Any]:
        return flow.flat_map_iterable(split).group_by_key(itself, max_keys=KEYS).count()

    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        arrow: Any = pa
        counts: Counter[str] = Counter()
        for batch in batches:
            for text in batch.column(0).to_numpy(zero_copy_only=False).tolist():
                counts.update(text.split())
        arrays = [arrow.array(list(counts), arrow.string()), arrow.array(list(counts.values()), arrow.int64())]
        yield arrow.RecordBatch.from_arrays(arrays, ["word", "n"])

    def each(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        arrow: Any = pa
        for batch in batches:
            texts = batch.column(0).to_numpy(zero_copy_only=False).tolist()
            found = arrow.array([word for text in texts for word in text.split()], arrow.string())
            yield arrow.RecordBatch.from_arrays([found], ["word"])

    def of_table(table: Any) -> Any:
        import pyarrow as pa

        arrow: Any = pa
        return arrow.table({"word": table.column("word")[:1], "n": arrow.array([table.num_rows], arrow.int64())})

    return Work(
        "count of words",
        "lineitem",
        "l_comment",
        r"SELECT w, count(*) FROM (SELECT explode(split(trim(l_comment), ' +')) w FROM lineitem) WHERE w <> '' GROUP BY w",
        ours,
        "word string, n long",
        lambda rdd: rdd.flatMap(split).map(once).reduceByKey(add),
        lambda frame: frame.mapInArrow(counted, "word string, n long").groupBy("word").sum("n"),
        lambda frame: (
            frame.mapInArrow(each, "word string").groupBy("word").applyInArrow(of_table, "word string, n long")
        ),
    )


def greatest() -> Work:
    """The three highest prices of each supplier."""
    k = 3

    def supplier(row: tuple[int, int]) -> int:
        return row[0]

    def price(row: tuple[int, int]) -> int:
        return row[1]

    def several(pair: Any) -> list[tuple[int, int]]:
        return [(pair[0], value) for value in pair[1]]

    def ours(flow: Flow[Any]) -> Flow[Any]:
        return flow.group_by_key(supplier, max_keys=KEYS).map(price).top_k(k).pairs().flat_map_iterable(several)

    def of_table(table: Any) -> Any:
        return table.take(table.column(1).to_numpy().argsort()[-k:])

    def by_rdd(rdd: Any) -> Any:
        def more(heap: list[int], value: int) -> list[int]:
            return heapq.nlargest(k, [*heap, value])

        def merged(mine: list[int], others: list[int]) -> list[int]:
            return heapq.nlargest(k, [*mine, *others])

        return rdd.map(tuple).aggregateByKey([], more, merged).flatMap(several)

    ranked = "row_number() OVER (PARTITION BY l_suppkey ORDER BY l_extendedprice DESC)"
    return Work(
        "three greatest of each key",
        "lineitem",
        "l_suppkey, l_extendedprice",
        f"SELECT s, p FROM (SELECT l_suppkey s, l_extendedprice p, {ranked} r FROM lineitem) WHERE r <= {k}",
        ours,
        "supplier long, price long",
        by_rdd,
        lambda frame: frame.groupBy("l_suppkey").applyInArrow(of_table, "l_suppkey long, l_extendedprice long"),
    )


WORKS: Final = (sessions(), words(), greatest())


def _frame(spark: SparkSession, work: Work) -> Any:
    return spark.sql(f"SELECT {work.columns} FROM {work.table}")


def by_frame(spark: SparkSession, work: Work) -> Rows:
    return in_order(work.ours(Flow.from_spark(_frame(spark, work), as_=tuple)).to_frame(work.schema).collect())


def by_rdd(spark: SparkSession, work: Work) -> Rows:
    return in_order(work.by_rdd(_frame(spark, work).rdd).collect())


def in_arrow(spark: SparkSession, work: Work) -> Rows:
    return in_order(work.in_arrow(_frame(spark, work)).collect())


def by_group(spark: SparkSession, work: Work) -> Rows:
    assert work.by_group is not None
    return in_order(work.by_group(_frame(spark, work)).collect())


def by_sql(spark: SparkSession, work: Work) -> Rows:
    return in_order(spark.sql(work.sql).collect())


def on_the_loop(folder: Path, work: Work) -> Rows:
    return in_order(work.ours(Flow.from_iterable(rows_of(folder, work.table, work.columns))).run_sync())


WAYS: Final[dict[str, Callable[[SparkSession, Work], Rows]]] = {
    "reactive_aio, to_frame": by_frame,
    "RDD by hand": by_rdd,
    "in Arrow by hand": in_arrow,
    "Spark's SQL": by_sql,
}
BY_GROUP: Final = "applyInArrow by hand"


def ways_of(work: Work) -> dict[str, Callable[[SparkSession, Work], Rows]]:
    """Return the ways on Spark, with `applyInArrow` where another way in Arrow is quicker."""
    return WAYS if work.by_group is None else {**WAYS, BY_GROUP: by_group}
