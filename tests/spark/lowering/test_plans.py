"""The plan shows, before anything runs, which operators are lowered, which are not, and which are refused."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow, UnsupportedOnSparkError, schedulers
from reactive_aio.operators.folding.collect import Collect

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.fixture
def flow(sc: Any) -> Flow[int]:
    return Flow.from_spark(sc.parallelize(range(9), 2), prefetch=64)


def test_the_plan_shows_both_halves_of_what_is_done_in_parts(flow: Flow[int]) -> None:
    assert (
        "R1  Spark local[3,4]        from_spark(RDD) -> map(str) -> distinct(len, 9, False) in parts\n"
        " |  credit boundary, prefetch 64, at most 32 MiB\n"
        "R2  the subscriber's loop   distinct(len, 9, False) combined -> map(len)"
    ) == "\n".join(flow.map(str).distinct(len, max_keys=9).map(len).describe().splitlines()[:3])


@pytest.mark.parametrize(
    ("chain", "here"),
    [
        (lambda flow: flow.skip(2).map(str), "skip(2) -> map(str)"),
        (lambda flow: flow.scan(max), "scan(max)"),
        (lambda flow: flow.then(Collect(list, list.append)), "collect(list, "),
        (lambda flow: flow.distinct(max_keys=2, evict=True), "distinct(None, 2, True)"),
        (lambda flow: flow[3:], "[3:]"),
        (lambda flow: flow.publish_on(schedulers.current()).take(2), "take(2)"),
    ],
    ids=["skip", "scan", "collect", "distinct", "slice", "boundary"],
)
def test_what_depends_on_the_whole_stays_behind_the_boundary(
    flow: Flow[int], chain: Callable[[Flow[int]], Flow[Any]], here: str
) -> None:
    on_spark, _, behind = chain(flow).describe().splitlines()[:3]

    assert on_spark.endswith("from_spark(RDD)")
    assert here in behind


def test_a_concat_of_flows_on_spark_is_one_region(flow: Flow[int]) -> None:
    plan = flow.concat(flow.map(abs)).concat(flow).map(str).take(2).describe().splitlines()

    work = "concat(from_spark(RDD), from_spark(RDD) -> map(abs), from_spark(RDD)) -> map(str) -> take(2) in parts"
    assert plan[0].endswith(work)
    assert plan[2].endswith("take(2) combined")
    assert plan[3] == "R1  partitions of 3 flows, one after the other, up to 3 ahead"


def test_a_few_runs_of_a_flow_on_spark_are_one_region(flow: Flow[int]) -> None:
    assert flow.map(abs).repeat(3).describe().splitlines()[0].endswith("repeat(from_spark(RDD) -> map(abs), 3)")


def test_many_runs_of_a_flow_are_so_many_jobs(flow: Flow[int]) -> None:
    plan = flow.repeat(17).map(str).describe()

    assert plan.splitlines()[0].endswith("from_spark(RDD) -> map(str)")
    assert "all of it under repeat(17)" in plan


def test_flows_that_come_as_they_are_made_are_read_one_after_another(sc: Any) -> None:
    some = Flow.from_spark(sc.parallelize(range(9), 2), ordered=False)

    assert some.concat(some).map(str).describe().splitlines()[0].endswith("concat()")


@pytest.mark.parametrize("local", [True, False])
def test_a_concat_with_others_has_nobody_run_it(flow: Flow[int], local: bool) -> None:
    other = Flow.of(1) if local else flow.skip(1)

    assert flow.concat(other).map(str).describe().splitlines()[0].endswith("concat() -> map(str)")


@pytest.mark.parametrize("combine", [lambda flow: flow, lambda flow: flow.repeat(2)], ids=["alone", "repeat"])
def test_a_function_that_cannot_travel_is_refused_by_operator_and_line(
    flow: Flow[int], combine: Callable[[Flow[int]], Flow[int]]
) -> None:
    lock, flow = threading.Lock(), combine(flow).map(abs)

    with pytest.raises(UnsupportedOnSparkError) as raised:
        flow.take_while(lambda _: bool(lock))

    line = sys._getframe().f_lineno - 2
    assert str(raised.value).startswith(f"take_while(<lambda>), chained at {__file__}:{line}, can't be sent to Spark")


def test_what_does_not_travel_may_be_anything(flow: Flow[int]) -> None:
    lock = threading.Lock()

    assert 8 == flow.skip(1).take_while(lambda _: bool(lock)).run_sync(Flow.count)
    assert 9 == flow.publish_on(schedulers.current()).take_while(lambda _: bool(lock)).run_sync(Flow.count)
    assert 36 == flow.concat(Flow.of(0)).run_sync(lambda flow: flow.reduce(lambda a, b: a + b * bool(lock)))
