"""Sensors report to a service; Spark makes means of each minute; a table has each of them right, whatever is restarted.

    the service  | readings, from an offset on | Spark: windows by sensor | micro-batches | SQLite
    asyncio, TCP   demand: rows ahead            Structured Streaming       acknowledged    with the batch's number

A reading is asked for when Spark has room for it, and a micro-batch is done when its windows are in the table. Kill any
part of it, and run it again on the same folder. The service sends the readings again from the offset that Spark has
recorded. A batch that is in the table already changes nothing.

    python -m examples.sensors out/sensors       serves some readings to itself, and shows the hottest minutes
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, astuple, frozen

from reactive_aio import Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio.spark.streaming import MicroBatch

HOST = "127.0.0.1"
NOW = {"availableNow": True}


@frozen
class Reading:
    """A report of a sensor."""

    sensor: str
    at: datetime
    celsius: float


@frozen
class Minute:
    """The figures of a sensor's minute, which begins at ``start`` seconds since 1970."""

    sensor: str
    start: int
    readings: int
    mean: float
    highest: float


# -- the service


@asynccontextmanager
async def serve(readings: Sequence[Reading]) -> AsyncGenerator[int]:
    """Serve readings over TCP, a line of JSON each, from the number on that the client begins with; give the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):  # the client has enough, or the service ends
            for reading in readings[int(await reader.readline()) :]:
                line = json.dumps({**asdict(reading), "at": reading.at.isoformat()})
                writer.write(line.encode() + b"\n")
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, HOST, 0) as server:
        port: int = server.sockets[0].getsockname()[1]
        yield port


def service(port: int) -> Callable[[int], Flow[Reading]]:
    """Return the readings of the service from an offset on: the requested ones, and those that a socket holds."""

    def from_offset(offset: int) -> Flow[Reading]:
        async def read(emit: Callable[[bytes], Awaitable[None]]) -> None:
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(b"%d\n" % offset)
                async for line in reader:
                    await emit(line)
            finally:
                writer.close()

        return Flow.create(read).map(parse)

    return from_offset


def parse(line: bytes) -> Reading:
    """Read a line."""
    values = json.loads(line)
    return Reading(values["sensor"], datetime.fromisoformat(values["at"]), values["celsius"])


# -- Spark


def minutes(readings: DataFrame) -> DataFrame:
    """Return the minutes of each sensor. A minute is complete when it is two minutes old."""
    from pyspark.sql.functions import avg, count, unix_timestamp, window
    from pyspark.sql.functions import max as highest

    each = readings.withWatermark("at", "2 minutes").groupBy(window("at", "1 minute").alias("minute"), "sensor")
    found = each.agg(count("*").alias("readings"), avg("celsius").alias("mean"), highest("celsius").alias("highest"))
    return found.select("sensor", unix_timestamp("minute.start").alias("start"), "readings", "mean", "highest")


# -- back to asyncio


async def store(batch: MicroBatch[Minute], connection: sqlite3.Connection) -> None:
    """Write the minutes that have changed."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS minutes "
        "(sensor TEXT, start INTEGER, readings INTEGER, mean REAL, highest REAL, PRIMARY KEY (sensor, start))"
    )
    await batch.rows.for_each(
        lambda minute: connection.execute("INSERT OR REPLACE INTO minutes VALUES (?, ?, ?, ?, ?)", astuple(minute))
    )


async def run(
    session: SparkSession, port: int, folder: Path, trigger: Mapping[str, Any] | None = None, batch: int = 10_000
) -> None:
    """Run from the service to the table; by the trigger ``NOW`` until the service has sent all it has."""
    from reactive_aio.spark.streaming import SqliteLedger, exactly_once, feed

    async with feed(service(port), session, Reading, name="sensors", batch=batch) as readings:
        changes = Flow.from_spark(
            minutes(await readings.frame()),
            as_=Minute,
            checkpoint=folder / "checkpoint",
            output_mode="update",
            trigger=trigger,
        )
        await changes.for_each(exactly_once(store, SqliteLedger(folder / "minutes.db")))


def stored(folder: Path) -> list[Minute]:
    """Read the table."""
    connection = sqlite3.connect(folder / "minutes.db")
    try:
        rows = connection.execute("SELECT * FROM minutes ORDER BY sensor, start").fetchall()
    finally:
        connection.close()
    return [Minute(*row) for row in rows]


def some_readings(count: int) -> list[Reading]:
    """Make readings of five sensors, one each second."""
    chance, start = random.Random(1), datetime(2024, 7, 1, tzinfo=UTC)
    return [Reading(f"s{n % 5}", start + timedelta(seconds=n), round(20 + chance.gauss(0, 3), 2)) for n in range(count)]


def begin(folder: Path) -> SparkSession:
    """Make the folder, and start Spark."""
    from reactive_aio.spark.session import local_session

    folder.mkdir(parents=True, exist_ok=True)
    return local_session("sensors", spark__sql__shuffle__partitions="3")


async def main(folder: Path) -> None:
    """Serve an hour of readings, and show the hottest minutes."""
    session = await asyncio.to_thread(begin, folder)
    async with serve(some_readings(3600)) as port:
        await run(session, port, folder, NOW)
    for minute in sorted(stored(folder), key=lambda minute: -minute.mean)[:5]:
        print(f"{minute.sensor}  {datetime.fromtimestamp(minute.start, UTC):%H:%M}  {minute.mean:.2f} °C")


if __name__ == "__main__":
    asyncio.run(main(Path(*sys.argv[1:] or ["out/sensors"])))
