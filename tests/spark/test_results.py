"""wire="results": elements that travel as results of jobs, where the workers can't connect to this process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from reactive_aio import DriverUnreachableError, Flow, SparkJobError, TaskCancelledError, schedulers
from reactive_aio._plan import TasksSnapshot
from tests.spark.jobs import active_jobs
from tests.spark.tally import Tally
from tests.spark.waiting import LIMIT, nothing_runs, until
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("nothing_left")]


@pytest.fixture
def nothing_left(sc: Any) -> Iterator[None]:
    yield
    assert not [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]
    assert not active_jobs(sc)


async def idle() -> None:
    """Wait until the flow has cleaned up."""
    await until(nothing_runs)


# -- elements


@pytest.mark.parametrize("prefetch", [1, 100, 8192])
async def test_the_elements_of_an_rdd_in_order(sc: Any, prefetch: int) -> None:
    flow = Flow.from_spark(sc.parallelize(range(200), 3), wire="results", prefetch=prefetch).filter(lambda n: n % 3)

    assert [n for n in range(200) if n % 3] == await flow.to_list()


async def test_chunks_and_partitions_of_any_size(sc: Any) -> None:
    parts = [range(5_000), (), range(5_000, 5_001), ()]
    rdd = sc.parallelize(parts, 4).flatMap(lambda part: part)

    assert [*range(5_001)] == await Flow.from_spark(rdd, wire="results", prefetch=999).to_list()


async def test_the_rows_of_a_frame_as_tuples_and_as_objects_of_a_class(spark: Any) -> None:
    @attrs.frozen
    class Pair:
        name: str
        id: int

    frame = spark.range(0, 5, 1, 2).selectExpr("id", "concat('r', id) as name", "1.5 as unread")

    assert [(f"r{n}", n) for n in range(5)] == [
        (pair.name, pair.id) for pair in await Flow.from_spark(frame, as_=Pair, wire="results").to_list()
    ]
    assert [(n,) for n in range(5)] == await Flow.from_spark(frame.select("id"), as_=tuple, wire="results").to_list()
    assert [()] * 5 == await Flow.from_spark(frame.select(), as_=tuple, wire="results").to_list()


async def test_what_is_done_runs_in_the_workers_and_in_parts(sc: Any) -> None:
    here = os.getpid()
    flow = Flow.from_spark(sc.parallelize(range(100), 3), wire="results")

    assert here not in await flow.map(lambda _: os.getpid()).to_set()
    assert (4950, 100, [99, 98]) == (await flow.sum(), await flow.count(), await flow.top_k(2))


async def test_without_elements(spark: Any, sc: Any) -> None:
    assert [] == await Flow.from_spark(sc.emptyRDD(), wire="results").to_list()
    assert [] == await Flow.from_spark(spark.range(9).where("false"), wire="results").to_list()


async def test_elements_whose_class_cannot_be_imported_here_come_as_that_class(sc: Any) -> None:
    class Local:
        def __init__(self, n: int) -> None:
            self.n = n

    found = await Flow.from_spark(sc.parallelize(range(3), 1), wire="results").map(Local).to_list()

    assert [(Local, 0), (Local, 1), (Local, 2)] == [(type(each), each.n) for each in found]


# -- demand


async def test_a_partition_is_computed_when_what_comes_before_it_has_been_read(sc: Any, tally: Tally) -> None:
    flow = Flow.from_spark(sc.parallelize(range(30), 3), wire="results", prefetch=4).map(tally.counting(lambda n: n))
    async with flow.open() as items:
        assert 0 == await anext(items)
        assert 10 == tally.count
        assert TasksSnapshot(3, 1, 0) == items.snapshot().regions[0].tasks
        assert [*range(1, 30)] == [item async for item in items]
        assert TasksSnapshot(3, 0, 3) == items.snapshot().regions[0].tasks
    assert 30 == tally.count


# -- failures


async def test_the_elements_before_then_the_exception_itself_and_no_more_jobs(sc: Any, tally: Tally) -> None:
    def check(n: Any) -> Any:
        if n == 17:
            raise LookupError("wrong", n)
        return n

    counted = tally.counting(lambda n: n)
    recorder = Recorder(request=2**63 - 1)
    Flow.from_spark(sc.parallelize(range(40), 4), wire="results").map(counted).map(check).subscribe(recorder)
    await recorder.over.wait()
    await idle()

    assert [*range(17)] == recorder.items
    assert (LookupError, ("wrong", 17)) == (type(recorder.error), recorder.error.args)
    where, remote = recorder.error.__notes__
    assert "on element #7 of partition 1 of from_spark(RDD" in where
    assert "raise LookupError" in remote
    assert 18 == tally.count


async def test_an_element_that_cannot_be_pickled(sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 1), wire="results").map(lambda n: n if n < 4 else threading.Lock())
    recorder = Recorder(request=2**63 - 1)
    flow.subscribe(recorder)
    await recorder.over.wait()
    await idle()

    assert [0, 1, 2, 3] == recorder.items
    assert type(recorder.error) is TypeError


async def test_a_job_that_fails_for_good_signals_once(spark: Any) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("assert_true(id < 7, 'too large') as nothing", "id")

    with pytest.raises(SparkJobError, match=r"from_spark\(DataFrame, as_=tuple, wire='results'\)") as raised:
        await Flow.from_spark(frame, as_=tuple, wire="results").to_list()
    assert raised.value.__cause__ is not None


# -- the end of it


async def test_leaving_early_stops_the_job_that_runs(sc: Any, tally: Tally) -> None:
    def slow(n: Any) -> Any:
        if n >= 10:
            threading.Event().wait()
        return n

    flow = Flow.from_spark(sc.parallelize(range(20), 2), wire="results").map(slow).map(tally.counting(lambda n: n))
    async with asyncio.timeout(LIMIT):
        async with flow.open() as items:
            assert [*range(10)] == [await anext(items) for _ in range(10)]
            await until(lambda: active_jobs(sc))
        assert not active_jobs(sc)


async def test_take_runs_no_more_jobs_than_it_needs(sc: Any, tally: Tally) -> None:
    flow = Flow.from_spark(sc.parallelize(range(30), 3), wire="results").map(tally.counting(lambda n: n))

    assert [0, 1, 2] == await flow.take(3).to_list()
    assert 10 >= tally.count


async def test_the_task_of_the_source_cancelled_by_somebody_else(sc: Any) -> None:
    recorder = Recorder(request=5)
    Flow.from_spark(sc.parallelize(range(100), 2), wire="results", prefetch=5).subscribe(recorder)
    while not (tasks := asyncio.all_tasks() - {asyncio.current_task()}):
        await asyncio.sleep(0)
    tasks.pop().cancel()
    await recorder.over.wait()

    assert ["subscribe", "error"] == recorder.kinds
    assert type(recorder.error) is TaskCancelledError


def test_the_plan_tells_of_the_wire(spark: Any, sc: Any) -> None:
    flow = Flow.from_spark(sc.parallelize(range(9), 2), wire="results", prefetch=64).map(str)

    assert (
        "R1  Spark local[3,4]        from_spark(RDD, wire='results') -> map(str)\n"
        " |  results of jobs, prefetch 64\n"
        "R2  the subscriber's loop"
    ) in flow.describe()
    assert (
        "R1  2 partitions, one after the other\n"
        "R1  pickled chunks as the results of a job for each partition, which the driver's JVM keeps while they are read"
    ) in flow.describe()
    rows = Flow.from_spark(spark.range(3), wire="results")
    assert "R1  Arrow into the workers and in slices, to be made rows here, as the results of" in rows.describe()
    assert "R1  Arrow into the workers, pickled chunks as the results of" in rows.map(str).describe()


# -- workers that can't connect


@pytest.fixture
def cut_off(sc: Any) -> Iterator[None]:
    """Have the workers told of an address at which nobody listens."""
    sc._conf.set("spark.reactive_aio.host", "127.0.0.2")
    yield
    sc._conf.set("spark.reactive_aio.host", "")


@pytest.mark.usefixtures("cut_off")
async def test_workers_that_cannot_connect_fail_the_flow_with_what_was_tried(sc: Any) -> None:
    with pytest.raises(
        DriverUnreachableError, match=r"can't connect to the event loop at 127\.0\.0\.2:\d+ .*refused"
    ) as raised:
        await Flow.from_spark(sc.parallelize(range(9), 3)).to_list()

    assert "spark.driver.host" in str(raised.value)
    assert "wire='results'" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("cut_off")
async def test_a_region_fed_from_the_loop_says_so_too(spark: Any) -> None:
    with pytest.raises(DriverUnreachableError, match=r"127\.0\.0\.2"):
        await Flow.range(9).publish_on(schedulers.spark(spark, 1)).map(str).to_list()


@pytest.mark.usefixtures("cut_off")
async def test_elements_come_all_the_same_as_results(spark: Any) -> None:
    assert [(n,) for n in range(9)] == await Flow.from_spark(
        spark.range(0, 9, 1, 3), as_=tuple, wire="results"
    ).to_list()


async def test_the_ports_to_listen_on_may_be_chosen(sc: Any) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        first = taken.getsockname()[1]
        try:
            sc._conf.set("spark.reactive_aio.ports", f"{first}-{first + 50}")
            assert 9 == await Flow.from_spark(sc.parallelize(range(9), 3)).count()
            sc._conf.set("spark.reactive_aio.ports", str(first))
            with pytest.raises(SparkJobError, match=r"no port of spark\.reactive_aio\.ports"):
                await Flow.from_spark(sc.parallelize(range(9), 3)).count()
            sc._conf.set("spark.reactive_aio.ports", "some")
            with pytest.raises(SparkJobError, match="41000-41031"):
                await Flow.from_spark(sc.parallelize(range(9), 3)).count()
        finally:
            sc._conf.set("spark.reactive_aio.ports", "")


# -- what is refused


def test_a_wire_is_one_that_is_known(sc: Any) -> None:
    with pytest.raises(ValueError, match=r"wire='udp'.*'tcp', 'results'"):
        Flow.from_spark(sc.parallelize([1]), wire="udp")


def test_a_stream_has_its_own(spark: Any) -> None:
    frame = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match=r"batch\.frame"):
        Flow.from_spark(frame, wire="results", checkpoint="somewhere")  # type: ignore[call-overload]
