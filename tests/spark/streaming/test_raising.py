"""An exception of any class that a user's code raises beside a streaming query arrives unchanged where the query is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, hooks
from tests.spark.kinds import ALL, KINDS, OwnError, arrives_as, failure, lingering, raised, raised_at_3
from tests.subscribers import Recorder

pytest.importorskip("pyspark")

from reactive_aio.spark._task.connecting import Address, connect
from reactive_aio.spark.sink import Frames
from reactive_aio.spark.streaming import Feed, SqliteLedger, exactly_once, feed, inbox
from reactive_aio.spark.streaming._feedwire import ANSWER, DONE, FETCH, LATEST, OFFSET, QUESTION
from tests.spark.streaming.test_query import batches
from tests.spark.streaming.writer import Process, hang_up_all

pytestmark = pytest.mark.spark


# -- who consumes micro-batches


async def test_a_handler_of_micro_batches(tmp_path: Path) -> None:
    async def handle(kind: int, batch: Any) -> None:
        async with batch:
            raised(kind)

    for kind in ALL:
        flow, queries = batches(tmp_path)

        assert arrives_as(kind) is type(await failure(flow.for_each(partial(handle, kind))))
        assert [] == queries[0].committed


async def test_a_handler_with_a_ledger_whose_transaction_is_undone(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")

    async def handle(kind: int, _: object, connection: Any) -> None:
        connection.execute("CREATE TABLE handled (kind INTEGER)")
        raised(kind)

    for kind in ALL:
        flow, _ = batches(tmp_path)

        assert arrives_as(kind) is type(await failure(flow.for_each(exactly_once(partial(handle, kind), ledger))))
    async with ledger.entry("query", 0) as connection:
        assert connection is not None
        assert [] == connection.execute("SELECT name FROM sqlite_master WHERE name = 'handled'").fetchall()


async def test_a_class_of_which_rows_become_objects() -> None:
    for kind in ALL:
        made = attrs.make_class(
            "Made", {"id": attrs.field(type=int, converter=partial(raised_at_3, kind))}, frozen=True
        )
        async with inbox(made) as own:
            task = await Process.task(own.options)
            async with own.batches.open() as items:
                rows = Recorder(request=9)
                batch = await anext(items)  # which fails if nobody holds it
                batch.rows.map(lambda row: row.id).subscribe(rows)
                await task.begun()
                task.ready(5)
                assert 5 == await task.granted()
                task.send(1, 2, 3, 4, 5)
                await rows.over.wait()

        await hang_up_all()
        assert ([1, 2], arrives_as(kind)) == (rows.items, type(rows.error))


# -- what a feed reads


async def asked(own: Feed, questions: Iterable[tuple[int, int, int, int]]) -> list[bytes | None]:
    """Ask as a query does, on one connection; None for an answer that is a refusal."""
    host, _, port = own.options["address"].rpartition(":")
    address = Address(host, int(port), bytes.fromhex(own.options["secret"]))
    line = await asyncio.to_thread(connect, address, 0, 0)
    line.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=line)
    found: list[bytes | None] = []
    for question in questions:
        writer.write(QUESTION.pack(*question))
        kind, length = ANSWER.unpack(await reader.readexactly(ANSWER.size))
        data = await reader.readexactly(length)
        found.append(data if kind == DONE else None)
    writer.close()
    await writer.wait_closed()
    return found


def wrong_flow(kind: int) -> Flow[Any]:
    return Flow.range(9).map(partial(raised_at_3, kind))


def wrong_rows(kind: int) -> Flow[Any]:
    return Flow.range(9).map(lambda n: Items(kind, n))


class Items(dict[str, int]):
    """A row. One kind of it raises when it is looked at."""

    def __init__(self, kind: int, n: int) -> None:
        super().__init__(n=n)
        self.kind = kind

    def __getitem__(self, name: str) -> int:
        return raised_at_3(self.kind, super().__getitem__(name))


@pytest.mark.parametrize("wrong", [wrong_flow, wrong_rows])
async def test_a_flow_that_is_fed_and_an_element_of_it(spark: Any, wrong: Callable[[int], Flow[Any]]) -> None:
    to_the_end = [(LATEST, 0, 9, 1), (LATEST, 0, 9, 1), (FETCH, 0, 3, 0), (LATEST, 3, 9, 1)]
    for kind in ALL:
        async with feed(wrong(kind), spark, "n long") as own:
            _, end, rows, beyond = await asked(own, to_the_end)

        assert (OFFSET.pack(3), None) == (end, beyond)
        assert rows is not None
        assert arrives_as(kind) is type(own.error)


async def test_a_function_that_is_to_give_a_flow_to_be_fed(spark: Any) -> None:
    def from_offset(kind: int, _: int) -> Flow[int]:
        raised(kind)

    for kind in ALL:
        async with feed(partial(from_offset, kind), spark, "n long", name="numbers") as own:
            assert [None] == await asked(own, [(LATEST, 0, 9, 0)])

        assert arrives_as(kind) is type(own.error)


async def test_the_cleanup_of_a_flow_that_a_feed_leaves(spark: Any) -> None:
    async def left(kind: int) -> None:
        async with feed(Flow.of(1).flat_map_iterable(partial(lingering, kind)), spark, "n long", ahead=4) as own:
            await asked(own, [(LATEST, 0, 9, 1)])

    for kind in ALL:
        if not isinstance(KINDS[kind], GeneratorExit):  # by which a generator says that it has been left in peace
            assert arrives_as(kind) is type(await failure(left(kind)))


async def test_a_failure_of_the_block_comes_before_that_of_the_cleanup(spark: Any) -> None:
    async def left(kind: int) -> None:
        async with feed(Flow.of(1).flat_map_iterable(partial(lingering, 1)), spark, "n long", ahead=4) as own:
            await asked(own, [(LATEST, 0, 9, 1)])
            raised(kind)

    dropped: list[BaseException] = []
    for kind in ALL:
        with hooks.using(on_error_dropped=dropped.append):
            assert type(KINDS[kind]) is type(await failure(left(kind)))

    assert [OwnError for _ in ALL] == [type(error) for error in dropped]


# -- what a function writes


async def test_a_function_that_writes_frames(spark: Any) -> None:
    def write(kind: int, *_: object) -> None:
        raised(kind)

    for kind in ALL:
        error = await failure(Flow.of(1).to_spark(Frames(spark, partial(write, kind)), "n long"))

        assert arrives_as(kind) is type(error)


async def test_a_function_that_writes_frames_and_raises_stop_iteration(spark: Any) -> None:
    def write(*_: object) -> None:
        raise StopIteration

    error = await failure(Flow.of(1).to_spark(Frames(spark, write), "n long"))

    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, StopIteration)


async def test_a_function_that_is_told_of_what_is_written(spark: Any) -> None:
    for kind in ALL:
        writer, told = Frames(spark, lambda *_: None), partial(raised_with, kind)

        assert arrives_as(kind) is type(await failure(Flow.of(1).to_spark(writer, "n long", progress=told)))


def raised_with(kind: int, _: object) -> None:
    raised(kind)
