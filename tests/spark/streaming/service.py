"""A streaming service in a process of its own, to be killed: python -m tests.spark.streaming.service WAY FOLDER ...

The rows come back from Spark by one of several ways. The service stores them exactly once, with a ledger. It also
notes each delivery, so that a test can tell which rows were delivered again.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from examples import sensors
from reactive_aio import Flow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_aio.spark.streaming import Consumable

BATCH = 100
WAYS = ("windows", "callback", "writer")


@frozen
class Number:
    """A row, which goes to Spark and back."""

    n: int


def begin(folder: Path) -> SparkSession:
    """Start Spark, which tries a task again whose worker was killed."""
    from reactive_aio.spark.session import local_session

    folder.mkdir(parents=True, exist_ok=True)
    return local_session("service", "local[3,4]", spark__sql__shuffle__partitions="3", spark__log__level="OFF")


def numbers(folder: Path) -> Any:
    """Return the numbers from an offset on; they end where the test says, once it does."""

    def from_offset(offset: int) -> Flow[Number]:
        async def count() -> AsyncIterator[Number]:
            n, end = offset, folder / "end"
            while not end.exists() or n < int(end.read_text()):
                yield Number(n)
                n += 1
                if n % BATCH == 0:
                    await asyncio.sleep(0)

        return Flow.from_async_iterable(count())

    return from_offset


async def store(batch: Consumable[Number], connection: sqlite3.Connection) -> None:
    """Write the numbers."""
    connection.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
    await batch.rows.for_each(lambda row: connection.execute("INSERT INTO numbers VALUES (?)", (row.n,)))


async def run(session: SparkSession, folder: Path, way: str) -> None:
    """Send numbers to Spark and have them back, one way or the other."""
    from reactive_aio.spark.streaming import SqliteLedger, exactly_once, feed, inbox

    handle = exactly_once(store, SqliteLedger(folder / "numbers.db"))

    async def noted(batch: Consumable[Number]) -> None:
        with (folder / "deliveries").open("a") as log:
            log.write(f"{batch.id}\n")
        await handle(batch)

    async with AsyncExitStack() as stack:
        source = feed(numbers(folder), session, Number, name="numbers", batch=BATCH, ahead=2 * BATCH, partitions=2)
        frame = await (await stack.enter_async_context(source)).frame()
        checkpoint = folder / "checkpoint"
        if way == "callback":
            flow = Flow.from_spark(frame, as_=Number, checkpoint=checkpoint, trigger=sensors.NOW)
            await flow.for_each(noted)
        else:
            own = await stack.enter_async_context(inbox(Number))
            await own.start(frame, checkpoint=checkpoint, trigger=sensors.NOW)
            await own.batches.for_each(noted)


def main() -> None:
    """Run until there is no more."""
    way, folder = sys.argv[1], Path(sys.argv[2])
    session = begin(folder)
    if way == "windows":
        size = int(sys.argv[4]) if len(sys.argv) > 4 else BATCH
        asyncio.run(sensors.run(session, int(sys.argv[3]), folder, sensors.NOW, batch=size))
    else:
        asyncio.run(run(session, folder, way))


if __name__ == "__main__":
    main()
