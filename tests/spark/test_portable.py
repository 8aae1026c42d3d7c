"""Objects of the driver or of a Spark job, and what a function that captures one may do."""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import pickle
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions

from reactive_aio import Flow, UnsupportedOnSparkError, schedulers
from reactive_aio.spark._task.pickling import dumps_for_jobs

pytestmark = pytest.mark.spark


class Slots:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __call__(self, item: Any) -> Any:
        return item

    def method(self, item: Any) -> Any:
        return item


def of_two(held: Any, item: Any) -> Any:
    return item


def nested(held: Any) -> Callable[[Any], Any]:
    inside = Slots({"deep": [Slots(held)]})

    def inner(item: Any) -> Any:
        return (inside, item)

    return lambda item: [inner(item)]


def default(held: Any) -> Callable[[Any], Any]:
    def function(item: Any, held: Any = held) -> Any:
        return item

    return function


def attribute(held: Any) -> Callable[[Any], Any]:
    def function(item: Any) -> Any:
        return item

    vars(function)["held"] = held
    return function


def of_a_global(held: Any) -> Callable[[Any], Any]:
    """Return a function whose module, as that of a script, can't be imported by the workers."""
    return types.FunctionType((lambda item: (held_there, item)).__code__, {"held_there": held, "__name__": "__main__"})  # type: ignore[name-defined]  # noqa: F821


def of_a_class(held: Any) -> Callable[[Any], Any]:
    class Local:
        kept = held

        def __call__(self, item: Any) -> Any:
            return item

    return Local()


@pytest.mark.parametrize(
    "hide",
    [
        functools.partial(functools.partial, of_two),
        Slots,
        lambda held: Slots(held).method,
        nested,
        default,
        attribute,
        of_a_global,
        of_a_class,
    ],
    ids=["partial", "slots", "bound-method", "nested", "default", "attribute", "global", "class"],
)
@pytest.mark.parametrize("make", [threading.Lock, asyncio.Queue, threading.local], ids=["lock", "queue", "local"])
def test_it_is_found_wherever_a_function_has_it(sc: Any, hide: Any, make: Any) -> None:
    function = hide(make())

    with pytest.raises(UnsupportedOnSparkError, match=r"^map\(.*\), chained at .*test_portable\.py:\d+, can't be sent"):
        Flow.from_spark(sc.parallelize([1])).map(function)


def test_what_stands_for_an_object_of_the_jvm_is_told_as_such(spark: Any, sc: Any) -> None:
    for held in (functions.col("id"), spark.read, sc._jvm, spark.range(3)._jdf):
        with pytest.raises(UnsupportedOnSparkError, match=r"it captures an object of Spark's JVM"):
            Flow.from_spark(sc.parallelize([1])).map(default(held))


def test_one_end_of_a_pipe_is_told_as_such(sc: Any) -> None:
    reader, writer = multiprocessing.Pipe()
    with reader, writer, pytest.raises(UnsupportedOnSparkError, match=r"it captures a connection between processes"):
        Flow.from_spark(sc.parallelize([1])).map(default(reader))


async def test_a_broadcast_variable_comes_with_the_jobs_of_a_source(spark: Any, sc: Any) -> None:
    shared = sc.broadcast([7])
    flows = [
        Flow.from_spark(sc.parallelize([1, 2], 2)).map(lambda n: n + shared.value[0]),
        Flow.from_spark(spark.range(1, 3), as_=tuple, wire="results").map(lambda row: row[0] + shared.value[0]),
    ]

    assert [[8, 9], [8, 9]] == [await flow.to_list() for flow in flows]


def summed(shared: Any) -> Callable[[Any], Any]:
    return lambda row: row[0] + shared.value[0]


SHUFFLED: dict[str, Callable[[Any], Any]] = {
    "sorted": lambda rows: rows.orderBy("id"),
    "limited": lambda rows: rows.orderBy("id").limit(60),
    "of_texts": lambda rows: rows.withColumn("text", functions.lit("a")).orderBy("id"),
    "small_partitions": lambda rows: rows.withColumn("text", functions.lit("a")).repartitionByRange(60, "id"),
    "of_no_shuffle": lambda rows: rows,
}


@pytest.mark.parametrize("name", SHUFFLED)
async def test_a_broadcast_variable_comes_with_all_tasks_of_a_frame(spark: Any, sc: Any, name: str) -> None:
    shared = sc.broadcast([7])
    frame = SHUFFLED[name](spark.range(0, 60, 1, 30))
    flow = Flow.from_spark(frame, as_=tuple).map(summed(shared))

    assert [*range(7, 67)] == sorted(await flow.to_list())


@pytest.mark.parametrize("data", ["frame", "rdd"])
async def test_a_broadcast_variable_comes_with_all_jobs_of_a_large_sort(spark: Any, sc: Any, data: str) -> None:
    shared = sc.broadcast([7])
    rows = spark.range(9) if data == "frame" else spark.range(9).rdd
    before = Flow.from_spark(rows).map(lambda row: (row[0] + shared.value[0],))
    flow = before.sort_by(lambda row: shared.value[0] - row[0], max_size=10**9).map(summed(shared))

    assert [*range(22, 13, -1)] == await flow.to_list()


def test_a_variable_that_somebody_else_has_pickled_goes_with_the_job_of_that(sc: Any) -> None:
    other, shared = sc.broadcast([1]), sc.broadcast([7])
    known = sc._pickled_broadcast_vars
    known.clear()
    pickle.dumps(other)
    packed: Any = dumps_for_jobs(shared)

    assert ((other,), (shared,)) == (tuple(known), packed.shared)
    known.clear()


def test_to_build_a_flow_burdens_no_other_job_with_its_broadcast_variables(sc: Any) -> None:
    shared = sc.broadcast([7])
    Flow.from_spark(sc.parallelize([1])).map(lambda n: n + shared.value[0])
    shared.destroy()

    assert [2] == sc.parallelize([1], 1).map(lambda n: n + 1).collect()


def test_a_region_fed_from_the_loop_refuses_broadcast_variables(spark: Any, sc: Any) -> None:
    shared = sc.broadcast([7])
    with pytest.raises(
        UnsupportedOnSparkError, match=r"map\(<lambda>\).*captures a broadcast variable.*pass its value"
    ):
        Flow.range(3).publish_on(schedulers.spark(spark, 1)).map(lambda n: n + shared.value[0])
