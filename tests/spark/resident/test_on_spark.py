"""publish_on(schedulers.spark(...)): a stream of the loop's goes through a cluster and back."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, UnsupportedOnSparkError, schedulers
from tests.spark.jobs import active_jobs
from tests.spark.stuck import Stuck
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, nothing_runs, until
from tests.subscribers import Recorder

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.fixture
def nothing_left(sc: Any) -> Iterator[Any]:
    yield
    assert not [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]
    assert not active_jobs(sc)


# -- elements


@pytest.mark.usefixtures("nothing_left")
async def test_elements_go_through_the_cluster_and_back_in_order(spark: Any) -> None:
    here = os.getpid()
    flow = Flow.range(3_000).publish_on(schedulers.spark(spark, 2)).map(lambda n: (n, os.getpid() != here))

    assert [(n, True) for n in range(0, 3_000, 2)] == await flow.filter(lambda pair: pair[0] % 2 == 0).to_list()


@pytest.mark.usefixtures("nothing_left")
async def test_operators_that_depend_on_the_place_run_on_the_loop(spark: Any) -> None:
    flow = Flow.range(100).publish_on(schedulers.spark(spark, 2)).map(lambda n: n + 1).take(3).map(str)

    assert ["1", "2", "3"] == await flow.to_list()
    _, _, region, boundary, rest, *_ = flow.describe().splitlines()
    assert region.split() == ["R2", "spark(local[3,4],", "slots=2)", "map(<lambda>)"]
    assert boundary == " |  in order, as requested"
    assert rest.endswith("take(3) -> map(str)")


class Local:
    """A class that no worker can import."""

    def __init__(self, n: int) -> None:
        self.n = n


Local.__module__ = "__main__"


@pytest.mark.usefixtures("nothing_left")
async def test_elements_of_a_class_of_the_main_module_travel_by_value(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Local", Local, raising=False)
    flow = Flow.of(Local(1), Local(2)).publish_on(schedulers.spark(spark, 1)).map(lambda one: Local(10 * one.n))

    assert [(Local, 10), (Local, 20)] == [(type(one), one.n) for one in await flow.to_list()]


@pytest.mark.usefixtures("nothing_left")
async def test_no_more_is_under_way_than_the_prefetch(spark: Any, tally: Tally) -> None:
    recorder = Recorder(request=3)
    counted = tally.counting(lambda n: n)
    Flow.range(10**6).publish_on(schedulers.spark(spark, 2), prefetch=8).map(counted).subscribe(recorder)
    await until(lambda: len(recorder.items) >= 3)

    assert tally.count <= 3 + 8
    recorder.cancel()
    await until(nothing_runs)
    assert tally.count <= 3 + 8


# -- failures


@pytest.mark.usefixtures("nothing_left")
async def test_a_failure_keeps_type_message_and_traceback(spark: Any) -> None:
    def reciprocal(n: int) -> float:
        return 1 / (5 - n)

    recorder = Recorder(request=10)
    Flow.range(9).publish_on(schedulers.spark(spark, 2)).map(reciprocal).subscribe(recorder)
    await recorder.over.wait()

    assert [1 / (5 - n) for n in range(5)] == recorder.items
    error = recorder.error
    assert (ZeroDivisionError, "division by zero") == (type(error), str(error))
    operator, trace = error.__notes__
    assert operator.startswith("in map(reciprocal), chained at ")
    assert "on element #5" in operator
    assert trace.startswith("traceback in task ")
    assert "return 1 / (5 - n)" in trace
    await until(nothing_runs)


@pytest.mark.usefixtures("nothing_left")
async def test_killed_workers_cost_no_element_and_double_none(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path)

    def deadly(n: int) -> int:
        if n in {100, 101, 1_500}:
            try:
                os.mkdir(f"{path}/{n}")
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return n

    flow = Flow.range(3_000).publish_on(schedulers.spark(spark, 2)).map(deadly)
    async with asyncio.timeout(LIMIT):
        assert list(range(3_000)) == await flow.to_list()
    assert {"100", "101", "1500"} == set(os.listdir(path))


# -- cancel, and slots


@pytest.mark.usefixtures("nothing_left")
async def test_leaving_early_stops_the_tasks(spark: Any, sc: Any) -> None:
    async with Flow.range(10**6).publish_on(schedulers.spark(spark, 2)).map(lambda n: n).open() as items:
        assert [0, 1, 2] == [await anext(items) for _ in range(3)]
        assert active_jobs(sc)

    assert not active_jobs(sc)
    assert {asyncio.current_task()} == asyncio.all_tasks()


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the worker in /proc")
@pytest.mark.usefixtures("nothing_left", "lenient_spark")
async def test_cancel_ends_the_worker_of_a_task_in_the_middle_of_a_function(
    spark: Any, sc: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stuck = Stuck(tmp_path / "stuck")
    flow = Flow.range(10_000).map(lambda n: f"{n:01000}")  # more than finds room in the buffers of a connection
    flow = flow.publish_on(schedulers.spark(spark, 1), prefetch=10_000).map(stuck.function())
    end = asyncio.create_task(flow.to_list())
    process = await stuck.begun()
    end.cancel()
    with pytest.raises(asyncio.CancelledError):
        await end

    assert not active_jobs(sc)
    await stuck.gone(process)
    assert ("", "") == capfd.readouterr()


@pytest.mark.usefixtures("nothing_left")
def test_a_loop_that_ends_in_the_middle_stops_the_tasks(spark: Any, sc: Any) -> None:
    recorder = None

    async def leave() -> None:
        nonlocal recorder
        recorder = Recorder(request=5)
        Flow.range(10**6).publish_on(schedulers.spark(spark, 2)).map(lambda n: n).subscribe(recorder)
        await until(lambda: len(recorder.items) >= 5)

    asyncio.run(leave())

    for thread in threading.enumerate():
        if "reactive_aio" in thread.name:
            thread.join(LIMIT)  # on the loop that has ended nobody could wait for it
    assert recorder is not None
    assert [0, 1, 2, 3, 4] == recorder.items
    assert not active_jobs(sc)


@pytest.mark.usefixtures("nothing_left")
async def test_an_idle_region_gives_its_slots_back(spark: Any, sc: Any) -> None:
    more = asyncio.Event()

    async def numbers() -> Any:
        yield 1
        await more.wait()
        yield 2

    flow = Flow.from_async_iterable(numbers()).publish_on(schedulers.spark(spark, 2, idle=0.05)).map(lambda n: -n)
    async with asyncio.timeout(LIMIT), flow.open() as items:
        assert -1 == await anext(items)
        await until(lambda: not active_jobs(sc))
        more.set()
        assert -2 == await anext(items)


@pytest.mark.usefixtures("nothing_left")
async def test_a_region_on_spark_behind_a_source_on_spark(spark: Any, sc: Any) -> None:
    there = schedulers.spark(spark, 2)
    flow = Flow.from_spark(sc.parallelize(range(500), 2)).skip(1).publish_on(there).map(lambda n: -n)

    async with asyncio.timeout(LIMIT):
        assert [-n for n in range(1, 500)] == await flow.to_list()


# -- what is refused, when the flow is built


class Holder:
    def __init__(self, held: Any) -> None:
        self.held = held

    def __call__(self, item: Any) -> Any:
        return item


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (threading.Lock, "a lock"),
        (threading.Event, "a lock"),
        (asyncio.Lock, "a lock of an event loop"),
        (asyncio.Queue, "a queue of an event loop"),
        (asyncio.new_event_loop, "an event loop"),
        (None, "a Spark session"),
    ],
    ids=["lock", "event", "asyncio-lock", "queue", "loop", "session"],
)
def test_what_belongs_to_this_process_is_refused_by_operator_and_line(spark: Any, make: Any, words: str) -> None:
    held = spark if make is None else make()
    flow = Flow.range(3).publish_on(schedulers.spark(spark, 2)).map(str)

    with pytest.raises(UnsupportedOnSparkError) as refused:
        flow.map(lambda item: (item, held))
    assert f"it captures {words} (" in str(refused.value)
    assert "map(<lambda>), chained at" in str(refused.value)
    assert "test_on_spark.py" in str(refused.value)
    with pytest.raises(UnsupportedOnSparkError, match="it captures"):
        flow.map(Holder(held))
    with pytest.raises(UnsupportedOnSparkError, match="it captures"):
        Flow.from_spark(spark.sparkContext.parallelize([1])).map(lambda item: (item, held))
    flow.take(1).map(lambda item: (item, held))  # that runs on the loop
    if isinstance(held, asyncio.AbstractEventLoop):
        held.close()


def test_a_generator_is_refused(spark: Any) -> None:
    numbers = (n for n in range(3))

    with pytest.raises(UnsupportedOnSparkError, match="generator"):
        Flow.range(3).publish_on(schedulers.spark(spark, 2)).map(lambda n: (n, numbers))


def test_arguments_are_checked(spark: Any) -> None:
    on: Any = schedulers.spark
    with pytest.raises(TypeError, match="takes a session of PySpark, not str"):
        on("local")
    with pytest.raises(ValueError, match="slots must be at least 1"):
        on(spark, 0)
    with pytest.raises(TypeError, match="whole number"):
        on(spark, 1.5)
    with pytest.raises(ValueError, match="idle=0"):
        on(spark, 1, idle=0)
    with pytest.raises(TypeError, match="workers apply functions"):
        Flow.range(3).subscribe_on(on(spark, 1))
    assert max(1, spark.sparkContext.defaultParallelism - 1) == on(spark).count
