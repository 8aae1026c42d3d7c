"""The refusals and the plan of a flow on Spark come before anything runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, UnsupportedOnSparkError, schedulers

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_plan_shows_what_runs_where(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 2), prefetch=64).map(str).filter(len).take(3).map(len)

    assert (
        "R1  Spark local[3,4]        from_spark(RDD) -> map(str) -> filter(len) -> take(3) in parts\n"
        " |  credit boundary, prefetch 64, at most 32 MiB\n"
        "R2  the subscriber's loop   take(3) combined -> map(len)"
    ) == "\n".join(flow.describe().splitlines()[:3])


def test_a_boundary_ends_the_region_on_spark(spark: Any) -> None:
    flow = Flow.from_spark(spark.range(9), as_=dict).map(len).publish_on(schedulers.current(), prefetch=8).map(str)

    plan = flow.describe().splitlines()

    assert "Spark local[3,4]" in plan[0]
    assert plan[0].endswith("from_spark(DataFrame, as_=dict) -> map(len)")
    assert plan[2].endswith("map(str)")


def unpicklable(kind: str, sc: Any) -> object:
    if kind == "lock":
        return threading.Lock()
    if kind == "loop":
        return asyncio.new_event_loop()
    spark_s = {"context": sc, "data": sc.parallelize([1]), "session": SparkSession.active()}
    return spark_s[kind] if kind in spark_s else (n for n in range(3))


@pytest.mark.parametrize("kind", ["lock", "loop", "context", "session", "data", "generator"])
def test_a_function_that_cannot_travel_is_refused_by_operator_and_line(
    sc: Any, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    captured = unpicklable(kind, sc)
    flow = Flow.from_spark(sc.parallelize(range(9), 2)).map(lambda n: n + 1)

    with pytest.raises(UnsupportedOnSparkError) as raised:
        flow.filter(lambda n: captured is None or n)
    line = sys._getframe().f_lineno - 1

    assert str(raised.value).startswith(f"filter(<lambda>), chained at {__file__}:{line}, can't be sent to Spark")
    assert raised.value.__cause__ is not None
    assert "publish_on" in str(raised.value)
    assert ("", "") == capfd.readouterr()
    if isinstance(captured, asyncio.AbstractEventLoop):
        captured.close()


@pytest.mark.parametrize("before", ["whole", "boundary"])
def test_what_stays_here_may_capture_anything(sc: Any, before: str) -> None:
    lock = threading.Lock()
    flow = Flow.from_spark(sc.parallelize(range(9), 2))
    flow = flow.skip(1) if before == "whole" else flow.publish_on(schedulers.current())

    assert 8 <= flow.map(lambda n: (lock, n)).run_sync(Flow.count)


def test_a_class_has_to_fit_the_columns(spark: Any) -> None:
    @attrs.frozen
    class Wrong:
        id: int
        carrier: str
        year: int
        month: int = 1

    with pytest.raises(
        TypeError, match=r"as_=Wrong\): the class does not fit the frame\n  carrier: the frame has no such column"
    ):
        Flow.from_spark(spark.range(3), as_=Wrong)


@pytest.mark.parametrize("wire", [None, "results"])
@pytest.mark.parametrize("as_", [int, list, "dict", "", 0, ()])
def test_rows_are_read_as_what_is_known(spark: Any, as_: Any, wire: Any) -> None:
    with pytest.raises(TypeError, match=r"Row, tuple, dict, pyarrow\.RecordBatch or an attrs class"):
        Flow.from_spark(spark.range(3), as_=as_, wire=wire)


@attrs.frozen
class Node:
    id: int


def test_an_object_of_a_class_is_not_the_class(spark: Any) -> None:
    kind: Any = Node(1)
    with pytest.raises(
        TypeError, match=r"as_=Node\(id=1\)\): as_ must be .*, such as Node itself and not an object of it"
    ):
        Flow.from_spark(spark.range(3), as_=kind)


@pytest.mark.parametrize("wire", [None, "results"])
@pytest.mark.parametrize("given", [{"output_mode": "complete"}, {"trigger": {"once": True}}], ids=str)
def test_what_is_for_streams_is_refused_for_other_data(spark: Any, sc: Any, given: Any, wire: Any) -> None:
    from_spark: Any = Flow.from_spark
    (name,) = given
    for data in (spark.range(3), sc.parallelize([1])):
        with pytest.raises(
            TypeError, match=rf"from_spark\({name}=.*\) takes a streaming DataFrame.* Leave the argument out"
        ):
            from_spark(data, wire=wire, **given)


def test_a_stream_needs_a_checkpoint_whatever_else_is_given(spark: Any) -> None:
    from_spark: Any = Flow.from_spark
    with pytest.raises(TypeError, match="needs checkpoint"):
        from_spark(spark.readStream.format("rate").load(), trigger={"once": True})


def test_the_elements_of_an_rdd_are_what_they_are(sc: Any) -> None:
    with pytest.raises(TypeError, match="DataFrame"):
        Flow.from_spark(sc.parallelize([1]), as_=dict)


@pytest.mark.parametrize("data", [[1, 2], None, "frame"])
def test_other_data_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="a DataFrame or an RDD"):
        Flow.from_spark(data)


@pytest.mark.parametrize(
    ("prefetch", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (None, TypeError)]
)
def test_prefetch_is_a_count(sc: Any, prefetch: int, error: Any) -> None:
    with pytest.raises(error, match="prefetch"):
        Flow.from_spark(sc.parallelize([1]), prefetch=prefetch)


@pytest.mark.parametrize("ordered", ["no", 1, None])
def test_whether_elements_are_in_order_is_true_or_false(sc: Any, ordered: Any) -> None:
    with pytest.raises(TypeError, match=r"from_spark\(ordered=.*: ordered is True or False"):
        Flow.from_spark(sc.parallelize([1]), ordered=ordered)


def test_without_pyspark_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from reactive_aio import Flow\n"
        "try: Flow.from_spark([])\n"
        "except ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "pip install 'reactive_aio[spark]'" in out
