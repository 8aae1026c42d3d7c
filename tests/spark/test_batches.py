"""Arrow's batches as elements: from a DataFrame to the loop, through functions in the workers, and back into a frame."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from reactive_aio import Flow, UnsupportedOnSparkError

pa: Any = pytest.importorskip("pyarrow")
compute: Any = pytest.importorskip("pyarrow.compute")
pytest.importorskip("pyspark")

from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType  # noqa: E402

from reactive_aio._remote.variables import Values  # noqa: E402
from reactive_aio.spark._frame.task import FrameTask, Weighed  # noqa: E402
from reactive_aio.spark._results.task import Kept, ResultsTask  # noqa: E402
from reactive_aio.spark._task.batches import ReadingBatches  # noqa: E402

pytestmark = pytest.mark.spark

TYPES = (
    "n long, small short, x double, text string, raw binary, yes boolean, day date, at timestamp, wall timestamp_ntz, "
    "price decimal(9,2), many array<int>, named map<string,int>, pair struct<a:int,b:string>"
)
ROW = (
    1, 2, 0.5, "a", b"\0", True, date(2026, 3, 29), datetime(2026, 3, 29, 1, 30), datetime(2026, 3, 29, 2, 30),
    Decimal("1.25"), [1, None], {"a": 1}, (1, "b"),
)  # fmt: skip


def frame_of_all_types(spark: Any) -> Any:
    rows = [ROW, (None,) * len(ROW), *[(n, *ROW[1:]) for n in range(30)]]
    return spark.createDataFrame(rows, TYPES).repartition(3, "n")


def numbers(spark: Any, rows: int = 100_000, partitions: int = 2, **settings: Any) -> Flow[Any]:
    frame = spark.range(0, rows, 1, partitions).selectExpr("id AS n", "id % 7 AS rest")
    return Flow.from_spark(frame, as_=pa.RecordBatch, **settings)


def squared(batch: Any) -> Any:
    n = batch.column("n")
    return pa.RecordBatch.from_arrays([compute.multiply(n, n)], ["square"])


def in_text(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("wire", ["tcp", "results"])
async def test_the_batches_have_the_rows_of_the_frame(spark: Any, wire: str) -> None:
    frame = frame_of_all_types(spark)

    batches = await Flow.from_spark(frame, as_=pa.RecordBatch, wire=wire).to_list()

    assert len(batches) > 1
    assert frame.columns == batches[0].schema.names
    table = pa.Table.from_batches(batches)
    assert frame.count() == table.num_rows
    rows = await Flow.from_spark(frame, as_=tuple).to_list()
    for at, name in enumerate(frame.columns):
        if name not in {"at", "named", "pair"}:  # Arrow's Python values of these differ from PySpark's
            assert [row[at] for row in rows] == table.column(name).to_pylist()


async def test_functions_see_whole_batches_in_the_workers(spark: Any) -> None:
    flow = numbers(spark).filter(lambda batch: batch.num_rows > 0).map(squared)

    batches = await flow.to_list()

    assert 10 == len(batches)  # Spark's of 10,000 rows
    assert [n * n for n in range(100_000)] == [n for batch in batches for n in batch.column(0).to_pylist()]
    assert "-> filter(<lambda>) -> map(squared)" in flow.describe().splitlines()[0]


async def test_demand_counts_batches(spark: Any) -> None:
    flow = numbers(spark, prefetch=1)

    assert [10_000, 10_000] == [batch.num_rows for batch in await flow.take(2).to_list()]
    assert 5 == await flow.index().filter(lambda pair: pair[0] % 2 == 0).count()


async def test_a_slice_travels_without_the_rest_of_its_batch(spark: Any) -> None:
    flow = numbers(spark).map(lambda batch: batch.slice(0, 10))

    batches = await flow.to_list()

    assert {10} == {batch.num_rows for batch in batches}
    assert max(batch.get_total_buffer_size() for batch in batches) < 10_000


async def test_names_that_come_twice_and_wide_frames_keep_their_names(spark: Any) -> None:
    twice = spark.range(3).selectExpr("id AS a", "id + 1 AS a", "id AS `b``c`")
    (batch,) = [each for each in await Flow.from_spark(twice.coalesce(1), as_=pa.RecordBatch).to_list() if len(each)]
    assert ["a", "a", "b`c"] == batch.schema.names
    assert [1, 2, 3] == batch.column(1).to_pylist()

    wide = spark.range(3).selectExpr(*[f"id + {n} AS c{n}" for n in range(150)]).coalesce(1)
    (batch,) = [each for each in await Flow.from_spark(wide, as_=pa.RecordBatch).to_list() if len(each)]
    assert [f"c{n}" for n in range(150)] == batch.schema.names
    assert [149, 150, 151] == batch.column(149).to_pylist()


async def test_a_failure_names_the_operator_and_comes_behind_the_batches_before_it(spark: Any) -> None:
    def fail(batch: Any) -> Any:
        if batch.column(0)[0].as_py() == 20_000:
            raise LookupError("here")
        return batch

    taken: list[Any] = []
    with pytest.raises(LookupError, match="here") as failed:
        await numbers(spark).map(fail).for_each(taken.append)

    assert 2 == len(taken)
    assert any(note.startswith("in map(fail), chained at ") for note in failed.value.__notes__)


@pytest.mark.parametrize("schema", [TYPES, "text string, n long"])
def test_batches_become_the_columns_of_a_frame_by_their_names(spark: Any, schema: str) -> None:
    frame = frame_of_all_types(spark)

    made = Flow.from_spark(frame, as_=pa.RecordBatch).to_frame(schema)

    assert in_text(frame.select(*made.columns).collect()) == in_text(made.collect())
    assert made.schema.simpleString() == frame.select(*made.columns).schema.simpleString()


def test_a_frame_has_what_functions_make_of_batches(spark: Any) -> None:
    made = numbers(spark, partitions=1).map(squared).to_frame("square long")

    (row,) = made.selectExpr("count(*)", "max(square)").collect()
    assert (100_000, 99_999**2) == tuple(row)


def test_times_of_another_zone_and_large_text_are_the_same_values(spark: Any) -> None:
    def elsewhere(_: Any) -> Any:
        times = pa.array([datetime(2026, 7, 1, 12, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo"))
        return pa.RecordBatch.from_arrays([times, pa.array(["a"], pa.large_string())], ["at", "text"])

    made = numbers(spark, 1, 1).map(elsewhere).to_frame("at timestamp, text string")

    (row,) = made.selectExpr("unix_timestamp(at)", "text").collect()
    assert (datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp(), "a") == tuple(row)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("square string", "element #0, column square: string is needed, not int64. Cast the column"),
        ("square int", "element #0, column square: int32 is needed, not int64. Cast the column"),
        ("cube long", "element #0 is a batch with no column 'cube'. It has the columns square"),
    ],
)
def test_columns_that_do_not_fit_are_named_with_both_types(spark: Any, schema: str, said: str) -> None:
    made = numbers(spark, 10, 1).map(squared).to_frame(schema)

    with pytest.raises(Exception, match="SchemaMismatchError") as failed:
        made.collect()

    assert said in str(failed.value)


@pytest.mark.parametrize(
    ("values", "type_", "needed"),
    [
        ([datetime(2026, 1, 1, 12)], pa.timestamp("us"), "timestamp"),
        ([datetime(2026, 1, 1, 12, tzinfo=UTC)], pa.timestamp("us", "UTC"), "timestamp_ntz"),
        ([["1", "2"]], pa.list_(pa.string()), "array<int>"),
        ([{"x": 1}], pa.struct([("x", pa.int64())]), "struct<a:bigint,b:bigint>"),
        ([{"a": 1}], pa.struct([("a", pa.int64())]), "struct<a:bigint,b:bigint>"),
        ([[("a", "1")]], pa.map_(pa.string(), pa.string()), "map<string,int>"),
        ([Decimal("123.45")], pa.decimal128(5, 2), "decimal(4,2)"),
    ],
)
def test_nothing_is_converted_to_a_type_of_other_values(spark: Any, values: Any, type_: Any, needed: str) -> None:
    made = numbers(spark, 1, 1).map(lambda _: pa.RecordBatch.from_arrays([pa.array(values, type_)], ["it"]))

    with pytest.raises(Exception, match=r"element #0, column it: .* is needed, not "):
        made.to_frame(f"it {needed}").collect()


@pytest.mark.parametrize("step", [lambda flow: flow.take(2), lambda flow: flow.map(squared).skip(2)])
def test_spark_does_not_count_rows_where_the_flow_counts_batches(spark: Any, step: Any) -> None:
    with pytest.raises(UnsupportedOnSparkError, match=r"(take|skip)\(2\)"):
        step(numbers(spark, ordered=False)).to_frame("n long, rest long")


def test_a_type_that_arrow_does_not_have_is_refused_when_the_flow_is_built(spark: Any) -> None:
    with pytest.raises(TypeError, match=r"from_spark\(as_=RecordBatch\): Arrow has no type"):
        Flow.from_spark(spark.sql("SELECT INTERVAL '1' MONTH AS months"), as_=pa.RecordBatch)


@pytest.mark.parametrize(
    ("values", "type_", "needed"),
    [
        ([[1, None]], pa.list_(pa.int64()), ArrayType(LongType(), containsNull=False)),
        ([[("a", None)]], pa.map_(pa.string(), pa.int64()), MapType(StringType(), LongType(), valueContainsNull=False)),
        (
            [{"a": [[1], [None]]}],
            pa.struct([("a", pa.list_(pa.list_(pa.int64())))]),
            StructType().add("a", ArrayType(ArrayType(LongType(), containsNull=False))),
        ),
    ],
)
def test_null_inside_a_column_that_has_none_there_is_refused(spark: Any, values: Any, type_: Any, needed: Any) -> None:
    made = numbers(spark, 1, 1).map(lambda _: pa.RecordBatch.from_arrays([pa.array(values, type_)], ["it"]))

    with pytest.raises(Exception, match="element #0, column it: int64 not null is needed, not null in "):
        made.to_frame(StructType().add("it", needed)).collect()


def test_what_the_place_of_a_null_holds_is_not_looked_at(spark: Any) -> None:
    def hidden(_: Any) -> Any:
        inner = pa.array([1, None, 2], pa.int64())
        lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), inner, mask=pa.array([False, True, False]))
        maps = pa.array([[("a", None)], [("a", 1)], None], pa.map_(pa.string(), pa.int64()))
        return pa.RecordBatch.from_arrays([lists, maps], ["it", "named"]).slice(1)

    strict = MapType(StringType(), LongType(), valueContainsNull=False)
    made = numbers(spark, 1, 1).map(hidden)

    rows = made.to_frame(
        StructType().add("it", ArrayType(LongType(), containsNull=False)).add("named", strict)
    ).collect()

    assert [(None, {"a": 1}), ([2], None)] == list(map(tuple, rows))


def test_null_in_a_column_that_has_none_is_refused(spark: Any) -> None:
    def nothing(_: Any) -> Any:
        return pa.RecordBatch.from_arrays([pa.array([None], pa.int64())], ["n"])

    from pyspark.sql.types import LongType, StructField, StructType

    made = numbers(spark, 10, 1).map(nothing).to_frame(StructType([StructField("n", LongType(), nullable=False)]))

    with pytest.raises(Exception, match="column n: int64 not null is needed"):
        made.collect()


@pytest.mark.parametrize(
    "flow",
    [
        lambda spark: numbers(spark, 10, 1).repartition(2),
        lambda spark: Flow.from_spark(spark.range(2), as_=tuple).map(
            lambda row: pa.RecordBatch.from_pydict({"n": row})
        ),
    ],
    ids=["behind a shuffle", "made of rows"],
)
def test_a_batch_in_the_place_of_a_row_is_refused_and_the_way_out_is_told(
    spark: Any, flow: Callable[[Any], Flow[Any]]
) -> None:
    with pytest.raises(Exception, match="an element is a RecordBatch, but the elements are taken for rows"):
        flow(spark).to_frame("n long").collect()

    rows = flow(spark).flat_map_iterable(lambda batch: batch.to_pylist()).to_frame("n long").collect()
    assert {0, 1} <= {row.n for row in rows}


@pytest.mark.parametrize("as_", [pa.Table, list, 5], ids=repr)
def test_what_is_no_kind_of_rows_is_told_that_batches_are_one(spark: Any, as_: Any) -> None:
    with pytest.raises(TypeError, match=r"must be Row, tuple, dict, pyarrow\.RecordBatch or an attrs class"):
        Flow.from_spark(spark.range(1), as_=as_)


def test_micro_batches_have_rows(spark: Any, tmp_path: Any) -> None:
    stream = spark.readStream.format("rate").load()

    with pytest.raises(TypeError, match="as_ must be Row, tuple, dict or an attrs class"):
        Flow.from_spark(stream, as_=pa.RecordBatch, checkpoint=tmp_path)


class Counted:
    """Batches of nine mebibytes, and how many have been read."""

    def __init__(self) -> None:
        self.read = 0
        self.batch = pa.RecordBatch.from_pydict({"data": [b"x" * (9 << 20)]})

    def __iter__(self) -> Any:
        for _ in range(5):
            self.read += 1
            yield self.batch


def work() -> bytes:
    """Pickle a region without stages."""
    return pickle.dumps(((), Values()))


def test_large_batches_go_to_the_loop_one_at_a_time() -> None:
    task = ResultsTask("source", work(), ReadingBatches(pa.RecordBatch))
    batches, kept = Counted(), Kept(0)

    for number, _ in enumerate(task.chunks(task.rows(iter(batches)), kept), 1):
        assert number == batches.read
    assert [1] * 5 == [frame.count for frame in kept.frames]


def test_large_batches_go_into_a_frame_a_few_at_a_time() -> None:
    batches, reading = Counted(), ReadingBatches(pa.RecordBatch)

    lists = FrameTask("source", work()).of_rows(reading, Weighed.of(reading, iter(batches)))

    assert 2 == len(next(lists))
    assert 2 == batches.read
