"""Q1 by columns: the elements are Arrow's batches, and no row is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from reactive_aio import Flow

from .queries import Query
from .ways import Rows, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _columns_kept() -> Callable[[Any], Any]:
    # Made in here, so that it travels to the workers by value.
    def kept(batch: Any) -> Any:
        from datetime import date

        import pyarrow as pa
        from pyarrow import compute

        arrow: Any = pa
        f: Any = compute
        batch = batch.filter(f.less_equal(batch.column("l_shipdate"), arrow.scalar(date(1998, 9, 2))))
        flag, status, quantity, price, discount, tax, _ = batch.columns
        reduced = f.multiply(price, f.subtract(100, discount))
        charge = f.multiply(reduced, f.add(100, tax))
        table = arrow.table([flag, status, quantity, price, reduced, charge, discount], list("abcdefg"))
        sums = table.group_by(["a", "b"]).aggregate([*((name, "sum") for name in "cdefg"), ("c", "count")])
        names = ["a", "b", *(f"{name}_sum" for name in "cdefg"), "c_count"]
        arrays = [sums.column(name).combine_chunks() for name in names]
        return arrow.RecordBatch.from_arrays(arrays, list("abcdefgh"))

    return kept


def by_frame(spark: SparkSession, query: Query) -> Rows:
    import pyarrow as pa

    frame = spark.sql(f"SELECT {query.columns} FROM lineitem")
    kept = Flow.from_spark(frame, as_=pa.RecordBatch).map(_columns_kept()).to_frame(query.schema)
    kept.createOrReplaceTempView("kept")
    return in_order(spark.sql(query.after).collect())


def by_map_in_arrow(spark: SparkSession, query: Query) -> Rows:
    kept = _columns_kept()
    frame = spark.sql(f"SELECT {query.columns} FROM lineitem")
    frame.mapInArrow(lambda batches: map(kept, batches), query.schema).createOrReplaceTempView("kept")
    return in_order(spark.sql(query.after).collect())


WAYS: Final[dict[str, Callable[[SparkSession, Query], Rows]]] = {
    "reactive_aio, batches": by_frame,
    "mapInArrow by hand": by_map_in_arrow,
}
