"""An operator that can't be part of a frame's plan is refused, by its name and line, when the frame is made."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from operator import add
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from reactive_aio import Flow, KeyedFlow, SparkJobError, UnsupportedOnSparkError, schedulers

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructType

pytestmark = pytest.mark.spark

AnyFlow = Flow[Any]


async def same(item: Any) -> Any:
    return item


BY_SPARK: dict[str, tuple[Callable[[AnyFlow], AnyFlow], str]] = {
    "take(3)": (lambda flow: flow.take(3), ".limit(n)"),
    "skip(3)": (lambda flow: flow.skip(3), ".offset(n)"),
    "index(0)": (lambda flow: flow.index(), "row_number"),
    "sort_by(None, False, 1000000)": (lambda flow: flow.sort_by(), ".orderBy"),
    "sort_by(None, False, 2000000)": (lambda flow: flow.sort_by(max_size=2_000_000), ".orderBy"),
    "distinct(None, 65536, False)": (lambda flow: flow.distinct(), ".dropDuplicates"),
}
BY_THE_ORDER: dict[str, Callable[[AnyFlow], AnyFlow]] = {
    "scan(add, 0)": lambda flow: flow.scan(add, 0),
    "buffer(3)": lambda flow: flow.buffer(3),
    "pairwise()": lambda flow: flow.pairwise(),
    "sliding(3, 1)": lambda flow: flow.sliding(3),
    "buffer_until_changed(None, 65536)": lambda flow: flow.buffer_until_changed(),
    "distinct_until_changed(None, None)": lambda flow: flow.distinct_until_changed(),
    "take_while(bool)": lambda flow: flow.take_while(bool),
    "skip_while(bool)": lambda flow: flow.skip_while(bool),
    "take_last(3)": lambda flow: flow.take_last(3),
    "default_if_empty(0)": lambda flow: flow.default_if_empty(0),
}
ON_A_LOOP: dict[str, Callable[[AnyFlow], AnyFlow]] = {
    "publish_on(current()": lambda flow: flow.publish_on(schedulers.current()),
    "publish_on(thread('t')": lambda flow: flow.publish_on(schedulers.thread("t")),
    "subscribe_on(thread('t')": lambda flow: flow.subscribe_on(schedulers.thread("t")),
    "retry(": lambda flow: flow.retry(3),
    "repeat(": lambda flow: flow.repeat(),
    "merge(": lambda flow: flow.merge(flow),
    "zip(": lambda flow: flow.zip(flow),
    "debounce(": lambda flow: flow.debounce(1.0),
    "timeout(": lambda flow: flow.timeout(1.0),
    "buffer_timeout(": lambda flow: flow.buffer_timeout(3, 1.0),
    "on_error_resume_next(": lambda flow: flow.on_error_resume_next(lambda error: flow),
    "flat_map(": lambda flow: flow.flat_map(Flow.of),
    "concat_map(": lambda flow: flow.concat_map(Flow.of),
    "map_async(same, 2, order='completion')": lambda flow: flow.map_async(same, max_concurrency=2, order="completion"),
    "log(": lambda flow: flow.log(),
    "do_on_complete(print)": lambda flow: flow.do_on_complete(print),
    "group_by(": lambda flow: flow.group_by(abs, max_groups=3),
}


def refusal(flow: AnyFlow, end: str = "to_frame") -> str:
    with pytest.raises(UnsupportedOnSparkError) as raised:
        flow.to_frame("n long") if end == "to_frame" else flow.to_rdd()
    return str(raised.value)


def numbers(spark: Any) -> AnyFlow:
    return Flow.from_spark(spark.range(9), as_=tuple).map(lambda row: row[0])


@pytest.mark.parametrize("end", ["to_frame", "to_rdd"])
@pytest.mark.parametrize("operator", BY_SPARK)
def test_what_spark_has_a_method_for_is_refused_with_its_name(spark: Any, operator: str, end: str) -> None:
    chain, way = BY_SPARK[operator]
    line = chain.__code__.co_firstlineno

    said = refusal(chain(numbers(spark)).map(abs), end)

    assert said.startswith(f"{operator}, chained at {__file__}:{line}, can't be run by {end}(): it needs the order")
    assert way in said


@pytest.mark.parametrize("operator", BY_THE_ORDER)
def test_what_depends_on_the_order_of_the_whole_is_refused_with_a_way_out(spark: Any, operator: str) -> None:
    chain = BY_THE_ORDER[operator]
    line = chain.__code__.co_firstlineno

    said = refusal(chain(numbers(spark)).map(abs))
    by_key = hasattr(KeyedFlow, operator.partition("(")[0])

    assert said.startswith(f"{operator}, chained at {__file__}:{line}, can't be run by to_frame(): it needs the order")
    assert by_key == ("behind group_by_key(..., order_by=...)" in said)
    assert "use a Spark window" in said.replace("Use", "use")
    assert "to_spark()" in said


@pytest.mark.parametrize("operator", ON_A_LOOP)
def test_what_runs_on_an_event_loop_is_refused_with_a_way_out(spark: Any, operator: str) -> None:
    chain = ON_A_LOOP[operator]
    line = chain.__code__.co_firstlineno

    said = refusal(chain(numbers(spark)).map(abs))

    assert said.startswith(operator)
    assert f", chained at {__file__}:{line}, can't be run by to_frame()" in said
    assert "to_frame() before it" in said


@pytest.mark.parametrize("end", ["to_frame", "to_rdd"])
def test_a_join_within_a_time_is_refused_with_what_spark_has_for_it(spark: Any, end: str) -> None:
    keyed = numbers(spark).group_by_key(abs)
    line = sys._getframe().f_lineno + 1
    joined = keyed.join(keyed, within=5.0)

    said = refusal(joined.map(str), end)

    assert said.startswith(f"join(within=5, how='inner'), chained at {__file__}:{line}, can't be run by {end}()")
    assert said.endswith(
        "Leave out within=, or have Spark join two streaming frames by their event times: with withWatermark() on each, and a "
        "condition on both times in frame.join(...)"
    )


def unordered(data: Any, as_: Any = tuple) -> AnyFlow:
    return Flow.from_spark(data, as_=as_, ordered=False)


NOT_THE_SAME_TO_SPARK: dict[str, Callable[[Any], AnyFlow]] = {
    "floats": lambda spark: unordered(spark.sql("select 0.5D as x")).distinct(),
    "timestamps": lambda spark: unordered(spark.sql("select current_timestamp() as t")).distinct(),
    "a key": lambda spark: unordered(spark.range(3)).distinct(lambda row: row[0] % 2),
    "the oldest forgotten": lambda spark: unordered(spark.range(3)).distinct(max_keys=2, evict=True),
    "behind a function": lambda spark: unordered(spark.range(3)).map(len).distinct(),
    "dicts": lambda spark: unordered(spark.range(3), dict).distinct(),
    "several flows": lambda spark: unordered(spark.range(3)).concat(unordered(spark.range(3))).distinct(),
    "an order": lambda spark: unordered(spark.range(3)).sort_by(),
    "numbers": lambda spark: unordered(spark.range(3)).index(),
}


@pytest.mark.parametrize("case", NOT_THE_SAME_TO_SPARK)
def test_where_spark_might_mean_something_else_it_is_refused_without_an_order_too(spark: Any, case: str) -> None:
    assert "can't be run by to_frame(): it needs the order" in refusal(NOT_THE_SAME_TO_SPARK[case](spark))


def test_what_spark_does_in_the_middle_of_functions_is_refused(spark: Any) -> None:
    said = refusal(unordered(spark.range(9)).map(len).take(3).map(abs))

    assert said.startswith("map(abs), chained at")
    assert "can't be run by to_frame() behind take(3), which Spark runs itself" in said
    assert "Put take() first or last" in said


def test_an_rdd_has_no_lazy_limit(spark: Any) -> None:
    said = refusal(unordered(spark.range(9)).map(len).take(3), "to_rdd")

    assert "can't be run by to_rdd(): Spark runs it itself, on a frame, and an RDD has no such method" in said
    assert "or read with" not in said


def test_what_spark_does_with_one_flow_of_several_is_refused_for_that_reason(spark: Any) -> None:
    said = refusal(unordered(spark.range(3)).concat(unordered(spark.range(3)).take(2)))

    assert said.startswith("take(2), chained at")
    assert "this flow is only one part of concat(" in said
    assert "union()" in said
    assert "or read with" not in said


def test_the_rows_of_batches_are_not_the_elements(spark: Any) -> None:
    said = refusal(unordered(spark.range(3), pa.RecordBatch).take(2))

    assert "can't be run by to_frame(): the elements are batches, and Spark counts rows" in said


def test_a_stream_is_refused_with_the_frames_of_its_micro_batches(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load()
    said = refusal(Flow.from_spark(stream, checkpoint=tmp_path))

    assert "can't be run by to_frame(): its elements are micro-batches" in said
    assert "Flow.from_spark(batch.frame).to_frame(...)" in said
    assert "Begin the flow" not in said


def test_a_flow_that_is_not_on_spark_is_refused(spark: Any) -> None:
    line = sys._getframe().f_lineno + 1
    said = refusal(Flow.range(9).map(abs))

    assert said.startswith(
        f"range(0, 9), chained at {__file__}:{line}, can't be run by to_frame(): its elements are made in this process"
    )
    assert "from_spark()" in said
    assert "to_spark()" in said


def test_one_flow_of_several_that_is_not_on_spark_is_refused(spark: Any) -> None:
    said = refusal(numbers(spark).concat(Flow.range(9)))

    assert said.startswith("range(0, 9), chained at")


def test_what_is_behind_a_refused_operator_is_not_looked_at_first(spark: Any) -> None:
    said = refusal(numbers(spark).scan(add, 0).publish_on(schedulers.current()).take(3))

    assert said.startswith("scan(add, 0)")


def test_a_function_that_cannot_travel_is_refused_by_operator_and_line(spark: Any) -> None:
    lock = threading.Lock()

    def locked(item: Any, sink: Any) -> None:
        with lock:
            sink.next(item)

    # Elsewhere it stays on the loop, so that it is not refused when it is chained.
    line = sys._getframe().f_lineno + 1
    flow = numbers(spark).handle(locked)

    said = refusal(flow)

    assert said.startswith(f"handle(locked), chained at {__file__}:{line}, can't be sent to Spark's workers")


def test_a_session_that_has_ended_is_told(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = numbers(spark)
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)

    with pytest.raises(SparkJobError, match=r"to_frame\(\): its session has been stopped"):
        flow.to_frame("n long")


@attrs.frozen
class Odd:
    value: object


@pytest.mark.parametrize(
    ("schema", "error", "text"),
    [
        (42, TypeError, r"to_frame\(schema=42\): a schema is a text"),
        ("no such type", ValueError, r"to_frame\(schema='no such type'\)"),
        ("long", ValueError, "a column needs a name"),
        (StructType(), ValueError, "the schema has no columns"),
        (Odd, TypeError, "field value: .* has no column type"),
    ],
)
def test_what_is_no_schema_is_refused_when_the_frame_is_made(
    spark: Any, schema: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        numbers(spark).to_frame(schema)


class Session:
    """As the session of Spark Connect is: without a context."""

    is_stopped = False


class Frame:
    """As a frame of Spark Connect is."""

    schema = StructType().add("id", LongType())
    columns = ("id",)
    sparkSession = Session()  # noqa: N815 - Spark's name
    isStreaming = False  # noqa: N815 - likewise

    def mapInArrow(self, fn: Any, schema: str) -> Any:  # noqa: N802 - Spark's name
        raise NotImplementedError


Session.__module__ = "pyspark.sql.connect.session"
Frame.__module__ = "pyspark.sql.connect.dataframe"


def test_spark_connect_has_no_rdds() -> None:
    data: Any = Frame()
    with pytest.raises(UnsupportedOnSparkError, match=r"to_rdd\(\) needs a classic session.*to_frame\(\)"):
        Flow.from_spark(data).to_rdd()
