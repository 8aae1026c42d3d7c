"""Frames that Spark does not plan anew. Where all columns are flat, it does not weigh their batches either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from reactive_aio import Flow
from tests.spark.tally import Tally

pytestmark = pytest.mark.spark
pa: Any = pytest.importorskip("pyarrow")
pyspark: Any = pytest.importorskip("pyspark")
types: Any = pytest.importorskip("pyspark.sql.types")
functions: Any = pytest.importorskip("pyspark.sql.functions")

from py4j.clientserver import JavaClient  # noqa: E402
from pyspark.sql.classic.dataframe import DataFrame  # noqa: E402

from reactive_aio.spark._source.unweighed import NO_BOUND, SIZES, Unweighed, rows_of_a_batch  # noqa: E402
from reactive_aio.spark._task.outlet import LARGEST_CHUNK  # noqa: E402

# -- how many rows


@attrs.frozen
class Settings:
    """Stands in for the settings of a session."""

    size: int = 64 << 20
    records: int = 10_000

    def arrowMaxBytesPerBatch(self) -> int:  # noqa: N802 - of Spark
        return self.size

    def arrowMaxRecordsPerBatch(self) -> int:  # noqa: N802 - of Spark
        return self.records


def of(*kinds: Any) -> Any:
    return types.StructType([types.StructField(f"c{at}", kind) for at, kind in enumerate(kinds)])


LONG, TEXT = types.LongType(), types.StringType()


def test_a_batch_has_no_more_rows_than_leave_a_worker_at_a_time() -> None:
    assert LARGEST_CHUNK == rows_of_a_batch(of(LONG), Settings())
    assert LARGEST_CHUNK == rows_of_a_batch(of(LONG), Settings(NO_BOUND, 0))


def test_rows_of_a_fixed_size_keep_the_bound_of_bytes() -> None:
    assert 500 == rows_of_a_batch(of(*[LONG] * 1_000), Settings(4_000_000))


def test_a_row_that_is_larger_is_a_batch_by_itself() -> None:
    assert 1 == rows_of_a_batch(of(LONG, LONG), Settings(9))


def test_a_batch_has_no_more_rows_than_the_session_allows() -> None:
    assert 5 == rows_of_a_batch(of(LONG), Settings(records=5))


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        (LONG, types.BinaryType()),
        (types.ArrayType(LONG),),
        (of(LONG),),
        (types.MapType(LONG, LONG),),
        (types.VariantType(),),
    ],
    ids=str,
)
def test_what_may_be_of_any_size_is_weighed(kinds: tuple[Any, ...]) -> None:
    assert 0 == rows_of_a_batch(of(*kinds), Settings())


def test_texts_are_weighed_where_the_session_has_a_bound_of_bytes() -> None:
    assert 0 == rows_of_a_batch(of(LONG, TEXT), Settings())
    assert LARGEST_CHUNK == rows_of_a_batch(of(LONG, TEXT), Settings(NO_BOUND))


def test_the_sizes_are_those_that_arrow_has() -> None:
    from pyspark.sql.pandas.types import to_arrow_type

    sizes = {kind: to_arrow_type(kind(), timezone="UTC") for kind in SIZES if kind is not types.NullType}

    assert {kind: max(1, arrow.bit_width // 8) for kind, arrow in sizes.items()} == {
        kind: size for kind, size in SIZES.items() if kind is not types.NullType
    }


# -- on Spark


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All frames that `mapInArrow` is called on."""
    frames: list[Any] = []
    original = DataFrame.mapInArrow

    def noting(self: Any, *args: Any, **options: Any) -> Any:
        frames.append(self)
        return original(self, *args, **options)

    monkeypatch.setattr(DataFrame, "mapInArrow", noting)
    return frames


@pytest.fixture
def unbounded(spark: Any) -> Iterator[None]:
    """Have Spark weigh no batch, of texts either."""
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(NO_BOUND))
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxBytesPerBatch")


@attrs.frozen
class Named:
    name: str | None


