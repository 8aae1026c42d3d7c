"""The elements of a flow out of Spark: all of them, in order, of the class that was asked for."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow
from tests.spark.tally import Tally

pytestmark = pytest.mark.spark
sql: Any = pytest.importorskip("pyspark.sql")
Row = sql.Row


async def test_elements_of_an_rdd_come_in_the_order_of_the_partitions(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(20_000), 7)).map(lambda n: n * 3).filter(lambda n: n % 2)

    assert [n * 3 for n in range(20_000) if n * 3 % 2] == await flow.to_list()


async def test_slow_early_partitions_do_not_lose_their_turn(sc: Any) -> None:
    def late(index: Any, items: Any) -> Any:
        import time

        time.sleep(0.2 if index == 0 else 0)
        return items

    flow = Flow.from_spark(sc.parallelize(range(400), 4).mapPartitionsWithIndex(late), prefetch=16)

    assert list(range(400)) == await flow.to_list()


async def test_empty_partitions_take_their_turn_too(spark: Any) -> None:
    frame = spark.range(0, 60, 1, 6).where("id >= 10 and id < 20 or id >= 50")

    assert [*range(10, 20), *range(50, 60)] == await Flow.from_spark(frame, as_=tuple).map(lambda row: row[0]).to_list()


async def test_partitions_of_which_a_filter_leaves_nothing(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(60), 6)).filter(lambda n: 20 <= n < 23)

    assert [20, 21, 22] == await flow.to_list()


@pytest.mark.parametrize("frame", ["no rows", "no partitions"])
async def test_an_empty_frame_completes(spark: Any, frame: Any) -> None:
    data = spark.createDataFrame([], "a long") if frame == "no rows" else spark.range(9).where("false")

    assert [] == await Flow.from_spark(data).to_list()


async def test_an_empty_rdd_completes(sc: Any) -> None:
    assert [] == await Flow.from_spark(sc.emptyRDD()).to_list()


async def test_order_holds_after_a_shuffle(spark: Any) -> None:
    frame = spark.range(0, 3000, 1, 5).orderBy(sql.functions.desc("id"))

    assert list(range(2999, -1, -1)) == await Flow.from_spark(frame, as_=tuple).map(lambda row: row[0]).to_list()


async def test_none_is_an_element(sc: Any) -> None:
    assert [None, 1, None] == await Flow.from_spark(sc.parallelize([None, 1, None], 2)).map(lambda n: n).to_list()


async def test_no_operator_is_needed(sc: Any) -> None:
    assert list(range(5000)) == await Flow.from_spark(sc.parallelize(range(5000), 2)).to_list()


# -- what rows become


@attrs.frozen
class Point:
    y: int
    x: int
    label: str = "none"


@attrs.frozen(kw_only=True)
class Private:
    _x: int


@pytest.fixture
def points(spark: Any) -> Any:
    return spark.createDataFrame([(1, 2, "a"), (3, 4, "b")], "x long, y long, z string").coalesce(1)


@pytest.fixture(params=["loop", "workers"])
def made_by(request: pytest.FixtureRequest) -> Callable[[Flow[Any]], Flow[Any]]:
    """Rows are made by the loop where there is no function to call on them, else by the workers."""
    return (lambda flow: flow) if request.param == "loop" else (lambda flow: flow.map(lambda row: row))


Made = Callable[[Flow[Any]], Flow[Any]]


async def test_rows_are_spark_rows_as_in_collect(points: Any, made_by: Made) -> None:
    rows = await made_by(Flow.from_spark(points)).to_list()

    assert points.collect() == rows
    assert isinstance(rows[0], Row)
    assert (2, "a", ["x", "y", "z"]) == (rows[0].y, rows[0]["z"], rows[0].__fields__)


async def test_rows_as_tuples(points: Any, made_by: Made) -> None:
    assert [(1, 2, "a"), (3, 4, "b")] == await made_by(Flow.from_spark(points, as_=tuple)).to_list()


async def test_rows_as_dicts(points: Any, made_by: Made) -> None:
    rows = await made_by(Flow.from_spark(points, as_=dict)).to_list()

    assert [{"x": 1, "y": 2, "z": "a"}, {"x": 3, "y": 4, "z": "b"}] == rows


async def test_rows_as_objects_of_a_class_whose_fields_are_columns_in_any_order(points: Any) -> None:
    assert [Point(2, 1), Point(4, 3)] == await Flow.from_spark(points, as_=Point).to_list()


async def test_a_class_with_private_and_keyword_only_fields(points: Any) -> None:
    frame = points.withColumnRenamed("x", "_x")

    assert [1, 3] == await Flow.from_spark(frame, as_=Private).map(lambda point: point._x).to_list()


async def test_a_class_that_cannot_be_imported_travels_by_value(points: Any) -> None:
    @attrs.frozen
    class Local:
        x: int

    found = await Flow.from_spark(points, as_=Local).to_list()

    assert [Local(1), Local(3)] == found


@pytest.mark.parametrize(("as_", "row"), [(tuple, ()), (dict, {}), (Row, Row())])
async def test_a_frame_without_columns_has_rows_all_the_same(
    points: Any, made_by: Made, as_: type[Any], row: Any
) -> None:
    assert [row, row] == await made_by(Flow.from_spark(points.select(), as_=as_)).to_list()


COLUMNS: dict[str, list[Any]] = {
    "long": [1, None, -(2**60)],
    "byte": [1, None, 3],
    "double": [1.5, None, -2.0],
    "boolean": [True, None, False],
    "string": ["a", None, "ä"],
    "binary": [b"a", None, b""],
    "date": [dt.date(2013, 1, 1), None, dt.date(1969, 12, 31)],
    "timestamp": [dt.datetime(2013, 7, 1, 5, 0, 0, 7), None, dt.datetime(1999, 1, 1)],
    "timestamp_ntz": [dt.datetime(2013, 7, 1, 5, 0, 0, 7), None, dt.datetime(1999, 1, 1)],
    "decimal(10,2)": [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")],
    "interval day to second": [dt.timedelta(days=1, microseconds=3), None, dt.timedelta(0)],
    "array<long>": [[1, None], None, []],
    "map<string,long>": [{"a": 1, "b": None}, None, {}],
    "struct<a:long,b:array<struct<c:string>>>": [Row(a=1, b=[Row(c="x"), None]), None, Row(a=None, b=[])],
    "array<timestamp>": [[dt.datetime(2013, 7, 1, 5), None], None, []],
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_values_are_those_of_collect(spark: Any, made_by: Made, kind: str) -> None:
    frame = spark.createDataFrame([(value,) for value in COLUMNS[kind]], f"v {kind}").coalesce(1)

    rows = made_by(Flow.from_spark(frame)).run_sync()

    assert frame.collect() == rows
    assert [repr(row) for row in frame.collect()] == [repr(row) for row in rows]


@pytest.mark.parametrize(("as_", "struct"), [(tuple, (1, "x")), (dict, {"a": 1, "b": "x"})])
def test_a_struct_becomes_what_the_row_becomes(spark: Any, as_: type[Any], struct: Any) -> None:
    frame = spark.createDataFrame([((1, "x"),)], "v struct<a:long,b:string>")

    assert as_ is tuple or [{"v": struct}] == Flow.from_spark(frame, as_=as_).run_sync()
    assert as_ is dict or [(struct,)] == Flow.from_spark(frame, as_=as_).run_sync()


# -- under combinators, each subscription is a job of its own


async def test_repeat_starts_a_job_for_each_subscription(sc: Any, tally: Tally) -> None:
    flow = Flow.from_spark(sc.parallelize(range(5), 1)).map(tally.counting(lambda n: n))

    assert [*range(5), *range(5)] == await flow.repeat(2).to_list()
    assert 10 == tally.count


async def test_concat_reads_one_job_after_the_other(spark: Any, sc: Any) -> None:
    rows = Flow.from_spark(spark.range(3), as_=tuple).map(lambda row: row[0])

    assert [0, 1, 2, 7, 8, "end"] == await rows.concat(
        Flow.from_spark(sc.parallelize([7, 8], 2)), Flow.of("end")
    ).to_list()


async def test_retry_starts_a_new_job(sc: Any, tmp_path: Path) -> None:
    flag = tmp_path / "failed"

    def once(n: Any, flag: str = str(flag)) -> Any:
        import os

        if n == 3 and not os.path.exists(flag):
            open(flag, "w").close()
            raise OSError("not yet")
        return n

    flow = Flow.from_spark(sc.parallelize(range(5), 1)).map(once)

    assert [0, 1, 2, 0, 1, 2, 3, 4] == await flow.retry(1).to_list()


async def test_stages_behind_a_boundary_and_those_that_need_the_whole_stream_run_here(sc: Any) -> None:
    seen: list[int] = []
    flow = Flow.from_spark(sc.parallelize(range(1000), 4)).map(lambda n: n + 1).skip(500).take(3).map(seen.append)

    assert [None] * 3 == await flow.to_list()
    assert [501, 502, 503] == seen
