"""A frame of a flow has the instants that were read, though the session's zone changes after it was made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from reactive_aio import Flow

pytest.importorskip("pyspark")

from pyspark.sql import Row, functions

from reactive_aio.spark._task.zones import in_zone

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"
SECONDS = [1_700_000_000, 1_729_989_000, 1_729_992_600]
"""The last two are the hour that Berlin's clocks show twice."""


@pytest.fixture
def in_berlin(spark: Any) -> Iterator[None]:
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Europe/Berlin")
    yield
    spark.conf.set(ZONE, before)


def itself(row: Any) -> Any:
    return row


def times(spark: Any) -> Any:
    frame = spark.createDataFrame([(each,) for each in SECONDS], "s long").coalesce(1)
    return frame.select(functions.timestamp_seconds("s").alias("t"))


def nested(spark: Any) -> Any:
    return times(spark).select(
        functions.array(functions.struct(functions.create_map(functions.lit("k"), "t").alias("m"))).alias("t")
    )


def of_nested(frame: Any) -> Any:
    return frame.select(frame.t[0]["m"]["k"].alias("t"))


FLOWS: dict[str, Callable[[Any], Any]] = {
    "times": lambda spark: Flow.from_spark(times(spark), as_=tuple).map(itself).to_frame("t timestamp"),
    "nested": lambda spark: of_nested(
        Flow.from_spark(nested(spark), as_=tuple).map(itself).to_frame("t array<struct<m: map<string, timestamp>>>")
    ),
    "by key": lambda spark: (
        (Flow.from_spark(times(spark), as_=tuple).group_by_key(lambda row: row[0].day).map(itself).pairs())
        .map(lambda pair: pair[1])
        .to_frame("t timestamp")
    ),
    "batches": lambda spark: Flow.from_spark(times(spark), as_=pa.RecordBatch).map(itself).to_frame("t timestamp"),
}


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("name", FLOWS)
def test_a_frame_has_the_same_instants_in_another_zone(spark: Any, name: str) -> None:
    frame = FLOWS[name](spark)
    spark.conf.set(ZONE, "Asia/Tokyo")

    found = [row.s for row in frame.select(functions.unix_seconds("t").alias("s")).collect()]

    assert sorted(found) == SECONDS


@pytest.mark.usefixtures("in_berlin")
def test_an_rdd_has_the_clock_of_the_zone_in_which_it_was_made(spark: Any) -> None:
    rdd = Flow.from_spark(times(spark), as_=tuple).map(itself).to_rdd()
    spark.conf.set(ZONE, "Asia/Tokyo")

    assert dt.datetime(2023, 11, 14, 23, 13, 20) == rdd.first()[0]


def test_what_has_no_zone_is_left_as_it_is() -> None:
    batch: Any = pa.RecordBatch.from_pydict({"n": [1], "t": [dt.datetime(2024, 1, 1)]})

    assert batch is in_zone(batch, "Asia/Tokyo")


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("as_", [Row, pa.RecordBatch])
def test_a_null_struct_may_hold_what_must_not_be_null_beside_a_time(spark: Any, as_: Any) -> None:
    many = "array(named_struct('z', id), null)"
    frame = spark.range(4).selectExpr(f"if(id % 2 = 0, null, struct({many} AS many, timestamp_seconds(id) AS at)) AS x")
    made = Flow.from_spark(frame, as_=as_).to_frame(frame.schema)
    spark.conf.set(ZONE, "Asia/Tokyo")

    assert frame.collect() == made.select("*").collect()


def test_an_empty_map_of_no_type_stands_beside_times(spark: Any) -> None:
    frame = spark.sql(
        "select map() as empty, map('a', timestamp'2024-01-01 00:00:00') as times, map('a', map()) as deep"
    )
    row: tuple[Any, ...] = ({}, {"a": dt.datetime(2024, 1, 1)}, {"a": {}})

    assert [row] == [*map(tuple, Flow.from_spark(frame).to_rdd().collect())]
    assert [row[1:2]] == Flow.from_spark(frame, as_=tuple).map(lambda read: read[1:2]).to_frame(
        "times map<string, timestamp_ntz>"
    ).collect()


TWO: dict[str, Callable[[Flow[Any], Flow[Any]], Flow[Any]]] = {
    "concat": lambda some, others: some.concat(others).map(itself),
    "by key": lambda some, others: (
        some.concat(others).group_by_key(lambda row: row[0]).map(itself).pairs().map(lambda pair: pair[1])
    ),
    "join": lambda some, others: (
        some.group_by_key(lambda row: row[0])
        .join(others.group_by_key(lambda row: row[0]))
        .flat_map_iterable(lambda pair: pair[1])
    ),
}


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("turned", [False, True])
def test_a_frame_of_two_sessions_has_the_instants_of_both(spark: Any, name: str, turned: bool) -> None:
    other = spark.newSession()
    other.conf.set(ZONE, "Asia/Tokyo")
    sessions = [other, spark] if turned else [spark, other]
    flows = [Flow.from_spark(times(each).limit(1), as_=tuple) for each in sessions]

    frame = TWO[name](*flows).to_frame("t timestamp")

    assert SECONDS[:1] * 2 == [row.s for row in frame.select(functions.unix_seconds("t").alias("s")).collect()]
