"""From Structured Streaming to asyncio by a writer: frame.writeStream.format("reactive_aio") into a flow."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import DriverUnreachableError, Flow, SparkJobError, UnsupportedOnSparkError
from tests.spark.streaming.files import Folder, committed
from tests.spark.streaming.taking import NOW, Reading, reading, taken
from tests.spark.streaming.wire import overheard
from tests.spark.waiting import until
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

from reactive_aio.spark.streaming import SqliteLedger, WrittenBatch, exactly_once, inbox, register
from reactive_aio.spark.streaming._reception import Reception

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("nothing_left")]


def start(frame: Any, checkpoint: str, options: Mapping[str, str], **trigger: Any) -> Any:
    """Start a query as somebody else would; on a thread."""
    register(frame.sparkSession)
    writer = frame.writeStream.format("reactive_aio").options(**options).option("checkpointLocation", checkpoint)
    return (writer.trigger(**trigger) if trigger else writer).start()


# -- what is delivered


async def test_micro_batches_come_in_order_with_their_numbers_and_typed_rows(folder: Folder, checkpoint: str) -> None:
    folder.add(1, 2)
    folder.add(3)
    async with inbox(Reading) as own:
        query = await own.start(folder.stream(), checkpoint=checkpoint, trigger=NOW)
        assert [(0, [reading(1), reading(2)]), (1, [reading(3)])] == await taken(own.batches)

    assert {0, 1} == committed(checkpoint)
    assert query.exception() is None


async def test_what_a_query_that_has_nothing_to_do_writes_is_complete(folder: Folder, checkpoint: str) -> None:
    async with inbox(Reading) as own:
        query = await own.start(folder.stream(), checkpoint=checkpoint, trigger=NOW)
        await asyncio.to_thread(query.awaitTermination)
        assert [] == await taken(own.batches)


async def test_partitions_are_written_side_by_side(folder: Folder, checkpoint: str) -> None:
    folder.add(*range(100))
    async with inbox(tuple) as own:
        await own.start(folder.stream().repartition(3), checkpoint=checkpoint, trigger=NOW)
        ((_, rows),) = await taken(own.batches)

    assert [(n, f"r{n}") for n in range(100)] == sorted(rows)


async def test_an_aggregate_in_complete_mode_is_the_whole_result_each_time(folder: Folder, checkpoint: str) -> None:
    folder.add(1, 2)
    folder.add(2)
    counts = folder.stream().groupBy("id").count()
    async with inbox(tuple) as own:
        await own.start(counts, checkpoint=checkpoint, output_mode="complete", trigger=NOW)
        found = await taken(own.batches)

    assert [[(1, 1), (2, 1)], [(1, 1), (2, 2)]] == [sorted(rows) for _, rows in found]


async def test_values_are_those_of_from_spark(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    columns = [
        "timestamp'2024-07-01 12:00:00' at",
        "date'2024-07-01' day",
        "named_struct('a', 1, 'b', array('x', null)) parts",
        "map('k', 1.5d) m",
        "CAST(null AS INT) n",
    ]
    frame = folder.stream().selectExpr(*columns)
    async with inbox(dict) as own:
        await own.start(frame, checkpoint=checkpoint, trigger=NOW)
        ((_, rows),) = await taken(own.batches)

    assert await Flow.from_spark(folder.spark.range(1).selectExpr(*columns), as_=dict).to_list() == rows
    assert dt.datetime(2024, 7, 1, 12) == rows[0]["at"]


async def test_a_query_that_somebody_else_starts_finds_its_way_by_the_options(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    async with inbox(Reading) as own:
        query = await asyncio.to_thread(start, folder.stream(), checkpoint, own.options)
        async with own.batches.open() as batches, await anext(batches) as rows:
            assert [reading(1)] == await rows.to_list()
        await asyncio.to_thread(query.processAllAvailable)
        assert {0} == committed(checkpoint)
        await asyncio.to_thread(query.stop)


# -- demand and commits


async def test_it_is_committed_when_it_has_been_acknowledged_and_no_other_is_made_before(
    folder: Folder, checkpoint: str
) -> None:
    folder.add(1)
    folder.add(2)
    async with inbox(Reading) as own:
        await own.start(folder.stream(), checkpoint=checkpoint)
        async with own.batches.open() as batches:
            batch = await anext(batches)
            await batch.rows.to_list()
            await asyncio.to_thread(folder.spark.range(3).count)  # Spark has had all the time
            assert not committed(checkpoint)
            assert not Path(checkpoint, "offsets", "1").exists()
            batch.acknowledge()
            batch = await anext(batches)
            assert {0} == committed(checkpoint)
            batch.acknowledge()


async def test_credits_throttle_the_tasks(folder: Folder, checkpoint: str) -> None:
    folder.add(*range(50_000))
    recorder = Recorder(request=3)
    async with inbox(Reading, prefetch=8) as own, overheard(own.options) as wire:
        options = {**own.options, "address": wire.address}
        query = await asyncio.to_thread(start, folder.stream(), checkpoint, options)
        async with own.batches.open() as batches:
            batch = await anext(batches)
            batch.rows.subscribe(recorder)
            await until(lambda: len(recorder.items) >= 3)
            await asyncio.to_thread(folder.spark.range(3).count)  # it has had all the time
            assert wire.rows <= 3 + 8
            recorder.request(100)
            await until(lambda: len(recorder.items) >= 103)
            assert wire.rows <= 103 + 8
            batch.acknowledge()
            await asyncio.to_thread(query.processAllAvailable)
        await asyncio.to_thread(query.stop)


# -- delivered again


async def test_what_was_not_acknowledged_comes_again_by_its_number(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    folder.add(2, 3)
    async with inbox(Reading) as own:
        query = await own.start(folder.stream(), checkpoint=checkpoint)
        async with own.batches.open() as batches:
            async with await anext(batches) as rows:
                await rows.to_list()
            batch = await anext(batches)
            assert [reading(2), reading(3)] == await batch.rows.to_list()
        with pytest.raises(SparkJobError, match="micro-batch 1 can't be acknowledged any more"):
            batch.acknowledge()
        assert not query.isActive  # the subscriber has cancelled

        await own.start(folder.stream(), checkpoint=checkpoint, trigger=NOW)
        assert [(1, [reading(2), reading(3)])] == await taken(own.batches)


async def test_a_subscriber_that_fails_fails_the_query_and_the_batch_comes_again(
    folder: Folder, checkpoint: str
) -> None:
    folder.add(1)

    async def fail(batch: WrittenBatch[Any]) -> None:
        async with batch as rows:
            await rows.first()
            raise KeyError("no such sensor")

    async with inbox(Reading) as own:
        query = await own.start(folder.stream(), checkpoint=checkpoint)
        with pytest.raises(KeyError, match="no such sensor"):
            await own.batches.for_each(fail)
        assert not query.isActive
        assert not committed(checkpoint)

        await own.start(folder.stream(), checkpoint=checkpoint, trigger=NOW)
        assert [(0, [reading(1)])] == await taken(own.batches)


async def test_a_task_that_is_lost_is_tried_again_and_goes_on_behind_what_has_arrived(
    folder: Folder, checkpoint: str
) -> None:
    folder.add(*range(5000))
    found: list[Reading] = []
    async with inbox(Reading, prefetch=1000) as own, overheard(own.options) as wire:

        def take(row: Reading) -> None:
            found.append(row)
            if len(found) == 1500:
                wire.cut()

        options = {**own.options, "address": wire.address}
        query = await asyncio.to_thread(start, folder.stream(), checkpoint, options, **NOW)
        async with own.batches.open() as batches, await anext(batches) as rows:
            await rows.for_each(take)
        await asyncio.to_thread(query.awaitTermination)

    assert [reading(n) for n in range(5000)] == found


async def test_with_a_ledger_a_batch_that_comes_again_takes_effect_once(
    folder: Folder, checkpoint: str, tmp_path: Path
) -> None:
    folder.add(1, 2)
    folder.add(3)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    handled: list[int] = []

    async def handle(batch: WrittenBatch[Reading], connection: Any) -> None:
        handled.append(batch.id)
        connection.execute("CREATE TABLE IF NOT EXISTS readings (id INTEGER)")
        await batch.rows.for_each(lambda row: connection.execute("INSERT INTO readings VALUES (?)", (row.id,)))
        if handled == [0, 1]:
            raise OSError("in the middle of the transaction")

    async with inbox(Reading) as own:
        await own.start(folder.stream(), checkpoint=checkpoint)
        async with own.batches.open() as batches:  # the effect is recorded, and the acknowledgement is lost
            batch = await anext(batches)
            async with ledger.entry(batch.query, batch.id) as connection:
                await handle(batch, connection)
        await own.start(folder.stream(), checkpoint=checkpoint)
        with pytest.raises(OSError, match="in the middle"):
            await own.batches.for_each(exactly_once(handle, ledger))
        await own.start(folder.stream(), checkpoint=checkpoint, trigger=NOW)
        await own.batches.for_each(exactly_once(handle, ledger))

    async with ledger.entry("another", 0) as connection:
        assert connection is not None
        assert [(1,), (2,), (3,)] == connection.execute("SELECT id FROM readings ORDER BY id").fetchall()
    assert [0, 1, 1] == handled
    assert {0, 1} == committed(checkpoint)


# -- the end


async def test_where_the_query_fails_so_does_the_flow(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    frame = folder.stream().selectExpr("CAST(raise_error('no such unit') AS LONG) id", "name")
    async with inbox(Reading) as own:
        await own.start(frame, checkpoint=checkpoint)
        with pytest.raises(SparkJobError, match="the streaming query of Inbox"):
            await taken(own.batches)


async def test_tasks_that_cannot_connect_fail_the_flow_with_what_was_tried(
    folder: Folder, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reception, "address", "127.0.0.2:9")  # where nobody listens
    folder.add(1)
    async with inbox(tuple) as own:
        await own.start(folder.stream(), checkpoint=checkpoint, trigger=NOW)
        with pytest.raises(
            DriverUnreachableError, match=r"can't connect to .* 127\.0\.0\.2:9 .*inbox\(host="
        ) as raised:
            await own.batches.drain()

    assert "\n" not in str(raised.value)


async def test_an_inbox_that_is_closed_stops_the_query_that_was_started_here(folder: Folder, checkpoint: str) -> None:
    folder.add(1)
    async with inbox(Reading) as own:
        query = await own.start(folder.stream(), checkpoint=checkpoint)
        recorder = Recorder(request=1)
        own.batches.subscribe(recorder)
        await until(lambda: recorder.items)

    assert not query.isActive
    assert query.exception() is None  # it was stopped, and has not failed
    assert not committed(checkpoint)
    with pytest.raises(SparkJobError, match="any more"):
        recorder.items[0].acknowledge()


async def test_a_query_that_can_not_start_is_an_error(folder: Folder, checkpoint: str) -> None:
    async with inbox(Reading) as own:
        with pytest.raises(SparkJobError, match="the streaming query of Inbox"):
            await own.start(folder.stream(), checkpoint=checkpoint, output_mode="complete")  # without an aggregate


async def test_cancelling_leaves_no_noise(
    folder: Folder, checkpoint: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    folder.add(1)
    async with inbox(Reading) as own:
        await own.start(folder.stream(), checkpoint=checkpoint)
        async with own.batches.open() as batches:
            await anext(batches)

    assert ("", "") == capfd.readouterr()
    assert [] == caplog.records


# -- the wire


async def test_the_secret_never_travels(folder: Folder, checkpoint: str) -> None:
    folder.add(1, 2)
    async with inbox(Reading) as own, overheard(own.options) as wire:
        options = {**own.options, "address": wire.address}
        query = await asyncio.to_thread(start, folder.stream(), checkpoint, options, **NOW)
        async with own.batches.open() as batches, await anext(batches) as rows:
            assert 2 == await rows.count()
        await asyncio.to_thread(query.awaitTermination)
        assert b"r2" in wire.bytes
        assert bytes.fromhex(own.options["secret"]) not in wire.bytes
        assert own.options["secret"].encode() not in wire.bytes


# -- what is refused at once


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"checkpoint": ""}, ValueError, r"Inbox.start\(checkpoint=''\): checkpoint must be a folder"),
        ({"output_mode": "some"}, ValueError, "append, update, complete"),
        ({"trigger": {"continuous": "1 second"}}, UnsupportedOnSparkError, "Continuous and real-time mode have no"),
    ],
)
async def test_bad_options_are_refused(
    folder: Folder, checkpoint: str, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    async with inbox(Reading) as own:
        with pytest.raises(error, match=told):
            await own.start(folder.stream(), **{"checkpoint": checkpoint, **options})


async def test_a_frame_that_has_an_end_and_a_class_that_does_not_fit_are_refused(
    folder: Folder, checkpoint: str
) -> None:
    async with inbox(Reading) as own:
        with pytest.raises(TypeError, match="a streaming DataFrame"):
            await own.start(folder.spark.range(3), checkpoint=checkpoint)
        with pytest.raises(TypeError, match="name"):
            await own.start(folder.stream().select("id"), checkpoint=checkpoint)


async def test_an_inbox_is_for_one_query_at_a_time(folder: Folder, checkpoint: str, tmp_path: Path) -> None:
    async with inbox(Reading) as own:
        await own.start(folder.stream(), checkpoint=checkpoint)
        with pytest.raises(ValueError, match="is running"):
            await own.start(folder.stream(), checkpoint=tmp_path / "another")
