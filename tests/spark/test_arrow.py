"""Frames that Spark does not plan anew, in batches that are made as those of Spark Connect."""

from __future__ import annotations

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

from reactive_aio._remote.frames import Frame  # noqa: E402
from reactive_aio.spark._delivery.delivery import Delivery  # noqa: E402
from reactive_aio.spark._source import arrow  # noqa: E402
from reactive_aio.spark._task.outlet import LARGEST_CHUNK  # noqa: E402
from reactive_aio.spark._task.slices import MOST_VALUES  # noqa: E402

RECORDS, BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"


@pytest.fixture
def session(spark: Any) -> Any:
    """Make a session whose settings may be changed."""
    return spark.newSession()


def streams_of(frame: Any) -> list[bytes]:
    """Return the batches that tasks are to read, each as a stream of Arrow."""
    java_rdd = arrow.Batches(frame, arrow._to_batches(frame, LARGEST_CHUNK)).rdd.toJavaRDD()
    streams = pyspark.RDD(java_rdd, frame.sparkSession.sparkContext, pyspark.serializers.NoOpSerializer())
    found: list[bytes] = streams.map(bytes).collect()
    return found


def sizes_of(frame: Any) -> list[int]:
    """Return the numbers of rows of these batches."""
    return [pa.ipc.open_stream(each).read_all().num_rows for each in streams_of(frame)]


# -- how many rows


def test_a_batch_has_no_more_rows_than_leave_a_worker_at_a_time(session: Any) -> None:
    frame = session.range(0, 5_000, 1, 1)
    for records in ("10000", "0", "-1"):
        session.conf.set(RECORDS, records)
        assert [LARGEST_CHUNK, LARGEST_CHUNK, 5_000 - 2 * LARGEST_CHUNK] == sizes_of(frame)


def test_a_batch_has_no_more_rows_than_the_session_allows(session: Any) -> None:
    session.conf.set(RECORDS, "5")

    assert [5, 5, 2] == sizes_of(session.range(0, 12, 1, 1))


@pytest.mark.parametrize("value", ["repeat('x', 1000)", "cast(repeat('x', 1000) AS binary)", "array_repeat(id, 125)"])
def test_a_batch_has_no_more_bytes_than_the_session_allows_but_for_its_last_row(session: Any, value: str) -> None:
    session.conf.set(BYTES, "4000")

    assert [4, 4, 4] == sizes_of(session.range(0, 12, 1, 1).selectExpr(f"{value} AS value"))


def test_a_row_that_is_larger_is_a_batch_by_itself(session: Any) -> None:
    session.conf.set(BYTES, "4000")

    assert [4, 1, 4] == sizes_of(session.range(0, 9, 1, 1).selectExpr("repeat('x', if(id = 4, 9000, 1000)) AS text"))


def test_where_the_session_has_no_bound_of_bytes_a_batch_has_one(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "LARGEST_BATCH", 4_000)
    session.conf.set(BYTES, str(2**31 - 1))

    assert [4, 4, 4] == sizes_of(session.range(0, 12, 1, 1).selectExpr("repeat('x', 1000) AS text"))


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


@pytest.fixture(params=["with Connect", "without Connect"])
def with_connect(request: pytest.FixtureRequest, sc: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have a Spark that comes with Spark Connect, or one that does not."""
    if request.param == "without Connect":
        known = attrs.evolve(arrow._known(sc), execution=None)
        monkeypatch.setattr(arrow, "_known", lambda _: known)
    found: bool = request.param == "with Connect"
    return found


@attrs.frozen
class Named:
    name: str | None


@pytest.mark.usefixtures("with_connect")
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


async def test_flows_that_are_read_as_one_each_run_over_the_plan_of_their_frame(
    spark: Any, mapped: list[Any], with_connect: bool
) -> None:
    first, second = (
        spark.range(0, 3_000, 1, 3).selectExpr(*columns) for columns in (["id"], ["-id AS id", "'x' AS name"])
    )
    flows = [Flow.from_spark(frame, as_=tuple).map(lambda row: row[0]) for frame in (first, second)]
    both = flows[0].concat(flows[1])
    numbers = [*range(3_000), *(-n for n in range(3_000))]

    assert numbers == await both.to_list()
    assert [n + 1 for n in numbers] == await both.map(lambda n: n + 1).to_list()
    assert (6_000, 0) == (await both.count(), await both.reduce(lambda a, b: a + b, combine=lambda a, b: a + b))
    assert [*range(3_000)] * 2 == await flows[0].repeat(2).to_list()
    assert with_connect is not bool(mapped)


async def test_rows_that_are_made_on_the_loop_come_in_the_streams_of_the_jvm(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 5_000, 1, 1).selectExpr(*(f"id + {n} AS c{n}" for n in range(10)))
    rows = [tuple(row) for row in frame.collect()]
    counts: list[int] = []
    take = Delivery.chunk

    def noting(self: Any, link: Any, frame: Frame) -> None:
        counts.append(frame.count)
        take(self, link, frame)

    monkeypatch.setattr(Delivery, "chunk", noting)
    assert rows == await Flow.from_spark(frame, as_=tuple).to_list()

    most = MOST_VALUES // 10
    assert [most, most, most, 5_000 - 3 * most] == counts


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
