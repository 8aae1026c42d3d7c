"""map_async in a resident region: each task has an event loop beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import Any

import pytest
from attrs import define, field

pytest.importorskip("pyspark")

from reactive_aio import Flow, UnsupportedOnSparkError, schedulers
from reactive_aio.operators.awaiting.worker_loop import Side
from tests.schedulers import work
from tests.spark.jobs import active_jobs
from tests.spark.resident.by_hand import Cluster
from tests.spark.waiting import only_task, until
from tests.subscribers import Recorder


@define(eq=False)
class Held:
    """A function whose calls go on when the test says so; the tasks by hand are threads of this process."""

    begun: deque[int] = field(factory=deque[int])
    ended: deque[int] = field(factory=deque[int])
    free: threading.Event = field(factory=threading.Event)

    async def __call__(self, n: int) -> int:
        self.begun.append(n)
        try:
            while not self.free.is_set():
                await asyncio.sleep(0.001)
        finally:
            self.ended.append(n)
        return n


HELD: list[Held] = []
"""A function travels; what it refers to here does not."""


async def held(n: int) -> int:
    return await HELD[-1](n)


async def slower_first(n: int) -> int:
    await asyncio.sleep(0.003 * (n % 5 == 0))
    return n


async def reciprocal(n: int) -> float:
    return 1 / (5 - n)


under_way: set[int] = set()


async def waiting(n: int) -> int:
    """Return how many are under way."""
    under_way.add(n)
    await asyncio.sleep(0.01)
    found = len(under_way)
    under_way.remove(n)
    return found


@pytest.fixture
def holding() -> Held:
    HELD.append(Held())
    return HELD[-1]


@pytest.mark.parametrize("prefetch", [1, 7, 256])
async def test_results_come_in_the_order_of_the_elements(cluster: Cluster, prefetch: int) -> None:
    flow = (
        Flow.range(200)
        .publish_on(cluster.workers(), prefetch=prefetch)
        .map(abs)
        .map_async(slower_first, max_concurrency=3)
        .map(str)
    )

    assert [str(n) for n in range(200)] == await flow.to_list()


async def test_the_plan_shows_it_on_spark(cluster: Cluster) -> None:
    flow = Flow.range(9).publish_on(cluster.workers(2)).map(abs).map_async(held, max_concurrency=3).take(1)

    regions = [line for line in flow.describe().splitlines() if line.startswith("R")]
    assert regions[1].split("  ")[1:] == ["spark(by hand, slots=2)", " map(abs) -> map_async(held, 3)"]


async def test_other_orders_and_other_workers_await_here(cluster: Cluster) -> None:
    for flow in (
        Flow.range(9).publish_on(cluster.workers()).map_async(held, order="completion"),
        Flow.range(9).publish_on(schedulers.threads(2)).map_async(held),
    ):
        (region,) = [line for line in flow.describe().splitlines() if "map_async(held, 16" in line]
        assert region.startswith("all of it under map_async")


@pytest.fixture
def only_waiting_takes_time(monkeypatch: pytest.MonkeyPatch, still: list[float]) -> None:
    """Have the clocks go on while a task waits for what is awaited beside it, and stand else."""
    wait = Side.wait

    def timed(side: Side, seconds: float) -> bool:
        before = time.perf_counter()
        came = wait(side, seconds)
        still[0] += time.perf_counter() - before
        return came

    monkeypatch.setattr(Side, "wait", timed)


@pytest.mark.usefixtures("only_waiting_takes_time")
async def test_waiting_is_not_taken_for_work_so_that_a_task_has_many_under_way(cluster: Cluster) -> None:
    """A task that works for long on an element is given one at a time."""
    under_way.clear()
    flow = Flow.range(200).publish_on(cluster.workers(1), prefetch=256).map_async(waiting, max_concurrency=8)

    assert 8 == max(await flow.to_list())


async def test_a_failure_comes_behind_the_results_before_it(cluster: Cluster) -> None:
    recorder = Recorder(request=10)
    Flow.range(9).publish_on(cluster.workers()).map_async(reciprocal, max_concurrency=3).subscribe(recorder)
    await recorder.over.wait()

    assert [1 / (5 - n) for n in range(5)] == recorder.items
    assert isinstance(recorder.error, ZeroDivisionError)
    assert "return 1 / (5 - n)" in recorder.error.__notes__[-1]


async def test_a_cancel_ends_what_is_awaited(cluster: Cluster, holding: Held) -> None:
    recorder = Recorder(request=10)
    Flow.range(9).publish_on(cluster.workers()).map_async(held, max_concurrency=3).subscribe(recorder)
    await until(lambda: holding.begun)
    recorder.cancel()

    await until(only_task)
    assert sorted(holding.begun) == sorted(holding.ended)


async def test_a_lost_task_has_its_chunks_awaited_again_in_order(cluster: Cluster, holding: Held) -> None:
    recorder = Recorder(request=100)
    Flow.range(50).publish_on(cluster.workers(1)).map_async(held, max_concurrency=4).subscribe(recorder)
    await until(lambda: holding.begun)
    cluster.kill(0)
    holding.free.set()
    await recorder.over.wait()

    assert list(range(50)) == recorder.items


async def test_the_named_variables_of_the_subscriber_are_current_in_the_functions(cluster: Cluster) -> None:
    work.trace.set("mine")
    work.other.set("mine too")
    flow = Flow.range(2).publish_on(cluster.workers(1, context=[work.trace]))

    assert [("mine", "none")] * 2 == await flow.map(work.seen).to_list()
    assert [("mine", "none")] * 2 == await flow.map_async(seen).to_list()


async def seen(item: Any) -> tuple[str, str]:
    return work.seen(item)


# -- with a cluster


@pytest.mark.spark
async def test_on_spark_elements_are_awaited_in_the_workers_in_order(spark: Any, sc: Any) -> None:
    import os

    here = os.getpid()

    async def elsewhere(n: int) -> tuple[int, bool]:
        import asyncio
        import os

        await asyncio.sleep(0.001)
        return n, os.getpid() != here

    flow = Flow.range(300).publish_on(schedulers.spark(spark, 2)).map_async(elsewhere, max_concurrency=8)
    assert [(n, True) for n in range(300)] == await flow.to_list()
    assert not active_jobs(sc)


@pytest.mark.spark
async def test_on_spark_the_named_variables_go_along(spark: Any) -> None:
    work.trace.set("mine")
    place = schedulers.spark(spark, 1, context=[work.trace])

    assert [("mine", "none")] == await Flow.of(1).publish_on(place).map(work.seen).to_list()


@pytest.mark.spark
def test_on_spark_what_no_worker_could_find_is_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from contextvars import ContextVar

    hidden: ContextVar[int] = ContextVar("hidden")
    with pytest.raises(TypeError, match=r"spark\(context=\.\.\.\): 'hidden' is no global of a module"):
        schedulers.spark(spark, context=[hidden])
    monkeypatch.setattr(sys.modules["__main__"], "hidden", hidden, raising=False)
    with pytest.raises(UnsupportedOnSparkError, match="'hidden' is a global of the main module"):
        schedulers.spark(spark, context=[hidden])


@pytest.mark.spark
def test_on_spark_what_cannot_travel_is_refused_by_operator(spark: Any) -> None:
    lock = threading.Lock()

    async def locked(n: int) -> int:
        with lock:
            return n

    with pytest.raises(UnsupportedOnSparkError, match=r"map_async\(locked, 16\), chained at "):
        Flow.of(1).publish_on(schedulers.spark(spark, 1)).map_async(locked)
