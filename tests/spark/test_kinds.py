"""Whatever a user's code raises on Spark, the end that is awaited raises it, behind the elements before it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow, SparkJobError, UnsupportedOnSparkError, hooks, schedulers
from tests.spark.kinds import (
    ALL,
    KINDS,
    Flaky,
    arrives_as,
    failure,
    itself,
    lingering,
    raised_at_3,
    raised_in_time,
    unloadable_at_3,
    unpicklable_at_3,
)

pytestmark = pytest.mark.spark
WIRES = pytest.mark.parametrize("wire", ["tcp", "results"])


def numbers(sc: Any, wire: Any) -> Flow[int]:
    return Flow.from_spark(sc.parallelize(range(9), 1), wire=wire)


@WIRES
async def test_a_function_in_the_workers(sc: Any, wire: str) -> None:
    for kind in ALL:
        found: list[int] = []
        flow = numbers(sc, wire).map(partial(raised_at_3, kind))
        error = await failure(flow.for_each(found.append))

        assert ([0, 1, 2], arrives_as(kind)) == (found, type(error))
        told = error if type(error) is type(KINDS[kind]) else error and error.__cause__
        assert told is not None
        if not isinstance(told, BaseExceptionGroup):
            assert KINDS[kind].args == told.args
        assert "in map(" in told.__notes__[0]


async def test_a_function_that_is_awaited_in_the_workers(sc: Any) -> None:
    for kind in ALL:
        found: list[int] = []
        flow = numbers(sc, None).map_async(partial(raised_in_time, kind), max_concurrency=1)

        assert arrives_as(kind) is type(await failure(flow.for_each(found.append)))
        assert [0, 1, 2] == found


async def test_a_function_before_one_that_is_awaited(sc: Any) -> None:
    for kind in ALL:
        found: list[int] = []
        flow = numbers(sc, None).map(partial(raised_at_3, kind)).map_async(itself, max_concurrency=4)

        assert arrives_as(kind) is type(await failure(flow.for_each(found.append)))
        assert [0, 1, 2] == found


async def test_a_function_of_the_rdd(sc: Any) -> None:
    for kind in ALL:
        found: list[int] = []
        flow = Flow.from_spark(sc.parallelize(range(9), 1).map(partial(raised_at_3, kind)))

        assert arrives_as(kind) is type(await failure(flow.for_each(found.append)))
        assert [0, 1, 2] == found


@WIRES
async def test_an_element_that_is_pickled(sc: Any, wire: str) -> None:
    for kind in ALL:
        found: list[int] = []
        flow = numbers(sc, wire).map(partial(unpicklable_at_3, kind))

        assert arrives_as(kind, of_pickle=True) is type(await failure(flow.for_each(found.append)))
        assert [0, 1, 2] == found


@WIRES
async def test_an_element_that_is_unpickled_here(sc: Any, wire: str) -> None:
    for kind in ALL:
        found: list[int] = []
        error = await failure(numbers(sc, wire).map(partial(unloadable_at_3, kind)).for_each(found.append))

        assert ([0, 1, 2], arrives_as(kind)) == (found, type(error))


@WIRES
async def test_a_function_that_can_no_more_be_pickled_when_the_flow_begins(
    sc: Any, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ALL:
        flow = numbers(sc, wire).map(Flaky(kind))
        with monkeypatch.context() as patch:
            patch.setattr(Flaky, "broken", True)
            error = await failure(flow.to_list())

        refused = isinstance(KINDS[kind], Exception)  # as when it is built
        assert (UnsupportedOnSparkError if refused else arrives_as(kind)) is type(error)


@WIRES
async def test_a_function_of_the_rdd_that_spark_can_not_pickle(
    sc: Any, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ALL:
        flow: Flow[int] = Flow.from_spark(sc.parallelize(range(9), 1).map(Flaky(kind)), wire=wire)
        with monkeypatch.context() as patch:
            patch.setattr(Flaky, "broken", True)
            error = await failure(flow.to_list())

        refused = isinstance(KINDS[kind], Exception)  # by a PicklingError of Spark's own
        assert (SparkJobError if refused else arrives_as(kind)) is type(error)


async def test_the_key_of_a_sort(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactive_aio.operators.transforming.sort_by.ROOM", 1)
    for kind in (1, 3, 8):  # since each takes a second
        flow = Flow.from_spark(sc.parallelize(range(9), 2)).sort_by(partial(raised_at_3, kind), max_size=99)

        assert arrives_as(kind) is type(await failure(flow.to_list()))


async def test_the_workers_of_a_failed_flow_are_used_again(sc: Any) -> None:
    """Spark starts a new one where one has died, and asks ours for their processes."""

    def process(n: int) -> int:
        import os

        return os.getpid()

    async def idle() -> set[int]:
        # Spark takes the worker that has been idle for longest, and other tests may have left one for each slot.
        return {pid for _ in range(4) for pid in await numbers(sc, None).map(process).to_list()}

    before = await idle()
    for kind in ALL:
        await failure(numbers(sc, None).map(partial(raised_at_3, kind)).to_list())

    assert await idle() <= before


# -- letting go


async def test_a_generator_that_is_left_by_a_flow_which_wants_no_more(sc: Any) -> None:
    for kind in ALL:
        if isinstance(KINDS[kind], GeneratorExit):
            continue  # by which a generator says that it has been left in peace
        flow = Flow.from_spark(sc.parallelize([1], 1), prefetch=4).flat_map_iterable(partial(lingering, kind))

        assert arrives_as(kind) is type(await failure(flow.take(2).to_list()))


async def test_a_generator_that_is_left_behind_a_failure_is_noted_on_that(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize([3], 1)).flat_map_iterable(partial(lingering, 1)).map(partial(raised_at_3, 0))
    error = await failure(flow.to_list())

    assert isinstance(error, ValueError)
    assert "a further failure: OwnError: own" in error.__notes__


async def test_a_generator_that_a_resident_task_is_left_with(spark: Any) -> None:
    dropped: list[BaseException] = []
    flow = Flow.of(1).publish_on(schedulers.spark(spark, 1), prefetch=4).flat_map_iterable(partial(lingering, 1))
    with hooks.using(on_error_dropped=dropped.append):
        error = await failure(flow.take(2).to_list())

    assert ("OwnError", []) == (type(error).__name__, dropped)
