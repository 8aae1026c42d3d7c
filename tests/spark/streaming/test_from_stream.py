"""From Structured Streaming to asyncio: micro-batches under demand, committed when they have been consumed."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, SparkJobError, TaskCancelledError, UnsupportedOnSparkError
from tests.spark.streaming.files import Folder, committed
from tests.spark.streaming.taking import NOW, Reading, reading, taken
from tests.spark.waiting import LIMIT, only_task, until
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

from reactive_aio.spark.streaming import MicroBatch, SqliteLedger, exactly_once
from reactive_aio.spark.streaming._query import Query
from reactive_aio.spark.streaming._source import StreamSubscription

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("nothing_left")]


def batches(folder: Folder, checkpoint: str, **options: Any) -> Flow[MicroBatch[Reading]]:
    return Flow.from_spark(folder.stream(), as_=Reading, checkpoint=checkpoint, **options)


async def the_task_of_the_source() -> asyncio.Task[Any]:
    """Wait until the source has been opened."""
    while not (found := asyncio.all_tasks() - {asyncio.current_task()}):
        await asyncio.sleep(0)
    (task,) = found
    return task


# -- what is delivered


async def test_micro_batches_come_in_order_with_their_numbers_and_typed_rows(folder: Folder, checkpoint: str) -> None:
    folder.add(1, 2)
    folder.add(3)

    assert [(0, [reading(1), reading(2)]), (1, [reading(3)])] == await taken(batches(folder, checkpoint, trigger=NOW))
    assert {0, 1} == committed(checkpoint)


async def test_what_is_done_with_the_rows_runs_in_the_workers(folder: Folder, checkpoint: str) -> None:
    import os

    folder.add(1, 2)
    async with batches(folder, checkpoint).open() as items, await anext(items) as rows:
        flow = rows.map(lambda row: (row.id * 10, os.getpid()))
        assert "from_spark(DataFrame, as_=Reading) -> map(<lambda>)" in flow.describe()
        found = await flow.to_list()

    assert [10, 20] == [number for number, _ in found]
    assert os.getpid() not in {pid for _, pid in found}


async def test_a_batch_is_a_frame_as_well(folder: Folder, checkpoint: str) -> None:
    folder.add(1, 2, 3)
    async with batches(folder, checkpoint).open() as items:
        batch = await anext(items)
        assert 3 == await asyncio.to_thread(batch.frame.count)
        batch.acknowledge()
        batch.acknowledge()  # says nothing new


async def test_an_aggregate_in_update_mode(folder: Folder, checkpoint: str) -> None:
    folder.add(1, 2, 3)
    folder.add(4)
    counts = folder.stream().groupBy("name").count()
    flow = Flow.from_spark(counts, as_=dict, checkpoint=checkpoint, output_mode="update", trigger=NOW)
    found: list[list[Any]] = []

    async def take(batch: MicroBatch[Any]) -> None:
        async with batch as rows:
            found.append(sorted(row["name"] for row in await rows.to_list()))

    await flow.for_each(take)

    assert [["r1", "r2", "r3"], ["r4"]] == found


def test_the_plan_shows_the_stream(folder: Folder, checkpoint: str) -> None:
    plan = batches(folder, checkpoint).map(str).describe().splitlines()

    assert f"from_spark(streaming DataFrame, as_=Reading, checkpoint={checkpoint!r})" in plan[0]
    assert "micro-batches, each when the one before is acknowledged" in plan[1]
    assert plan[2].endswith("map(str)")


# -- demand, and what is committed


async def test_no_batch_is_made_without_demand_nor_before_the_one_before_is_acknowledged(
    folder: Folder, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        folder.add(n)
    recorder, offered, take = Recorder(), asyncio.Event(), StreamSubscription.offered

    def noted(subscription: StreamSubscription, offer: Any) -> None:
        take(subscription, offer)
        offered.set()

    monkeypatch.setattr(StreamSubscription, "offered", noted)
    batches(folder, checkpoint).subscribe(recorder)
    await offered.wait()
    await asyncio.to_thread(folder.spark.range(3).count)  # it has had all the time
    assert ["subscribe"] == recorder.kinds

    recorder.request(3)
    await until(lambda: recorder.items)
    recorder.items[0].acknowledge()
    await until(lambda: len(recorder.items) >= 2)

    assert {0} == committed(checkpoint)
    assert not Path(checkpoint, "offsets", "2").exists()
    recorder.cancel()
    await until(only_task)
    assert {0} == committed(checkpoint)
    recorder.items[1].fail(ValueError("nobody hears this"))


async def test_what_was_not_acknowledged_comes_again_by_its_number(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    folder.add(2, 3)
    async with batches(folder, checkpoint).open() as items:
        async with await anext(items) as rows:
            await rows.to_list()
        batch = await anext(items)
        assert [reading(2), reading(3)] == await batch.rows.to_list()
    with pytest.raises(SparkJobError, match="micro-batch 1 can't be acknowledged any more"):
        batch.acknowledge()

    folder.add(4)
    again = await taken(batches(folder, checkpoint, trigger=NOW))
    assert [(1, [reading(2), reading(3)]), (2, [reading(4)])] == again

    assert [] == await taken(batches(folder, checkpoint, trigger=NOW))


async def test_a_flow_cancelled_before_its_query_has_started(folder: Folder, checkpoint: str) -> None:
    recorder = Recorder(request=1)
    batches(folder, checkpoint).subscribe(recorder)
    await the_task_of_the_source()
    recorder.cancel()
    await until(only_task)

    assert ["subscribe"] == recorder.kinds


async def test_a_cancel_while_spark_has_nothing_to_do(folder: Folder, checkpoint: str) -> None:
    end = asyncio.create_task(taken(batches(folder, checkpoint)))
    await until(lambda: folder.spark.streams.active)
    end.cancel()

    async with asyncio.timeout(LIMIT):
        with pytest.raises(asyncio.CancelledError):
            await end


async def test_to_spark_a_query_that_is_cancelled_was_stopped_and_has_not_failed(
    folder: Folder, checkpoint: str
) -> None:
    folder.add(1)
    async with batches(folder, checkpoint).open() as items:
        await anext(items)
        (query,) = folder.spark.streams.active

    assert query.exception() is None


async def test_cancelling_leaves_no_noise(
    folder: Folder, checkpoint: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    folder.add(1)
    async with batches(folder, checkpoint).open() as items:
        await anext(items)

    assert ("", "") == capfd.readouterr()
    assert [] == caplog.records


async def test_the_thread_on_which_spark_calls_back_ends_with_the_query(
    folder: Folder, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    called = Query._called

    def noted(query: Query, frame: Any, batch: int) -> None:
        threads.append(threading.current_thread())
        called(query, frame, batch)

    monkeypatch.setattr(Query, "_called", noted)
    folder.add(1)
    folder.add(2)
    await taken(batches(folder, checkpoint, trigger=NOW))
    async with batches(folder, f"{checkpoint}-left").open() as items:
        await anext(items)

    assert 3 == len(threads)
    await until(lambda: not any(thread.is_alive() for thread in threads))


# -- failures


async def test_what_goes_wrong_with_a_batch_fails_the_flow_and_the_batch_comes_again(
    folder: Folder, checkpoint: str
) -> None:
    folder.add(1)

    async def fail(batch: MicroBatch[Reading]) -> None:
        async with batch:
            raise KeyError("no such sensor")

    with pytest.raises(KeyError, match="no such sensor"):
        await batches(folder, checkpoint).for_each(fail)

    assert [(0, [reading(1)])] == await taken(batches(folder, checkpoint, trigger=NOW))


async def test_a_batch_that_is_given_up_elsewhere_fails_the_flow(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    async with batches(folder, checkpoint).open() as items:
        batch = await anext(items)
        await asyncio.to_thread(batch.fail, OSError("the disk is full"))
        with pytest.raises(OSError, match="the disk is full"):
            await anext(items)


async def test_a_batch_that_is_let_go_of_without_a_word_is_an_error_and_no_standstill(
    folder: Folder, checkpoint: str
) -> None:
    folder.add(1)

    with pytest.raises(
        SparkJobError, match=r"micro-batch 0 was dropped without an acknowledgement\. Use `async with batch`"
    ):
        await batches(folder, checkpoint).map(lambda batch: batch.id).for_each(lambda _: gc.collect())


async def test_where_spark_fails_to_make_the_rows_the_error_is_typed(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    frame = folder.stream().selectExpr("CAST(raise_error('no such unit') AS LONG) id", "name")

    with pytest.raises(SparkJobError, match="failed"):
        await taken(Flow.from_spark(frame, as_=Reading, checkpoint=checkpoint))


async def test_a_query_that_cannot_start_is_an_error(folder: Folder, checkpoint: str) -> None:
    flow = batches(folder, checkpoint, output_mode="complete")  # without an aggregate

    with pytest.raises(SparkJobError, match="the streaming query of from_spark"):
        await taken(flow)


async def test_a_query_stopped_by_somebody_else_is_complete(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    async with batches(folder, checkpoint).open() as items:
        async with await anext(items):
            pass
        (query,) = folder.spark.streams.active
        await asyncio.to_thread(query.stop)
        with pytest.raises(StopAsyncIteration):
            await anext(items)


async def test_the_task_of_the_source_cancelled_by_somebody_else(folder: Folder, checkpoint: str) -> None:
    recorder = Recorder(request=1)
    batches(folder, checkpoint).subscribe(recorder)
    task = await the_task_of_the_source()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(only_task)

    assert type(recorder.error) is TaskCancelledError


def test_a_loop_that_ends_in_the_middle_stops_the_query(folder: Folder, checkpoint: str) -> None:
    folder.add(1)

    async def leave() -> None:
        recorder = Recorder(request=1)
        batches(folder, checkpoint).subscribe(recorder)
        await until(lambda: recorder.items)

    asyncio.run(leave())

    assert not committed(checkpoint)


# -- exactly once


async def test_with_a_ledger_a_batch_that_comes_again_takes_effect_once(
    folder: Folder, checkpoint: str, tmp_path: Path
) -> None:
    folder.add(1, 2)
    folder.add(3)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    handled: list[int] = []

    async def handle(batch: MicroBatch[Reading], connection: Any) -> None:
        handled.append(batch.id)
        connection.execute("CREATE TABLE IF NOT EXISTS readings (id INTEGER)")
        for row in await batch.rows.to_list():
            connection.execute("INSERT INTO readings VALUES (?)", (row.id,))
        if handled == [0, 1]:
            raise OSError("in the middle of the transaction")

    # The effect of the first batch is recorded, and its acknowledgement is lost.
    async with batches(folder, checkpoint).open() as items:
        batch = await anext(items)
        async with ledger.entry(batch.query, batch.id) as connection:
            await handle(batch, connection)
    with pytest.raises(OSError, match="in the middle"):
        await batches(folder, checkpoint).for_each(exactly_once(handle, ledger))
    await batches(folder, checkpoint, trigger=NOW).for_each(exactly_once(handle, ledger))

    async with ledger.entry("another", 0) as connection:
        assert connection is not None
        assert [(1,), (2,), (3,)] == connection.execute("SELECT id FROM readings ORDER BY id").fetchall()
    assert [0, 1, 1] == handled
    assert {0, 1} == committed(checkpoint)


# -- what is refused when the flow is built


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"checkpoint": ""}, ValueError, "checkpoint must be a folder"),
        ({"checkpoint": " "}, ValueError, "checkpoint must be a folder"),
        ({"checkpoint": 5}, TypeError, r"checkpoint=5\): checkpoint must be the path of a folder"),
        ({"checkpoint": b"out"}, TypeError, r"checkpoint=b'out'\): checkpoint must be the path of a folder"),
        ({"checkpoint": "\udcff"}, ValueError, "checkpoint has no UTF-8: surrogates not allowed"),
        ({"trigger": "availableNow"}, TypeError, r"trigger='availableNow'\): trigger must be a mapping, such as"),
        ({"trigger": ""}, TypeError, r"trigger=''\): trigger must be a mapping, such as"),
        ({"trigger": 0}, TypeError, r"trigger=0\): trigger must be a mapping, such as"),
        ({"output_mode": "some"}, ValueError, "append, update, complete"),
        ({"trigger": {"realTime": "5 seconds"}}, UnsupportedOnSparkError, "Continuous and real-time mode have no"),
        ({"trigger": {"continuous": "1 second"}}, UnsupportedOnSparkError, "Continuous and real-time mode have no"),
        ({"trigger": {"availableNow": False}}, ValueError, "the value of availableNow must be True"),
        ({"trigger": {"once": "yes"}}, ValueError, "the value of once must be True"),
        ({"trigger": {"processingTime": 5}}, ValueError, "the value of processingTime must be a text, such as"),
        ({"trigger": {"processingTime": " "}}, ValueError, "the value of processingTime must be a text, such as"),
        ({"prefetch": 0}, ValueError, "prefetch"),
        ({"ordered": "no"}, TypeError, "ordered is True or False"),
        ({"as_": int}, TypeError, "an attrs class"),
        ({"as_": ""}, TypeError, "an attrs class"),
    ],
)
def test_bad_options_are_refused(
    folder: Folder, checkpoint: str, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        Flow.from_spark(folder.stream(), **{"checkpoint": checkpoint, **options})


def test_the_checkpoint_may_be_any_path_object(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "of a query").mkdir()
    (entry,) = (each for each in os.scandir(tmp_path) if each.name == "of a query")
    flow = Flow.from_spark(folder.stream(), checkpoint=entry)

    assert str(tmp_path / "of a query") in "\n".join(flow.describe().splitlines())


def test_a_streaming_frame_needs_a_checkpoint(folder: Folder) -> None:
    with pytest.raises(TypeError, match="of a streaming DataFrame needs checkpoint"):
        Flow.from_spark(folder.stream())


def test_a_frame_that_has_an_end_needs_no_checkpoint(spark: Any, checkpoint: str) -> None:
    with pytest.raises(TypeError, match="Leave checkpoint out"):
        Flow.from_spark(spark.range(3), checkpoint=checkpoint)


def test_a_frame_of_spark_connect_is_refused(checkpoint: str) -> None:
    class Frame:
        pass

    Frame.__module__ = "pyspark.sql.connect.dataframe"
    with pytest.raises(UnsupportedOnSparkError, match="classic session"):
        Flow.from_spark(Frame(), checkpoint=checkpoint)  # type: ignore[call-overload]
