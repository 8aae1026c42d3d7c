"""map_async and filter_when in the workers of a flow on Spark: an event loop beside each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, UnsupportedOnSparkError
from tests.spark.jobs import active_jobs
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, only_task, until
from tests.subscribers import Recorder

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

VARIABLE: ContextVar[int] = ContextVar("variable", default=0)


async def doubled(n: int) -> int:
    return 2 * n


async def number_is_known(_: object) -> bool:
    return True


def test_the_plan_shows_it_on_spark(sc: Any) -> None:
    flow = (
        Flow.from_spark(sc.parallelize(range(9), 2)).map_async(doubled, max_concurrency=4).filter_when(doubled).map(str)
    )

    assert (
        flow.describe()
        .splitlines()[0]
        .endswith("from_spark(RDD) -> map_async(doubled, 4) -> filter_when(doubled, 1) -> map(str)")
    )


@pytest.mark.parametrize(
    "chain",
    [
        lambda flow: flow.map_async(doubled, order="completion"),
        lambda flow: flow.map_async(doubled, order=abs),
        lambda flow: flow.skip(1).map_async(doubled),
        lambda flow: flow.concat(Flow.of(1)).map_async(doubled),
    ],
    ids=["completion", "key", "skip", "concat"],
)
def test_what_depends_on_time_or_on_the_whole_is_awaited_here(sc: Any, chain: Callable[[Flow[int]], Flow[int]]) -> None:
    plan = chain(Flow.from_spark(sc.parallelize(range(9), 2))).describe()

    (region,) = [line for line in plan.splitlines() if "map_async(doubled, 16" in line]
    assert "from_spark" not in region


async def test_flows_put_together_await_where_each_is(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(5), 2))

    assert [2 * n for n in range(5)] * 2 == await flow.concat(flow).map_async(doubled).to_list()


async def test_what_comes_of_keyed_work_is_awaited_to_the_last_element(sc: Any) -> None:
    def counts() -> Flow[tuple[int, int]]:
        return Flow.from_spark(sc.parallelize(range(300), 2)).group_by_key(lambda n: n, partitions=2).count()

    async def number(pair: tuple[int, int]) -> int:
        return pair[0]

    joined = counts().group_by_key(lambda pair: pair[0]).join(counts().group_by_key(lambda pair: pair[0]), how="outer")

    assert list(range(300)) == sorted(await counts().map_async(number).filter_when(number_is_known).to_list())
    assert 300 == await joined.filter_when(number_is_known, max_concurrency=3).count()


async def test_elements_may_travel_as_results_too(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(20), 2), wire="results").map_async(doubled, max_concurrency=3)

    assert "map_async(doubled, 3)" in flow.describe().splitlines()[0]
    assert [2 * n for n in range(20)] == await flow.to_list()


async def test_no_more_are_under_way_than_concurrency_in_each_task(sc: Any, tmp_path: Path) -> None:
    """The first two wait for the third."""
    folder, third = tmp_path / "under way", str(tmp_path / "third")
    folder.mkdir()
    path = str(folder)

    async def most(n: int) -> int:
        import asyncio
        import os

        mine = os.path.join(path, str(n))
        open(mine, "w").close()
        if n == 2:
            open(third, "w").close()
        while n < 2 and not os.path.exists(third):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        found = len(os.listdir(path))
        os.remove(mine)
        return found

    assert 3 == await Flow.from_spark(sc.parallelize(range(30), 1)).map_async(most, max_concurrency=3).max()


async def test_nothing_is_taken_up_that_nobody_has_asked_for(sc: Any, tally: Tally) -> None:
    flow = (
        Flow.from_spark(sc.parallelize(range(100), 1))
        .map(tally.counting(lambda n: n))
        .map_async(doubled, max_concurrency=1)
    )

    assert [0, 2, 4] == await flow.take(3).to_list()
    assert 3 == tally.count


async def test_a_failure_arrives_behind_the_results_with_its_own_type_and_traceback(sc: Any) -> None:
    async def reciprocal(n: int) -> float:
        import asyncio

        await asyncio.sleep(0.001)
        return 1 / (5 - n)

    recorder = Recorder(request=100)
    Flow.from_spark(sc.parallelize(range(9), 1)).map_async(reciprocal, max_concurrency=3).subscribe(recorder)
    await recorder.over.wait()

    assert [1 / (5 - n) for n in range(5)] == recorder.items
    assert isinstance(recorder.error, ZeroDivisionError)
    element, operator, trace = recorder.error.__notes__
    assert element == "in map_async(reciprocal, 3) in this part of the stream, on element #5"
    assert operator.startswith("in map_async(reciprocal, 3), chained at ")
    assert operator.endswith("of partition 0 of from_spark(RDD)")
    assert "return 1 / (5 - n)" in trace


async def test_a_function_that_cancels_itself_is_a_failure_here(sc: Any) -> None:
    async def cancel(n: int) -> int:
        import asyncio

        raise asyncio.CancelledError(n)

    with pytest.raises(Exception, match="CancelledError") as failed:
        await Flow.from_spark(sc.parallelize(range(3), 1)).map_async(cancel).to_list()
    assert "in map_async(cancel, 16) in this part of the stream, on element #0" in failed.value.__notes__


async def test_a_cancel_ends_what_is_awaited(sc: Any, tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    marks = str(begun), str(ended)

    async def hang(n: int) -> int:
        import asyncio

        open(marks[0], "w").close()
        try:
            await asyncio.sleep(3600)
        finally:
            open(marks[1], "w").close()
        return n

    recorder = Recorder(request=1)
    Flow.from_spark(sc.parallelize(range(3), 1)).map_async(hang, max_concurrency=2).subscribe(recorder)
    async with asyncio.timeout(LIMIT):
        await until(begun.exists)
        recorder.cancel()
        await until(only_task)
    assert ended.exists()
    assert not active_jobs(sc)


async def test_a_killed_worker_costs_no_element_and_doubles_none(sc: Any, tmp_path: Path) -> None:
    mark = str(tmp_path / "killed")

    async def kill_once(n: int) -> int:
        import asyncio
        import os
        import signal

        await asyncio.sleep(0.001)
        if n == 60 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    flow = Flow.from_spark(sc.parallelize(range(100), 1), prefetch=16).map_async(kill_once, max_concurrency=8)
    async with asyncio.timeout(LIMIT):
        assert list(range(100)) == await flow.to_list()


async def test_what_is_awaited_goes_on_while_nothing_is_wanted(sc: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    name = str(mark)

    async def tell(n: int) -> int:
        import asyncio

        if n:
            await asyncio.sleep(0.01)
            open(name, "w").close()
        return n

    recorder = Recorder(request=1)
    Flow.from_spark(sc.parallelize(range(2), 1), prefetch=1).map_async(tell, max_concurrency=2).subscribe(recorder)
    await until(mark.exists)
    recorder.request(9)
    await recorder.over.wait()
    assert [0, 1] == recorder.items


async def test_one_loop_serves_all_partitions_of_a_python_worker(sc: Any) -> None:
    async def place(_: int) -> tuple[int, int]:
        import asyncio
        import os

        return os.getpid(), id(asyncio.get_running_loop())

    places = await Flow.from_spark(sc.parallelize(range(8), 8)).map_async(place).to_set()
    assert len(places) == len({process for process, _ in places})


@pytest.mark.parametrize("method", [Flow.map_async, Flow.filter_when])
def test_what_cannot_travel_is_refused_by_operator_and_line(
    sc: Any, method: Callable[[Flow[int], Callable[[int], Awaitable[Any]]], Flow[Any]]
) -> None:
    flow, lock = Flow.from_spark(sc.parallelize(range(9), 2)), threading.Lock()

    async def locked(n: int) -> bool:
        with lock:
            return bool(n)

    with pytest.raises(UnsupportedOnSparkError, match=rf"locked, .*chained at {__file__}:\d+, can't be sent"):
        method(flow, locked)
