"""index in the workers: each partition goes on where the one before it has ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, UnsupportedOnSparkError
from tests.spark.jobs import active_jobs
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, only_task
from tests.subscribers import Recorder

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

MANY = 10**9
PARTS = st.lists(st.lists(st.integers(-9, 9), max_size=12), max_size=5)


def in_partitions(sc: Any, parts: list[list[Any]]) -> Any:
    """An RDD of these partitions."""
    return sc.parallelize(parts, len(parts)).flatMap(lambda part: part) if parts else sc.emptyRDD()


def backwards(pair: tuple[int, int]) -> tuple[int, int]:
    return pair[1], pair[0]


async def halved(pair: tuple[int, int]) -> float:
    return pair[0] / 2 + pair[1]


# -- the same as on the event loop


CHAINS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "behind_what_leaves_out_and_adds": lambda flow: (
        flow.filter(lambda n: n % 3).flat_map_iterable(lambda n: range(n % 4)).index().map(backwards)
    ),
    "behind_what_keeps_some": lambda flow: (
        flow.map_batches(lambda items: [n + 1 for n in items], size=4).index(-3).map(backwards)
    ),
    "before_what_leaves_out": lambda flow: flow.index(1).filter(lambda pair: pair[0] % 4 == 1).map(backwards),
    "before_what_is_awaited": lambda flow: flow.index().map_async(halved, max_concurrency=3),
    "before_a_part_of_it": lambda flow: flow.index()[3:20:2],
    "before_what_ends_it": lambda flow: flow.index().take_while(lambda pair: pair[1] < 7),
    "twice": lambda flow: flow.index().filter(lambda pair: pair[1] % 2).index(100).map(lambda pair: pair[::-1]),
    "of_what_is_sorted": lambda flow: flow.sort_by(max_size=MANY).index().map(backwards),
    "before_a_sort": lambda flow: flow.index().map(backwards).sort_by(max_size=MANY),
    "of_flows_in_turn": lambda flow: flow.concat(flow.map(abs)).index().map(backwards),
    "of_each_of_some_flows": lambda flow: (
        flow.index().map(backwards).concat(flow.index(7).map(backwards)).map(lambda pair: pair[::-1])
    ),
}


@pytest.mark.parametrize("name", CHAINS)
@given(parts=PARTS)
@example(parts=[[5, 1, 8, 2, -3], [], [7, 4, 4], [], [6]])
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_as_on_the_event_loop(sc: Any, name: str, parts: list[list[int]]) -> None:
    local = Flow.from_iterable([n for part in parts for n in part])

    assert CHAINS[name](local).run_sync() == CHAINS[name](Flow.from_spark(in_partitions(sc, parts))).run_sync()


def test_rows_of_a_frame(spark: Any) -> None:
    flow = Flow.from_spark(spark.range(0, 60, 1, 3), as_=tuple).index().map(lambda pair: (pair[0], *pair[1]))

    assert [(n, n) for n in range(60)] == flow.run_sync()


# -- where it is done


def test_the_plan_shows_it_in_the_workers_with_what_follows(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 4)).map(abs).index().map(backwards).take_last(2)

    on_spark, _, here, partitions = flow.describe().splitlines()[:4]
    assert on_spark.endswith("from_spark(RDD) -> map(abs) -> index(0) -> map(backwards) -> take_last(2) in parts")
    assert here.endswith("take_last(2) combined")
    assert "R1  4 partitions, one after the other, numbered in turn, up to 3 wait ahead" == partitions


@pytest.mark.parametrize(
    "chain",
    [
        lambda flow: flow.index(),
        lambda flow: flow.index().scan(max),
        lambda flow: flow.skip(1).index().map(backwards),
    ],
    ids=["last", "before_the_whole", "behind_the_whole"],
)
def test_partitions_do_not_wait_for_their_numbers_where_nothing_else_would_be_done_in_the_workers(
    sc: Any, chain: Callable[[Flow[int]], Flow[Any]]
) -> None:
    on_spark, _, here, partitions = chain(Flow.from_spark(sc.parallelize(range(9), 4))).describe().splitlines()[:4]

    assert on_spark.endswith("from_spark(RDD)")
    assert "index(0)" in here
    assert "R1  4 partitions, one after the other, up to 3 ahead" == partitions


@pytest.mark.parametrize("how", [{"ordered": False}, {"wire": "results"}], ids=str)
def test_elements_that_come_otherwise_than_in_turn_are_numbered_here(sc: Any, how: dict[str, Any]) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 3), **how).index().map(backwards)

    assert "index(0) -> map(backwards)" in flow.describe().splitlines()[2]
    assert set(range(9)) == {number for _, number in flow.run_sync()}


def test_what_follows_runs_in_the_workers(sc: Any) -> None:
    def place(pair: tuple[int, str]) -> tuple[int, str, int]:
        import os

        return (*pair, os.getpid())

    found = Flow.from_spark(sc.parallelize("abcde", 3)).index().map(place).run_sync()

    assert [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e")] == [(number, item) for number, item, _ in found]
    assert os.getpid() not in {process for _, _, process in found}


def test_a_function_that_cannot_travel_is_refused_by_operator_and_line(sc: Any) -> None:
    lock, flow = threading.Lock(), Flow.from_spark(sc.parallelize(range(9), 3)).index()

    with pytest.raises(UnsupportedOnSparkError) as raised:
        flow.map(lambda pair: bool(lock))

    line = sys._getframe().f_lineno - 2
    assert str(raised.value).startswith(f"map(<lambda>), chained at {__file__}:{line}, can't be sent to Spark")
    assert 9 == Flow.from_spark(sc.parallelize(range(9), 3)).index().scan(max).map(lambda _: bool(lock)).run_sync(
        Flow.count
    )


# -- no more than is wanted


async def test_who_needs_no_more_has_the_first_partition_run_and_no_further_than_it_matters(
    sc: Any, tally: Tally
) -> None:
    flow = Flow.from_spark(sc.parallelize(range(60), 3)).map(tally.counting(lambda n: n)).index().map(backwards)

    assert [(n, n) for n in range(5)] == await flow.take(5).to_list()
    assert 5 == tally.count


async def test_a_partition_makes_nothing_before_its_turn(sc: Any, tally: Tally) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 3), prefetch=2).map(tally.counting(lambda n: n)).index().map(str)

    async with flow.open() as items:
        assert "(0, 0)" == await anext(items)
        async with asyncio.timeout(LIMIT):
            while (tasks := items.snapshot().regions[0].tasks) and tasks.running < 2:  # one ahead has connected
                await asyncio.sleep(0.01)
        assert tally.count <= 3
        assert [str((n, n)) for n in range(1, 9)] == [item async for item in items]
    assert 9 == tally.count


async def test_who_needs_no_more_does_not_wait_for_a_task_that_has_not_connected(sc: Any, tmp_path: Path) -> None:
    """The second one is stuck before it does; the first goes on then, and has ended when the last element is asked for."""
    begun, free = str(tmp_path / "begun"), str(tmp_path / "free")

    def hold(partition: int, items: Any) -> Any:
        import time

        if partition == 1:
            open(begun, "w").close()
        while partition == 1 and not os.path.exists(free):
            time.sleep(0.01)
        return items

    def wait(n: int) -> int:
        import time

        while n == 1 and not os.path.exists(begun):
            time.sleep(0.01)
        return n

    data = sc.parallelize(range(9), 3).mapPartitionsWithIndex(hold).map(wait)
    flow = Flow.from_spark(data).index().map(backwards).take(2)
    try:
        async with asyncio.timeout(LIMIT), flow.open() as items:
            assert (0, 0) == await anext(items)
            while (tasks := items.snapshot().regions[0].tasks) and not tasks.done:
                await asyncio.sleep(0.01)
            assert [(1, 1)] == [item async for item in items]
    finally:
        Path(free).touch()


async def test_cancelling_ends_those_that_wait_for_their_turn(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 3), prefetch=2).index().map(str)

    async with asyncio.timeout(LIMIT):
        async with flow.open() as items:
            await anext(items)
            while (tasks := items.snapshot().regions[0].tasks) and tasks.running < 2:
                await asyncio.sleep(0.01)
        assert only_task()
    assert not active_jobs(sc)


# -- what goes wrong


async def test_a_killed_worker_costs_no_number_and_doubles_none(sc: Any, tmp_path: Path) -> None:
    """In the first partition and in another one, which is then told its place again."""
    marks = str(tmp_path / "killed")

    def kill_once(pair: tuple[int, int]) -> tuple[int, int]:
        mark = f"{marks}{pair[1]}"
        if pair[1] in (30, 130) and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return pair

    flow = Flow.from_spark(sc.parallelize(range(200), 4), prefetch=16).filter(bool).index().map(kill_once)
    async with asyncio.timeout(LIMIT):
        assert [(n - 1, n) for n in range(1, 200)] == await flow.to_list()


async def test_a_failure_comes_behind_the_elements_before_it_with_its_place(sc: Any) -> None:
    recorder = Recorder(request=100)
    Flow.from_spark(sc.parallelize(range(9), 3)).index().map(lambda pair: 1 // (4 - pair[0])).subscribe(recorder)
    await recorder.over.wait()

    assert 4 == len(recorder.items)
    assert isinstance(recorder.error, ZeroDivisionError)
    assert "on element #1 of partition 1 of from_spark(RDD)" in recorder.error.__notes__[0]
