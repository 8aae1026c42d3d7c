"""A flow that is built or started on a session that has ended fails at once, and the error says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import LongType, StructField, StructType

from reactive_aio import Flow, SparkJobError, schedulers
from reactive_aio.spark._job.asking import asking, is_stopped
from reactive_aio.spark.sink import Files, Frames, Table
from reactive_aio.spark.streaming import feed, inbox, register

pytestmark = pytest.mark.spark

STRUCT = StructType([StructField("x", LongType())])


async def write(writer: Any, schema: Any = "x long", flow: Flow[Any] | None = None) -> None:
    await (flow or Flow.of((1,))).to_spark(writer, schema)


async def start_feed(session: Any) -> None:
    async with feed(Flow.of((1,)), session, "x long") as own:
        await own.frame()


async def write_to_an_inbox(frame: Any, folder: Path) -> None:
    async with inbox() as own:
        await own.start(frame, checkpoint=folder)


@pytest.fixture
def ways(spark: Any, sc: Any, tmp_path: Path) -> dict[str, Callable[[], object]]:
    """Every way in, with the data and writers at hand of a session that still runs."""
    frame, rdd = spark.range(3), sc.parallelize([1], 1)
    stream = spark.readStream.format("rate").load()
    files = Files(spark, tmp_path / "out")
    return {
        "from_spark(DataFrame)": lambda: Flow.from_spark(frame),
        "from_spark(RDD)": lambda: Flow.from_spark(rdd),
        "from_spark(wire='results')": lambda: Flow.from_spark(frame, wire="results"),
        "from_spark(checkpoint=...)": lambda: Flow.from_spark(stream, checkpoint=tmp_path / "checkpoint"),
        "schedulers.spark(session)": lambda: schedulers.spark(spark),
        "schedulers.spark(session, slots)": lambda: schedulers.spark(spark, 1),
        "register": lambda: register(spark),
        "feed": lambda: start_feed(spark),
        "Inbox.start": lambda: write_to_an_inbox(stream, tmp_path / "checkpoint"),
        "to_spark(Files)": lambda: write(files),
        "to_spark(Table)": lambda: write(Table(spark, "never")),
        "to_spark(Frames)": lambda: write(Frames(spark, lambda *_: None)),
        "to_spark(schema=StructType)": lambda: write(files, STRUCT),
    }


async def begun(way: Callable[[], object]) -> None:
    done = way()
    if isinstance(done, Awaitable):
        await done


async def test_a_session_that_has_been_stopped_is_refused_whatever_is_begun_on_it(
    ways: dict[str, Callable[[], object]], sc: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sc, "_jsc", None)  # as SparkContext.stop does
    for name, way in ways.items():
        with pytest.raises(SparkJobError, match=rf"^{name.partition('(')[0]}\(\): its session has been stopped"):
            await begun(way)


@pytest.fixture
def deaf(sc: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the JVM not answer, as one that has been killed."""

    def refused(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    with monkeypatch.context() as patch:
        patch.setattr(type(sc._gateway._gateway_client), "send_command", refused)
        yield


async def test_a_jvm_that_does_not_answer_is_named_by_whatever_asks_it(
    ways: dict[str, Callable[[], object]], deaf: None
) -> None:
    quiet = {"from_spark(RDD)", "schedulers.spark(session, slots)"}  # which ask nothing until they run
    for name, way in ways.items():
        if name not in quiet:
            with pytest.raises(SparkJobError, match=rf"^{name.partition('(')[0]}\(.*Connection refused$"):
                await begun(way)


async def test_a_query_on_a_session_that_has_been_stopped_since_the_flow_was_built_says_so(
    spark: Any, sc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow.from_spark(spark.readStream.format("rate").load(), checkpoint=tmp_path / "checkpoint")
    monkeypatch.setattr(sc, "_jsc", None)

    with pytest.raises(SparkJobError, match="its session has been stopped"):
        await flow.first()


async def test_a_sink_whose_session_is_stopped_under_it_says_so_and_what_is_committed(
    spark: Any, sc: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks(*_: object) -> None:
        sc.parallelize([])  # AttributeError, where it has been stopped

    async def elements() -> Any:
        yield (1,)
        await asyncio.sleep(0)
        monkeypatch.setattr(sc, "_jsc", None)
        yield (2,)

    told = r"batch #1 was not written: its session has been stopped\nto_spark: 1 batches .* are committed, 1 rows$"
    with pytest.raises(SparkJobError, match=told):
        await Flow.from_async_iterable(elements()).to_spark(Frames(spark, asks), STRUCT, size=1)


def test_what_a_jvm_answers_is_left_as_it_is(spark: Any, sc: Any) -> None:
    with pytest.raises(Py4JJavaError, match="IndexOutOfBounds"), asking("from_spark", spark):
        sc._jvm.java.util.ArrayList().get(0)


def test_a_session_of_spark_connect_is_asked_whether_it_has_been_stopped() -> None:
    made = type("SparkSession", (SimpleNamespace,), {"__module__": "pyspark.sql.connect.session"})

    assert (False, True) == (is_stopped(made(is_stopped=False)), is_stopped(made(is_stopped=True)))
