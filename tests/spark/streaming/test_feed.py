"""From asyncio to Structured Streaming: a flow that Spark reads as a stream."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, SchemaMismatchError, SparkJobError
from tests.spark.streaming.wire import overheard
from tests.spark.waiting import until

pytest.importorskip("pyspark")

from reactive_aio.spark._task.connecting import Address, connect
from reactive_aio.spark.streaming import Feed, MicroBatch, feed
from reactive_aio.spark.streaming._feedwire import LATEST, QUESTION

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("nothing_left")]

NOW = {"availableNow": True}


@attrs.frozen
class Reading:
    id: int
    name: str | None = None


def readings(n: int) -> Flow[Reading]:
    return Flow.range(n).map(lambda id_: Reading(id_, f"r{id_}"))


async def batches(own: Feed, checkpoint: str, **options: Any) -> Flow[MicroBatch[Reading]]:
    return Flow.from_spark(await own.frame(), as_=Reading, checkpoint=checkpoint, **options)


async def taken(flow: Flow[MicroBatch[Reading]]) -> list[list[int]]:
    """Consume all; the rows of each batch by their ids."""
    found: list[list[int]] = []

    async def take(batch: MicroBatch[Reading]) -> None:
        async with batch as rows:
            found.append(await rows.map(lambda row: row.id).to_list())

    await flow.for_each(take)
    return found


def joined(found: list[list[int]]) -> list[int]:
    return [n for batch in found for n in batch]


# -- rows


async def test_to_its_end_with_batches_of_the_size_that_is_allowed(spark: Any, checkpoint: str) -> None:
    async with feed(readings(10), spark, Reading, ahead=8, batch=4) as own:
        found = await taken(await batches(own, checkpoint, trigger=NOW))

    assert [*range(10)] == joined(found)
    assert max(map(len, found)) <= 4


async def test_to_its_end_however_long_the_rest_takes(spark: Any, checkpoint: str) -> None:
    begun = asyncio.Event()

    async def late(emit: Callable[[Reading], Awaitable[None]]) -> None:
        await emit(Reading(0))
        await begun.wait()
        await asyncio.sleep(0.5)  # longer than a query is kept waiting otherwise
        await emit(Reading(1))

    found: list[int] = []

    async def take(batch: MicroBatch[Reading]) -> None:
        async with batch as rows:
            found.extend(await rows.map(lambda row: row.id).to_list())
        begun.set()

    async with feed(Flow.create(late), spark, Reading) as own:
        await (await batches(own, checkpoint, trigger=NOW)).for_each(take)

    assert [0, 1] == found


async def test_one_that_goes_on_until_it_is_drained_in_two_partitions(spark: Any, checkpoint: str) -> None:
    async with feed(readings(3000), spark, "id long, name string", partitions=2) as own:
        frame = await own.frame()
        query = frame.writeStream.format("memory").queryName("fed").option("checkpointLocation", checkpoint).start()
        try:
            await own.drain(query)
            rows = spark.table("fed").orderBy("id").collect()
        finally:
            await asyncio.to_thread(query.stop)

    assert [(n, f"r{n}") for n in range(3000)] == [tuple(row) for row in rows]


# -- demand


async def test_no_more_is_asked_for_than_ahead_of_what_spark_has_admitted(spark: Any, checkpoint: str) -> None:
    made = 0

    def numbers() -> Iterator[Reading]:
        nonlocal made
        for n in range(100):
            made = n + 1
            yield Reading(n)

    async with feed(Flow.from_iterable(numbers()), spark, Reading, ahead=8, batch=4) as own:
        flow = await batches(own, checkpoint)
        assert 0 == made  # before there is a query
        async with flow.open() as items:
            at = 0
            for _ in range(3):
                batch = await anext(items)
                rows = await batch.rows.to_list()
                await until(lambda: made >= at + 8)  # noqa: B023 - it is asked while it is bound
                await asyncio.to_thread(spark.range(3).count)
                assert at + 8 == made
                batch.acknowledge()
                at += len(rows)


# -- beginning again


async def test_a_query_that_begins_again_is_given_what_it_had_not_committed(spark: Any, checkpoint: str) -> None:
    async with feed(readings(12), spark, Reading, ahead=8, batch=4) as own:
        first: list[int] = []
        async with (await batches(own, checkpoint)).open() as items:
            while len(first) < 4:
                async with await anext(items) as rows:
                    first += [row.id for row in await rows.to_list()]
            lost = await anext(items)
            repeated = [row.id for row in await lost.rows.to_list()]
        rest = joined(await taken(await batches(own, checkpoint, trigger=NOW)))

    # The last one that was acknowledged may come again too: Spark may not have recorded it.
    assert repeated == rest[rest.index(repeated[0]) :][: len(repeated)]
    assert {*range(12)} == {*first, *rest}
    assert [*range(rest[0], 12)] == rest


async def test_by_its_name_and_an_offset_a_stream_goes_on_in_another_process(spark: Any, checkpoint: str) -> None:
    asked: list[int] = []

    def from_offset(offset: int) -> Flow[Reading]:
        asked.append(offset)
        return readings(12).skip(offset)

    async with feed(from_offset, spark, Reading, ahead=8, batch=4, name="readings") as own:
        flow = await batches(own, checkpoint)
        async with flow.open() as items:
            async with await anext(items) as rows:
                done = await rows.count()
            await anext(items)  # so that the one before has been recorded

    async with feed(from_offset, spark, Reading, ahead=8, batch=4, name="readings", partitions=2) as own:
        rest = joined(await taken(await batches(own, checkpoint, trigger=NOW)))

    assert [0, done] == asked
    assert [*range(done, 12)] == sorted(rest)


async def test_by_its_name_a_stream_is_read_from_the_beginning_again(spark: Any, tmp_path: Path) -> None:
    async with feed(lambda n: readings(12).skip(n), spark, Reading, ahead=8, batch=4, name="readings") as own:
        found = [joined(await taken(await batches(own, str(tmp_path / name), trigger=NOW))) for name in "ab"]

    assert [[*range(12)]] * 2 == found


async def test_a_flow_is_not_taken_for_the_rest_of_another(spark: Any, checkpoint: str) -> None:
    async with feed(readings(3), spark, Reading) as own:
        await taken(await batches(own, checkpoint, trigger=NOW))

    async with feed(readings(3), spark, Reading) as own:
        with pytest.raises(SparkJobError) as caught:
            await taken(await batches(own, checkpoint, trigger=NOW))
    assert "a flow can't be read again from the middle" in str(caught.value.__cause__)


# -- failures


@pytest.mark.parametrize("kind", ["the flow", "an element"])
async def test_rows_before_a_failure_are_delivered_and_the_failure_is_raised(
    spark: Any, checkpoint: str, kind: str
) -> None:
    wrong: Any = 5

    def check(reading: Reading) -> Reading:
        if reading.id == 3:
            if kind == "the flow":
                raise OSError("the sensor is gone")
            return Reading(3, wrong)
        return reading

    found: list[list[int]] = []
    async with feed(readings(9).map(check), spark, Reading) as own:
        frame = await own.frame()
        writer = frame.writeStream.option("checkpointLocation", checkpoint)
        query = writer.foreachBatch(lambda rows, _: found.append([row.id for row in rows.collect()])).start()
        with pytest.raises(
            (OSError, SchemaMismatchError), match=r"the sensor is gone|element #3, field name"
        ) as caught:
            await own.drain(query)

    assert isinstance(caught.value, OSError if kind == "the flow" else SchemaMismatchError)
    assert [0, 1, 2] == joined(found)


async def test_a_connection_without_the_secret_is_told_nothing(spark: Any) -> None:
    begun: list[int] = []
    async with feed(Flow.range(3).do_on_next(begun.append), spark, "n long") as own:
        host, _, port = own.options["address"].rpartition(":")
        assert "127.0.0.1" == host
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(QUESTION.pack(LATEST, 0, 9, 0) * 9)
        assert b"" == await reader.read()
        writer.close()
        await writer.wait_closed()
        with pytest.raises(ConnectionError, match="does not know the secret"):
            await asyncio.to_thread(connect, Address(host, int(port), b"x" * 32), 0, 0)

    assert not begun
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))


async def test_a_connection_that_is_there_when_the_feed_ends_is_hung_up_without_a_word(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with feed(Flow.range(3), spark, "n long") as own:
        host, _, port = own.options["address"].rpartition(":")
        address = Address(host, int(port), bytes.fromhex(own.options["secret"]))
        line = await asyncio.to_thread(connect, address, 0, 0)
        line.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=line)
        writer.write(QUESTION.pack(LATEST, 0, 9, 0))
        assert await reader.read(1)
    await reader.read()
    writer.close()
    await writer.wait_closed()

    assert [] == caplog.records


async def test_the_secret_never_travels(spark: Any, checkpoint: str) -> None:
    async with feed(readings(9), spark, Reading) as own, overheard(own.options, frames=False) as wire:
        await own.frame()  # which has the session know the format
        reader = spark.readStream.format("reactive_aio").options(**{**own.options, "address": wire.address})
        frame = await asyncio.to_thread(reader.load)
        assert [*range(9)] == joined(
            await taken(Flow.from_spark(frame, as_=Reading, checkpoint=checkpoint, trigger=NOW))
        )

    assert b"r8" in wire.bytes
    assert bytes.fromhex(own.options["secret"]) not in wire.bytes
    assert own.options["secret"].encode() not in wire.bytes


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ahead": 0}, "ahead"),
        ({"batch": 0}, "batch"),
        ({"partitions": 0}, "partitions"),
        ({"name": "a"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "\udcff"}, "name has no UTF-8"),
    ],
)
async def test_bad_options_are_refused(spark: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        async with feed(readings(1), spark, Reading, **options):
            pass


async def no_coroutine(offset: int) -> Flow[int]:
    return Flow.range(offset, 3)


@pytest.mark.parametrize(
    ("flow", "options", "told"),
    [
        ([1, 2], {}, "feed() takes a flow, or a function from an offset to one, not list"),
        (no_coroutine, {"name": "a"}, "feed() takes an ordinary function, but no_coroutine is async def"),
        (Flow.range(3), {"batch": 1.5}, "feed(batch=1.5): batch is a whole number"),
        (lambda at: Flow.range(at, 3), {"name": 5}, "feed(name=5): name is a text, not int"),
        (Flow.range(3), {"session": None}, "feed(session=None): session must be a SparkSession"),
    ],
)
async def test_what_is_no_flow_and_no_session_is_refused(
    spark: Any, flow: Any, options: dict[str, Any], told: str
) -> None:
    given = {"session": spark, "schema": "n long", **options}
    with pytest.raises(TypeError, match=re.escape(told)):
        async with feed(flow, **given):
            pass


async def test_a_function_from_an_offset_needs_a_name(spark: Any) -> None:
    with pytest.raises(ValueError, match="name"):
        async with feed(readings, spark, Reading):
            pass


async def test_a_folder_that_to_spark_writes_is_a_stream_that_outlives_its_writer(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    from reactive_aio.spark.sink import Files

    writer = Files(spark, tmp_path / "spool", run="a")
    await readings(4).to_spark(writer, Reading, size=2)
    stream = spark.readStream.schema("id long, name string, batch string").parquet(writer.path)

    def read() -> Flow[MicroBatch[Reading]]:
        return Flow.from_spark(stream, as_=Reading, checkpoint=checkpoint, trigger=NOW)

    first = joined(await taken(read()))
    await readings(7).to_spark(writer, Reading, size=2)
    second = joined(await taken(read()))

    assert [0, 1, 2, 3] == sorted(first)
    assert [4, 5, 6] == sorted(second)
