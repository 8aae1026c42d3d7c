"""Flows on Spark Connect: each row of the documentation's table, as a program that runs against a server.

    python -m tests.spark_cluster.connect_table          start a server, and write the table into the page

A row says what is called and what comes of it. The outcome in the table is the one that was found.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from reactive_aio import Flow, UnsupportedOnSparkError, schedulers

PAGE: Final = Path(__file__).parents[2] / "docs" / "concepts" / "spark-clusters.md"
BEGIN: Final = "<!-- by tests/spark_cluster/connect_table.py -->\n"
N: Final = 100
WORKERS, LOOP, WORKS = "in the workers of the server", "on the event loop", "works"
PARTS: Final = f"{WORKERS}, in parts"

Program = Callable[[Any], Awaitable[str]]


@frozen
class Row:
    """A line of the table."""

    call: str
    program: Program
    outcome: str
    note: str = ""

    def __str__(self) -> str:
        return f"| {self.call} | {self.outcome}{'; ' * bool(self.note)}{self.note} |\n"


def number(row: tuple[int]) -> int:
    return row[0]


def numbers(session: Any, **settings: Any) -> Flow[int]:
    return Flow.from_spark(session.range(0, N, 1, 4), as_=tuple, **settings).map(number)


def runs(**steps: Callable[[Flow[int]], Flow[Any]]) -> Program:
    """Return a program that returns where operators run, if their elements are the same without Spark."""

    async def program(session: Any) -> str:
        (outcome,) = {await where(session, name, step) for name, step in steps.items()}
        return outcome

    return program


async def where(session: Any, name: str, step: Callable[[Flow[int]], Flow[Any]]) -> str:
    flow = step(numbers(session))
    assert sorted(await step(Flow.range(N)).to_list()) == sorted(await flow.to_list())
    region = flow.describe().splitlines()[0]
    if not region.startswith("R1  Spark Connect") or f"-> {name}(" not in region:
        return LOOP
    return PARTS if region.endswith(" in parts") else WORKERS


def ends(*ends: Callable[[Flow[int]], Awaitable[Any]]) -> Program:
    """See that ends give what they give without Spark."""

    async def program(session: Any) -> str:
        for end in ends:
            assert await end(Flow.range(N)) == await end(numbers(session))
        return WORKS

    return program


def refused(call: Callable[[Any], object]) -> Program:
    """See that a call is refused."""

    async def program(session: Any) -> str:
        try:
            found = call(session)
            if isinstance(found, Awaitable):
                await found
        except UnsupportedOnSparkError:
            return "refused"
        return WORKS

    return program


def framed(step: Callable[[Flow[int]], Flow[Any]], schema: str) -> Program:
    """See that a frame has the elements of the flow."""

    async def program(session: Any) -> str:
        frame = step(numbers(session)).to_frame(schema)
        assert sorted(await step(Flow.range(N)).to_list()) == sorted(tuple(row) for row in frame.collect())
        return WORKS

    return program


async def plus_one(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


def last_digit(n: int) -> int:
    return n % 10


request_id: ContextVar[str] = ContextVar("request_id")


def in_context(_: object) -> str:
    return request_id.get()


async def with_context(session: Any) -> str:
    request_id.set("a")
    assert {"a"} == set(await numbers(session, context=[request_id]).map(in_context).to_list())
    return WORKS


async def failing(session: Any) -> str:
    taken: list[float] = []
    try:
        await numbers(session).map(lambda n: 1 / (n - 50)).for_each(taken.append)
    except ZeroDivisionError:
        assert 50 == len(taken)
        return WORKS
    return "lost"


async def to_table(session: Any) -> str:
    from reactive_aio.spark.sink import Table

    rows = numbers(session).map(lambda n: (n,))
    await rows.to_spark(Table(session, "numbers", run="a"), "n long")
    assert N == session.table("numbers").count()
    for written in (True, False):
        done = await rows.to_spark(Table(session, "numbers", run="b"), "n long", size=None)
        assert (N, written) == (done.rows, done.written)
    assert 2 * N == session.table("numbers").count()
    return WORKS


async def to_frames(session: Any) -> str:
    from reactive_aio.spark.sink import Frames

    counts: list[int] = []
    frames = Frames(session, run="b", fn=lambda frame, _: counts.append(frame.count()))
    await numbers(session).map(lambda n: (n,)).to_spark(frames, "n long", size=30)
    assert [30, 30, 30, 10] == counts
    return WORKS


async def to_frames_whole(session: Any) -> str:
    from reactive_aio.spark.sink import Frames

    frames = Frames(session, run="c", fn=lambda frame, _: frame.count())
    rows = numbers(session).map(lambda n: (n,))
    return await refused(lambda _: rows.to_spark(frames, "n long", size=None))(session)


async def batched(session: Any) -> str:
    import pyarrow as pa

    frame = Flow.from_spark(session.range(N), as_=pa.RecordBatch).to_frame("id long")
    assert list(range(N)) == sorted(row.id for row in frame.collect())
    return WORKS


async def chosen(session: Any) -> str:
    frame = session.range(N).selectExpr("id", "id + 1 AS next", "concat('r', id) AS name")
    rows = Flow.from_spark(frame, as_=tuple).to_frame("name string, id long", columns=["name", "id"])
    assert [(f"r{n}", n) for n in range(N)] == sorted((tuple(row) for row in rows.collect()), key=lambda row: row[1])
    return WORKS


def joined(flow: Flow[int]) -> Flow[tuple[int, int, int]]:
    pairs = flow.group_by_key(last_digit).join(flow.filter(is_small).group_by_key(last_digit))
    return pairs.map(lambda pair: (pair[0], *pair[1]))


def is_small(n: int) -> bool:
    return n < 5


async def to_files(session: Any) -> str:
    from reactive_aio.spark.sink import Files

    return await refused(lambda _: Flow.range(3).to_spark(Files(session, "numbers", run="a"), "n long"))(session)


async def streamed(session: Any) -> str:
    stream = session.readStream.format("rate").load()
    return await refused(lambda _: Flow.from_spark(stream, checkpoint="checkpoint"))(session)


async def fed(session: Any) -> str:
    from reactive_aio.spark.streaming import feed

    async def entered(_: Any) -> None:
        async with feed(Flow.range(3), session, "n long"):
            pass

    return await refused(entered)(session)


async def received(session: Any) -> str:
    from reactive_aio.spark.streaming import inbox

    async def started(_: Any) -> None:
        async with inbox() as own:
            await own.start(session.readStream.format("rate").load(), checkpoint="checkpoint")

    return await refused(started)(session)


def registered(session: Any) -> None:
    from reactive_aio.spark.streaming import register

    register(session)


ROWS: Final = (
    Row(
        "`Flow.from_spark(frame)`",
        runs(map=lambda flow: flow.map(str)),
        WORKERS,
        "one job, whose results the server sends in the order of the partitions",
    ),
    Row(
        "`filter`, `flat_map_iterable`",
        runs(filter=lambda flow: flow.filter(bool), flat_map_iterable=lambda flow: flow.flat_map_iterable(range)),
        WORKERS,
    ),
    Row("`map_async`, in order", runs(map_async=lambda flow: flow.map_async(plus_one)), WORKERS),
    Row(
        "`take`, `distinct`",
        runs(take=lambda flow: flow.take(7), distinct=lambda flow: flow.distinct(last_digit)),
        PARTS,
    ),
    Row(
        "`index`, `skip`, `scan`, `buffer`",
        runs(
            index=lambda flow: flow.index(),
            skip=lambda flow: flow.skip(7),
            scan=lambda flow: flow.scan(max),
            buffer=lambda flow: flow.buffer(7),
        ),
        LOOP,
    ),
    Row("`sort_by`", runs(sort_by=lambda flow: flow.sort_by()), PARTS),
    Row("`group_by_key(...)`", runs(group_by_key=lambda flow: flow.group_by_key(last_digit).count()), LOOP),
    Row(
        "`group_by_key(...).join(...)`",
        runs(join=lambda flow: flow.group_by_key(last_digit).join(Flow.of(3).group_by_key(last_digit))),
        LOOP,
    ),
    Row("`concat` of two frames", runs(concat=lambda flow: flow.concat(flow)), LOOP, "one job after another"),
    Row("`repartition`", refused(lambda session: numbers(session).repartition(2)), "refused"),
    Row(
        "`count`, `sum`, `max`, `to_list`",
        ends(lambda flow: flow.count(), lambda flow: flow.sum(), lambda flow: flow.max(), lambda flow: flow.to_list()),
        WORKS,
    ),
    Row("a failure of a function", failing, WORKS, "it comes behind the elements before it"),
    Row("`from_spark(..., context=[...])`", with_context, WORKS),
    Row("`to_frame(schema)`", framed(lambda flow: flow.map(lambda n: (n,)), "n long"), WORKS),
    Row("`to_frame(schema, columns=[...])`", chosen, WORKS),
    Row(
        "`to_frame` of keyed work",
        framed(lambda flow: flow.group_by_key(last_digit).count(), "key long, count long"),
        WORKS,
    ),
    Row("`to_frame` of a join", framed(joined, "key long, left long, right long"), WORKS),
    Row("`to_frame` of batches of Arrow", batched, WORKS),
    Row("`to_rdd()`", refused(lambda session: numbers(session).to_rdd()), "refused"),
    Row("`to_spark(Table(...))`, also with `size=None`", to_table, WORKS),
    Row("`to_spark(Frames(...))`", to_frames, WORKS),
    Row(
        "`to_spark(Frames(...), size=None)`",
        to_frames_whole,
        "refused",
        "rows are counted by a classic session",
    ),
    Row("`to_spark(Files(...))`", to_files, "refused", "there is no way to the server's file systems"),
    Row("`Flow.from_spark(stream, checkpoint=...)`", streamed, "refused", "`foreachBatch` runs on the server"),
    Row("`feed(flow, session, schema)`", fed, "refused", "the processes of a query are the server's"),
    Row("`Inbox.start(stream)`", received, "refused"),
    Row("`register(session)`", refused(registered), "refused"),
    Row(
        "`schedulers.spark(session)`",
        refused(schedulers.spark),
        "refused",
        "workers have no way to this process",
    ),
)


def table(rows: tuple[Row, ...] = ROWS) -> str:
    """Return the table of the page."""
    return "".join(["| call | with Spark Connect |\n", "| --- | --- |\n", *map(str, rows)])


def written() -> str:
    """Return the table that stands in the page."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return rest.partition("\n\n")[0] + "\n"


async def found(session: Any) -> dict[str, str]:
    """Run each row."""
    outcomes: dict[str, str] = {}
    for row in ROWS:
        try:
            outcomes[row.call] = await row.program(session)
        except Exception as error:
            outcomes[row.call] = f"{type(error).__name__}: {str(error)[:300]}"
    return outcomes


def main() -> None:
    """Start a server, run each row, and write the table, or say which row is wrong; only that with ``--check``."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        builder: Any = SparkSession.builder.remote("local[2]")
        session = builder.getOrCreate()
        session.conf.set("spark.sql.shuffle.partitions", "4")
        outcomes = asyncio.run(found(session))
        wrong = {row.call: outcomes[row.call] for row in ROWS if outcomes[row.call] != row.outcome}
        session.stop()
    if wrong:
        sys.exit(f"found otherwise: {wrong}")
    if sys.argv[1:] == ["--check"]:
        return
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(written(), table()), encoding="utf-8")


if __name__ == "__main__":
    from tests.spark_cluster import connect_table  # by its name, as workers import what the rows refer to

    connect_table.main()
