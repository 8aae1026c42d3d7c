"""sort_by of more than there is room for here: the workers merge it, each of them a range of the keys."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, LimitExceededError, UnsupportedOnSparkError
from tests.schedulers import work
from tests.spark.jobs import active_jobs
from tests.spark.tally import Tally
from tests.subscribers import Recorder

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

from reactive_aio.spark._source import ranges  # noqa: E402

MANY = 10**9
PARTS = st.lists(st.lists(st.integers(-9, 9), max_size=12), max_size=5)


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "SMALLEST", 4)


def in_partitions(sc: Any, parts: list[list[Any]]) -> Any:
    """An RDD of these partitions."""
    return sc.parallelize(parts, len(parts)).flatMap(lambda part: part) if parts else sc.emptyRDD()


# -- the same as on the event loop


def downwards(left: int, right: int) -> int:
    return right - left


CHAINS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "by_a_key_that_can_not_be_pickled": lambda flow: flow.sort_by(
        lambda item: functools.cmp_to_key(downwards)(item[1] % 4), max_size=MANY
    ),
    "reverse": lambda flow: flow.sort_by(lambda item: item[1] % 4, reverse=True, max_size=MANY).map(str).take(9),
    "twice": lambda flow: flow.sort_by(max_size=MANY).sort_by(lambda item: abs(item[1]), max_size=MANY),
}


@pytest.mark.parametrize("name", CHAINS)
@given(parts=PARTS)
@example(parts=[[n * 7 % 19 - 9 for n in range(12)], [], [n * 5 % 19 - 9 for n in range(12)], [3]])
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_as_on_the_event_loop(sc: Any, name: str, parts: list[list[int]]) -> None:
    """Elements have their numbers, so that it is seen which of those that are equal comes first."""
    numbered = iter(range(100))
    pairs = [[(next(numbered), n) for n in part] for part in parts]
    local = Flow.from_iterable([pair for part in pairs for pair in part])

    assert CHAINS[name](local).run_sync() == CHAINS[name](Flow.from_spark(in_partitions(sc, pairs))).run_sync()


def test_rows_of_a_frame_and_of_flows_put_together(spark: Any) -> None:
    flow = Flow.from_spark(spark.range(0, 60, 1, 2), as_=tuple).map(lambda row: row[0] * 7 % 30)

    found = flow.concat(flow).sort_by(max_size=MANY).run_sync()
    assert sorted([n * 7 % 30 for n in range(60)] * 2) == found


# -- where it is done


def test_the_plan_shows_it_in_the_workers_with_what_follows(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 4)).map(abs).sort_by(max_size=MANY).map(str).take(2)

    on_spark, _, here, partitions = flow.describe().splitlines()[:4]
    assert on_spark.endswith(
        f"from_spark(RDD) -> map(abs) -> sort_by(None, False, {MANY}) -> map(str) -> take(2) in parts"
    )
    assert here.endswith("take(2) combined")
    assert "R1  4 partitions, shuffled into ranges of keys, one after the other, up to 3 ahead" == partitions


@pytest.mark.parametrize(("wire", "most"), [("tcp", 5), ("tcp", 1_000_000), ("results", MANY)])
def test_what_there_is_room_for_here_and_results_of_jobs_are_merged_here(sc: Any, wire: str, most: int) -> None:
    on_spark, _, here = (
        Flow.from_spark(sc.parallelize([3, 1, 2], 2), wire=wire).sort_by(max_size=most).describe().splitlines()[:3]
    )

    assert on_spark.endswith("in parts")
    assert here.endswith("combined")


def test_more_runs_than_make_one_region_are_one_whole_all_the_same(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize([2, 1], 1)).repeat(17).sort_by(max_size=MANY)

    assert [1] * 17 + [2] * 17 == flow.run_sync()


def test_ranges_have_about_as_many_elements_each(sc: Any) -> None:
    def place(n: int) -> int:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        return task.partitionId()

    shuffled = sc.parallelize([n * 37 % 101 for n in range(101)], 5)
    places = Counter(Flow.from_spark(shuffled).sort_by(max_size=MANY).map(place).run_sync())
    assert [0, 1, 2, 3, 4] == sorted(places)
    assert max(places.values()) <= 2 * 101 / 5

    equal = sc.parallelize([7] * 100, 2)
    assert {0: 100} == Counter(Flow.from_spark(equal).sort_by(max_size=MANY).map(place).run_sync())


def test_functions_before_it_are_called_once_for_each_element_and_nothing_is_kept(sc: Any, tally: Tally) -> None:
    counted = Flow.from_spark(sc.parallelize(range(40), 2)).map(tally.counting(lambda n: -n))

    assert [*range(-39, 1)] == counted.sort_by(max_size=MANY).run_sync()
    assert 40 == tally.count
    assert not sc._jsc.getPersistentRDDs()


def test_keys_see_the_context_variables_that_are_named(sc: Any) -> None:
    token = work.trace.set("downwards")
    try:
        flow = Flow.from_spark(sc.parallelize(range(30), 2), context=[work.trace])
        found = flow.sort_by(lambda n: -n if work.trace.get() == "downwards" else n, max_size=MANY).map(work.seen)
        assert {("downwards", "none")} == set(found.run_sync())
        assert [*range(29, -1, -1)] == flow.sort_by(
            lambda n: -n if work.trace.get() == "downwards" else n, max_size=MANY
        ).run_sync()
    finally:
        work.trace.reset(token)


# -- failures, and being let go of


def failure(flow: Flow[Any]) -> BaseException:
    """How a flow fails, which has to be before its first element."""

    async def recorded() -> Recorder:
        recorder = Recorder(request=100)
        flow.subscribe(recorder)
        await recorder.over.wait()
        return recorder

    recorder = asyncio.run(recorded())
    assert not recorder.items
    assert recorder.error is not None
    return recorder.error


def test_a_failure_of_the_key_arrives_as_itself(sc: Any) -> None:
    def reciprocal(n: int) -> float:
        return 1 / (n - 25)

    error = failure(Flow.from_spark(sc.parallelize(range(40), 2)).sort_by(reciprocal, max_size=MANY))

    assert isinstance(error, ZeroDivisionError)
    where, trace = error.__notes__
    assert where.startswith(f"in sort_by(reciprocal, False, {MANY}), chained at {__file__}:")
    assert where.endswith("of partition 1 of from_spark(RDD)")
    assert "return 1 / (n - 25)" in trace


def test_a_failure_before_it_is_told_once_and_by_the_first_partition_that_has_one(sc: Any) -> None:
    def fail(n: int) -> int:
        return 1 // (n % 10 - 5)

    error = failure(Flow.from_spark(sc.parallelize(range(40), 2)).map(fail).sort_by(max_size=MANY))

    assert isinstance(error, ZeroDivisionError)
    where, _ = error.__notes__
    assert where.startswith("in map(fail), chained at ")
    assert where.endswith("on element #5 of partition 0 of from_spark(RDD)")


@pytest.mark.parametrize(
    "parts",
    [
        [[1, "a"], []],
        [[3, 1, 2], ["a", "b"]],
        [[(1, n) for n in range(300)], [*((0, n) for n in range(150)), (1, "a"), *((2, n) for n in range(149))]],
    ],
    ids=["in one partition", "of two partitions", "that are not among the samples"],
)
def test_elements_that_can_not_be_compared(sc: Any, parts: list[list[Any]]) -> None:
    error = failure(Flow.from_spark(in_partitions(sc, parts)).sort_by(max_size=MANY))

    assert isinstance(error, TypeError)
    assert "'<' not supported between instances of" in str(error)
    assert error.__notes__[0].startswith("in sort_by(None, False, ")


def test_one_element_more_than_there_may_be(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("reactive_aio.operators.transforming.sort_by.ROOM", 5)

    flow = Flow.from_spark(sc.parallelize(range(40), 2))
    assert isinstance(failure(flow.sort_by(max_size=39)), LimitExceededError)
    assert [*range(40)] == flow.sort_by(max_size=40).run_sync()


def test_what_follows_it_is_refused_like_what_comes_before(sc: Any) -> None:
    lock = threading.Lock()
    sorted_there = Flow.from_spark(sc.parallelize(range(4), 2)).sort_by(max_size=MANY)

    with pytest.raises(UnsupportedOnSparkError, match="captures a lock"):
        sorted_there.map(lambda n: n + bool(lock))
    with pytest.raises(UnsupportedOnSparkError, match="captures a lock"):
        sorted_there.repeat(2).map(lambda n: n + bool(lock))

    sorted_here = Flow.from_spark(sc.parallelize([2, 1], 2)).repeat(17).sort_by(max_size=MANY)
    sorted_here.map(lambda n: n + bool(lock))  # needs no more than to be built


async def test_a_cancel_stops_its_jobs_and_leaves_nothing_kept(sc: Any, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    mark = str(begun)

    def slow(items: Any) -> Iterator[Any]:
        import time

        for item in items:
            open(mark, "w").close()
            time.sleep(0.05)
            yield item

    recorder = Recorder(request=1)
    Flow.from_spark(sc.parallelize(range(4000), 2).mapPartitions(slow)).sort_by(max_size=MANY).subscribe(recorder)
    async with asyncio.timeout(60):
        while not begun.exists():
            await asyncio.sleep(0.01)
        recorder.cancel()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)

    assert not active_jobs(sc)
    assert not sc._jsc.getPersistentRDDs()


def test_a_worker_lost_behind_it_costs_no_element_and_doubles_none(sc: Any, tmp_path: Path) -> None:
    mark = str(tmp_path / "killed")

    def kill_once(n: int) -> int:
        import os
        import signal

        if n == 30 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    flow = Flow.from_spark(sc.parallelize([n * 37 % 101 for n in range(101)], 2), prefetch=8)
    assert [*range(101)] == flow.sort_by(max_size=MANY).map(kill_once).run_sync()