@pytest.mark.usefixtures("unbounded")
@pytest.mark.parametrize("as_", [types.Row, tuple, dict, Named])
async def test_the_plan_of_a_frame_of_flat_columns_is_the_one_that_is_run(
    spark: Any, mapped: list[Any], as_: type[Any]
) -> None:
    frame = spark.range(0, 3_000, 1, 3).selectExpr("id", "if(id % 7 = 0, null, concat('r', id)) AS name")
    rows = frame.collect()

    found = await Flow.from_spark(frame, as_=as_).to_list()

    assert not mapped
    made: dict[Any, Any] = {
        types.Row: lambda row: row,
        tuple: tuple,
        dict: lambda row: row.asDict(),
        Named: lambda row: Named(row.name),
    }
    assert [made[as_](row) for row in rows] == found


async def test_texts_of_any_size_are_weighed_over_the_plan_of_the_frame(spark: Any, mapped: list[Any]) -> None:
    texts = spark.range(0, 40, 1, 1).selectExpr("repeat(cast(id AS string), 1000) AS id")
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", "4000")
    try:
        sizes = await Flow.from_spark(texts, as_=pa.RecordBatch).map(lambda batch: batch.num_rows).to_list()
        rows = await Flow.from_spark(texts, as_=tuple).to_list()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxBytesPerBatch")

    assert [(1_000 * str(n),) for n in range(40)] == rows
    assert (40, True) == (sum(sizes), max(sizes) <= 4)
    assert not mapped


async def test_a_flow_of_a_frame_makes_few_calls_into_the_jvm(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow that had Spark plan the frame anew made 86."""
    flow = Flow.from_spark(spark.range(0, 20, 1, 2).selectExpr("cast(id AS string) AS id"), as_=tuple)
    assert 20 == await flow.count()
    calls: list[str] = []
    original = JavaClient.send_command

    def noting(self: Any, command: str, *args: Any, **options: Any) -> Any:
        if not command.startswith("m"):  # an object is let go of, by a thread of Py4J
            calls.append(command)
        return original(self, command, *args, **options)

    monkeypatch.setattr(JavaClient, "send_command", noting)
    assert 20 == await flow.count()

    assert 0 < len(calls) <= 50  # a few more where the thread has local properties, or the session caches something


async def test_a_frame_is_read_with_the_settings_of_its_own_session(spark: Any) -> None:
    zones, sizes = ("America/New_York", "Asia/Tokyo"), (3, 7)
    found: list[Any] = []
    for zone, size in zip(zones, sizes, strict=True):
        session = spark.newSession()
        session.conf.set("spark.sql.session.timeZone", zone)
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(size))
        frame = session.range(0, 20, 1, 1).selectExpr("'x' AS text", "timestamp_seconds(id) AS at")
        batches = await Flow.from_spark(frame, as_=pa.RecordBatch).to_list()
        rows = await Flow.from_spark(frame, as_=tuple).to_list()
        found.append((rows[0][1].hour, batches[0].num_rows))

    assert [(19, 3), (9, 7)] == found


def test_tasks_have_the_settings_of_the_session(spark: Any) -> None:
    """Without them Spark would read rows by its defaults: here it would compress nothing."""
    conf = spark._jsparkSession.sessionState().conf()
    sizes: list[int] = []
    for codec in ("none", "zstd"):
        spark.conf.set("spark.sql.execution.arrow.compression.codec", codec)
        parts = Unweighed(spark.range(0, 2_048, 1, 1), conf, 2_048, "UTC")
        batches = pyspark.RDD(parts.rdd.toJavaRDD(), spark.sparkContext, pyspark.serializers.NoOpSerializer())
        sizes += batches.map(len).collect()
    spark.conf.unset("spark.sql.execution.arrow.compression.codec")

    assert 2 * sizes[1] < sizes[0]


@pytest.mark.parametrize("kind", ["long", "string"])
async def test_a_frame_that_is_cached_between_two_flows_is_read_from_the_cache(
    spark: Any, tally: Tally, kind: str
) -> None:
    make = int if kind == "long" else str
    noted = functions.udf(tally.counting(make), kind, useArrow=False)
    frame = spark.range(0, 100, 1, 1).select(noted("id").alias("id"))
    flow = Flow.from_spark(frame, as_=tuple)
    assert 100 == await flow.count()
    frame.cache()
    for _ in range(2):
        assert [(make(n),) for n in range(100)] == await flow.to_list()
    frame.unpersist()

    assert 200 == tally.count
