"""An inbox answers its tasks and its driver, which the test plays."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, SourceConsumedError, SparkJobError
from reactive_aio._remote.frames import BEAT, PART, Frame
from reactive_aio._remote.handshake import REPLY, Greeter
from tests.spark.waiting import LIMIT, until
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

from reactive_aio.spark.streaming import Inbox, WrittenBatch, inbox
from reactive_aio.spark.streaming._inboxwire import ABORT, COMMIT, Delivery, frame
from tests.spark.streaming.writer import FIRST, Process, hang_up_all

pytestmark = pytest.mark.spark


@attrs.frozen
class Reading:
    id: int


@asynccontextmanager
async def opened(as_: type[Any], **options: Any) -> AsyncGenerator[Inbox[Any]]:
    """Open an inbox, and in the end hang up for all who have been played."""
    try:
        async with asyncio.timeout(LIMIT), inbox(as_, **options) as own:
            yield own
    finally:
        await hang_up_all()


@asynccontextmanager
async def read(own: Inbox[Any], request: int = 100) -> AsyncGenerator[tuple[WrittenBatch[Any], Recorder]]:
    """Yield the next micro-batch, and a subscriber of its rows."""
    async with own.batches.open() as batches:
        batch = await anext(batches)
        recorder = Recorder(request)
        batch.rows.map(lambda row: row.id).subscribe(recorder)
        yield batch, recorder


async def arrived(recorder: Recorder, count: int) -> list[Any]:
    await until(lambda: len(recorder.items) >= count)
    return recorder.items


async def test_one_that_is_cancelled_while_it_opens_listens_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    module = sys.modules["reactive_aio.spark.streaming._inbox"]
    listen_at = module.listen_at

    def noted(host: str, port: int) -> Any:
        listening = listen_at(host, port)
        made.append(listening.getsockname()[1])
        return listening

    async def open_one() -> None:
        async with inbox(Reading):
            await asyncio.Event().wait()

    monkeypatch.setattr(module, "listen_at", noted)
    opening = asyncio.create_task(open_one())
    while not made:
        await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", made[0])


# -- a micro-batch


async def test_rows_come_as_elements_and_the_driver_hears_when_they_are_consumed() -> None:
    async with opened(Reading) as own:
        task = await Process.task(own.options)
        async with read(own) as (batch, rows):
            assert 0 == await task.begun()
            task.ready(3)
            assert 3 == await task.granted()
            task.send(1, 2, 3)
            task.last()
            await task.stopped()
            assert ("complete", None) not in rows.signals  # Spark may yet say that the task has failed
            driver = await Process.driver(own.options, p0=3)
            await rows.over.wait()

            assert [1, 2, 3] == rows.items
            assert (0, "query") == (batch.id, batch.query)
            hearing = asyncio.create_task(driver.stopped())
            batch.acknowledge()
            await hearing


async def test_partitions_interleave_each_in_its_order() -> None:
    async with opened(Reading) as own:
        tasks = [await Process.task(own.options, partition=n) for n in (0, 1)]
        async with read(own) as (batch, rows):
            for turn in range(2):
                for n, task in enumerate(tasks):
                    if not turn:
                        await task.begun()
                        task.ready(2)
                        assert 2 == await task.granted()
                    task.send(10 * n + turn)
                    await arrived(rows, 2 * turn + n + 1)
            assert [0, 10, 1, 11] == rows.items
            batch.acknowledge()


async def test_a_micro_batch_is_offered_when_it_is_requested() -> None:
    recorder = Recorder()
    async with opened(Reading) as own:
        own.batches.subscribe(recorder)
        task = await Process.task(own.options)
        await task.begun()
        assert [] == recorder.items
        recorder.request(1)
        (batch,) = await arrived(recorder, 1)
        batch.acknowledge()


async def test_one_that_had_nothing_to_write_is_committed_without_a_word() -> None:
    from pyspark.sql.types import StructType

    from reactive_aio.spark.streaming._datasink import FlowWriter

    async with opened(Reading) as own:
        await asyncio.to_thread(FlowWriter(own.options, StructType()).commit, [], 0)


# -- demand


async def test_no_task_is_granted_more_than_was_requested() -> None:
    async with opened(Reading, prefetch=4) as own:
        task = await Process.task(own.options)
        async with read(own, request=1) as (batch, rows):
            await task.begun()
            task.ready(100)
            assert 4 == await task.granted()
            task.send(1, 2, 3, 4)
            assert [1] == await arrived(rows, 1)
            rows.request(2)  # three of four have been used
            assert 3 == await task.granted()
            batch.acknowledge()


async def test_credit_goes_to_those_who_have_rows_at_hand() -> None:
    async with opened(Reading, prefetch=4) as own:
        idle, busy = [await Process.task(own.options, partition=n) for n in (0, 1)]
        async with read(own) as (batch, _):
            await idle.begun()
            await busy.begun()
            busy.ready(9)
            assert 4 == await busy.granted()
            busy.send(1, 2, 3, 4)
            assert 4 == await busy.granted()
            batch.acknowledge()


async def test_what_a_lost_task_was_granted_goes_to_others() -> None:
    async with opened(Reading, prefetch=4) as own:
        lost, other = [await Process.task(own.options, partition=n) for n in (0, 1)]
        async with read(own) as (batch, _):
            await lost.begun()
            await other.begun()
            lost.ready(9)
            assert 4 == await lost.granted()
            other.ready(9)
            await lost.hang_up()
            assert 4 == await other.granted()
            batch.acknowledge()


async def test_a_task_that_falls_silent_is_hung_up_and_what_it_was_granted_goes_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(Reading, prefetch=4) as own:
        silent = await Process.task(own.options)
        async with read(own) as (batch, _):
            await silent.begun()
            silent.ready(9)
            assert 4 == await silent.granted()
            monkeypatch.setattr("reactive_aio.spark.streaming._hearing.BEAT", 0.001)
            silent.say(Frame(BEAT, 0))  # from the next frame on it is heard by short beats
            assert await silent.hear() is None
            monkeypatch.undo()
            other = await Process.task(own.options)
            other.ready(9)
            assert 0 == await other.begun()
            assert 4 == await other.granted()
            batch.acknowledge()


@pytest.mark.parametrize("patience", [0.01, math.inf])
async def test_a_query_whose_tasks_stay_away_fails_the_rows_in_time(patience: float) -> None:
    async with opened(Reading, patience=patience) as own:
        lost = await Process.task(own.options)
        async with read(own) as (batch, rows):
            await lost.begun()
            lost.ready(2)
            await lost.granted()
            lost.send(1)
            await arrived(rows, 1)
            await lost.hang_up()
            if patience == math.inf:
                assert 1 == await (await Process.task(own.options)).begun()
                return
            await rows.over.wait()
            assert SparkJobError is type(rows.error)
            assert "no task of query query has been connected for 0.01 seconds" in str(rows.error)
            with pytest.raises(SparkJobError, match="any more"):
                batch.acknowledge()
            late = await Process.task(own.options)
            assert "no task of query query has been connected" in await late.refused()


async def test_a_task_that_sends_more_than_it_was_granted_is_hung_up() -> None:
    async with opened(Reading, prefetch=2) as own:
        task = await Process.task(own.options)
        async with read(own) as (batch, rows):
            await task.begun()
            task.ready(9)
            assert 2 == await task.granted()
            task.send(1, 2, 3)
            assert await task.hear() is None
            assert [] == rows.items
            batch.acknowledge()


# -- tasks that are tried again


async def test_an_attempt_goes_on_behind_what_the_one_before_has_sent() -> None:
    async with opened(Reading) as own:
        first = await Process.task(own.options)
        async with read(own) as (batch, rows):
            await first.begun()
            first.ready(3)
            await first.granted()
            first.send(1)
            await arrived(rows, 1)
            second = await Process.task(own.options)  # it waits to see whether the first is lost
            first.send(2)
            await arrived(rows, 2)
            await first.hang_up()
            assert 2 == await second.begun()
            second.ready(1)
            await second.granted()
            second.send(3)
            second.last()
            await second.stopped()
            await Process.driver(own.options, p0=3)
            await rows.over.wait()
            assert [1, 2, 3] == rows.items
            batch.acknowledge()


async def test_an_attempt_that_has_ended_may_turn_out_to_have_failed() -> None:
    """Where Spark fails to read the input of a task, Python sees it end early."""
    async with opened(Reading) as own:
        first = await Process.task(own.options)
        async with read(own) as (batch, rows):
            await first.begun()
            first.ready(1)
            await first.granted()
            first.send(1)
            first.last()
            await first.stopped()
            second = await Process.task(own.options)
            assert 1 == await second.begun()
            second.ready(1)
            await second.granted()
            second.send(2)
            assert [1, 2] == await arrived(rows, 2)
            batch.acknowledge()


@pytest.mark.parametrize("again", [2, 4])
async def test_an_attempt_that_computed_other_rows_fails_the_micro_batch(again: int) -> None:
    async with opened(Reading) as own:
        task = await Process.task(own.options)
        async with read(own) as (batch, rows):
            await task.begun()
            task.ready(3)
            await task.granted()
            task.send(1, 2, 3)
            await arrived(rows, 3)
            driver = await Process.driver(own.options, p0=again)
            assert f"computed again, with {again} rows, after 3" in await driver.refused()
            await rows.over.wait()
            assert type(rows.error) is SparkJobError
            with pytest.raises(SparkJobError, match="can't be acknowledged any more"):
                batch.acknowledge()


async def test_a_task_that_is_late_is_told_what_was_decided() -> None:
    async with opened(Reading) as own:
        task = await Process.task(own.options)
        async with read(own) as (batch, _):
            batch.acknowledge()
            assert 0 == await task.begun()
            await task.stopped()
            await (await Process.driver(own.options, p0=None)).stopped()
            await (await Process.task(own.options)).stopped()


async def test_a_task_that_comes_when_the_query_has_gone_on_does_not_end_the_micro_batch_in_hand() -> None:
    second = Delivery("query", "run", 1)
    async with opened(Reading) as own:
        await (await Process.task(own.options)).begun()
        async with own.batches.open() as batches:
            (await anext(batches)).acknowledge()
            await (await Process.driver(own.options, p0=None)).stopped()

            task = await Process.task(own.options, second)
            assert 0 == await task.begun()
            await (await Process.task(own.options)).stopped()  # Spark gave it up while it was being started

            batch = await anext(batches)
            assert 1 == batch.id
            batch.acknowledge()
            await task.stopped()
            await (await Process.driver(own.options, second, p0=None)).stopped()


async def test_a_task_that_comes_when_the_query_has_begun_again_does_not_end_the_micro_batch_in_hand() -> None:
    again = Delivery("query", "another run", 0)
    async with opened(Reading) as own:
        await (await Process.task(own.options)).begun()
        async with own.batches.open() as batches:
            task = await Process.task(own.options, again)
            assert 0 == await task.begun()
            await (await Process.task(own.options)).stopped()

            (await anext(batches)).acknowledge()
            await task.stopped()
            await (await Process.driver(own.options, again, p0=None)).stopped()


# -- the end of a micro-batch


async def test_one_that_is_acknowledged_unread_needs_no_more_rows() -> None:
    async with opened(Reading) as own:
        task = await Process.task(own.options)
        async with own.batches.open() as batches:
            await task.begun()
            task.ready(5)
            (await anext(batches)).acknowledge()
            await task.stopped()
            await (await Process.driver(own.options, p0=None)).stopped()


async def test_one_that_spark_gives_up_fails_its_rows_and_comes_again() -> None:
    async with opened(Reading) as own:
        await (await Process.task(own.options)).begun()
        async with own.batches.open() as batches:
            batch = await anext(batches)
            await (await Process.driver(own.options, kind=ABORT, p0=None)).stopped()
            with pytest.raises(SparkJobError, match="Spark has given up micro-batch 0"):
                await batch.rows.to_list()

            again = await Process.task(own.options, Delivery("query", "another run", 0))
            batch = await anext(batches)
            assert 0 == batch.id
            assert 0 == await again.begun()
            batch.acknowledge()


async def test_a_query_that_begins_again_is_not_taken_for_the_one_that_was_lost() -> None:
    async with opened(Reading) as own:
        lost = await Process.task(own.options)
        async with read(own) as (batch, rows):
            await lost.begun()
            lost.ready(2)
            await lost.granted()
            lost.send(1)
            await arrived(rows, 1)
            await lost.hang_up()
            again = await Process.task(own.options, Delivery("query", "another run", 0))
            await rows.over.wait()
            assert "the query has restarted" in str(rows.error)
            assert 0 == await again.begun()
            with pytest.raises(SparkJobError, match="any more"):
                batch.acknowledge()


async def test_two_queries_at_once_are_one_too_many() -> None:
    async with opened(Reading) as own:
        await (await Process.task(own.options)).begun()
        other = await Process.task(own.options, Delivery("another query", "run", 0))
        assert "another query writes to this inbox" in await other.refused()


async def test_a_driver_with_a_batch_of_somebody_else_is_refused() -> None:
    async with opened(Reading) as own:
        assert "is unknown to this inbox" in await (await Process.driver(own.options, p0=1)).refused()
        await (await Process.task(own.options)).begun()
        another = Delivery("query", "another run", 0)
        assert "is unknown to this inbox" in await (await Process.driver(own.options, another, p0=1)).refused()


# -- the subscriber


@pytest.mark.parametrize("told", ["failed", "let go", "cancelled"])
async def test_what_is_not_consumed_is_refused(told: str) -> None:
    async with opened(Reading) as own:
        task = await Process.task(own.options)
        await task.begun()
        driver = await Process.driver(own.options, p0=0)
        async with own.batches.open() as batches:
            batch = await anext(batches)
            if told == "failed":
                batch.fail(OSError("the disk is full"))
                with pytest.raises(OSError, match="the disk is full"):
                    await anext(batches)
            elif told == "let go":
                del batch
                with pytest.raises(SparkJobError, match="dropped without an acknowledgement"):
                    await anext(batches)
        said = {"failed": "OSError: the disk is full", "let go": "dropped without", "cancelled": "has cancelled"}[told]
        assert said in await driver.refused()
        assert said in await task.refused()


async def test_the_next_subscriber_is_given_what_the_one_before_has_not_had() -> None:
    async with opened(Reading) as own:
        first = Recorder()
        own.batches.subscribe(first)
        task = await Process.task(own.options)
        await task.begun()
        first.cancel()
        async with read(own) as (batch, _):
            assert 0 == batch.id
            batch.acknowledge()
            await task.stopped()


async def test_an_inbox_serves_one_subscriber_at_a_time() -> None:
    async with opened(Reading) as own:
        first, second = Recorder(1), Recorder(1)
        own.batches.subscribe(first)
        own.batches.subscribe(second)
        await second.over.wait()
        assert "one subscriber at a time" in str(second.error)
        assert not first.over.is_set()
    await first.over.wait()
    assert ["subscribe", "complete"] == first.kinds


async def test_rows_are_read_once() -> None:
    async with opened(Reading) as own:
        await Process.task(own.options)
        async with read(own) as (batch, _):
            with pytest.raises(SourceConsumedError, match="subscribed to a second time"):
                await batch.rows.to_list()
            batch.acknowledge()


async def test_rows_may_be_read_on_another_loop() -> None:
    from reactive_aio import schedulers

    async with opened(Reading) as own:
        task = await Process.task(own.options)
        async with own.batches.open() as batches:
            batch = await anext(batches)
            rows: Flow[Any] = batch.rows.subscribe_on(schedulers.thread("rows"))
            end = asyncio.create_task(rows.map(lambda row: row.id).to_list())
            await task.begun()
            task.ready(2)
            assert 2 == await task.granted()
            task.send(1, 2)
            task.last()
            await task.stopped()
            driver = await Process.driver(own.options, p0=2)
            assert [1, 2] == await end
            batch.acknowledge()
            await driver.stopped()


async def test_a_row_that_is_refused_by_its_class_fails_the_rows_behind_those_before_it() -> None:
    @attrs.frozen
    class Small:
        id: int = attrs.field(validator=attrs.validators.lt(3))

    async with opened(Small) as own:
        task = await Process.task(own.options)
        async with read(own) as (batch, rows):
            await task.begun()
            task.ready(3)
            await task.granted()
            task.send(1, 2, 3)
            await rows.over.wait()
            assert [1, 2] == rows.items
            assert isinstance(rows.error, ValueError)
            batch.acknowledge()


async def test_a_class_that_does_not_fit_what_is_written_refuses_the_tasks() -> None:
    @attrs.frozen
    class Other:
        name: str

    async with opened(Other) as own:
        assert "inbox(as_=Other): the class does not fit" in await (await Process.task(own.options)).refused()


# -- who comes in


async def test_a_stranger_is_dropped_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read_: list[object] = []
    monkeypatch.setattr(sys.modules["reactive_aio.spark.streaming._inbox"], "named", read_.append)
    async with opened(Reading) as own:
        with pytest.raises(ConnectionError, match="does not know the secret"):
            await Process.task({**own.options, "secret": "00" * 32})
        host, _, port = own.options["address"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.writelines(frame(COMMIT, FIRST, rows={}).encoded())
        writer.writelines(Frame(PART, 0, 1, pickled=b"c__builtin__\nexit\n").encoded())
        assert b"" == await reader.read()
        writer.close()
        await writer.wait_closed()
    assert [] == read_


async def test_of_strangers_who_say_nothing_the_oldest_is_turned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactive_aio.spark.streaming._reception.MOST_STRANGERS", 2)
    monkeypatch.setattr("reactive_aio.spark.streaming._reception.MANNERS", 1000)
    async with opened(Reading) as own:
        host, _, port = own.options["address"].rpartition(":")
        ends = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        assert b"" == await ends[0][0].read()
        await (await Process.task(own.options)).begun()
        for _, writer in ends:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def test_a_guest_that_has_greeted_is_not_turned_out_by_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactive_aio.spark.streaming._reception.MOST_STRANGERS", 2)
    monkeypatch.setattr("reactive_aio.spark.streaming._reception.MANNERS", 1000)
    async with opened(Reading) as own:
        host, _, port = own.options["address"].rpartition(":")
        guest, writer = await asyncio.open_connection(host, int(port))
        greeter = Greeter(bytes.fromhex(own.options["secret"]), 0, 0)
        writer.write(greeter.greeting)
        reply = await guest.readexactly(REPLY.size)
        ends = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        for _, each in ends:
            each.write(Greeter(b"", 0, 0).greeting)  # as a stranger would, who knows how guests greet
        for reader, _ in ends[:-2]:
            with suppress(ConnectionError):
                await reader.read()
        writer.write(greeter.answer(reply))
        await writer.drain()
        assert not guest.at_eof()
        for _, each in [*ends, (guest, writer)]:
            each.close()
            with suppress(ConnectionError):
                await each.wait_closed()


async def test_a_stranger_who_says_nothing_is_turned_out_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactive_aio.spark.streaming._reception.MANNERS", 0)
    async with opened(Reading) as own:
        host, _, port = own.options["address"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        assert b"" == await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_closing_hangs_up_on_all() -> None:
    async with inbox(Reading) as own:
        task = await Process.task(own.options)
        await task.begun()
    assert "has been closed" in await task.refused()
    assert await task.hear() is None
    host, _, port = own.options["address"].rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
    await hang_up_all()


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"as_": int}, TypeError, "an attrs class"),
        ({"as_": Reading, "prefetch": 0}, ValueError, "at least 1"),
        ({"as_": Reading, "prefetch": True}, TypeError, "prefetch is a whole number, not bool"),
        ({"as_": Reading, "prefetch": 1.5}, TypeError, "prefetch is a whole number, not float"),
        ({"as_": Reading, "host": None}, TypeError, "host is a name or an address of this machine, not NoneType"),
        ({"as_": Reading, "port": "80"}, TypeError, "port is a whole number, not str"),
        ({"as_": Reading, "port": 1.5}, TypeError, "port is a whole number, not float"),
        ({"as_": Reading, "patience": "1"}, TypeError, "patience is a number of seconds, not str"),
        ({"as_": Reading, "patience": True}, TypeError, "patience is a number of seconds, not bool"),
        ({"as_": Reading, "patience": 0.0}, ValueError, "a number of seconds above 0"),
    ],
)
async def test_bad_options_are_refused(options: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        async with opened(**options):
            pass
