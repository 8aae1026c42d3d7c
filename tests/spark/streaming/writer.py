"""The processes of a query that writes to an inbox, without Spark: what they say is said by the test."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

import pyarrow as pa
from attrs import define, field
from pyspark.sql.types import LongType, StructField, StructType

from reactive_aio._remote.frames import CHUNK, CREDIT, FAILED, LAST, PART, READY, STOP, Decoder, Frame
from reactive_aio._remote.handshake import REPLY, Greeter
from reactive_aio.spark.streaming._arrow import to_arrow
from reactive_aio.spark.streaming._inboxwire import COMMIT, OPEN, Delivery, frame

SCHEMA = StructType([StructField("id", LongType())]).jsonValue()
FIRST = Delivery("query", "run", 0)
PLAYED: list[asyncio.StreamWriter] = []


@define(eq=False)
class Process:
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    batch: int = 0
    _decoder: Decoder = field(init=False, factory=Decoder)
    _heard: deque[Frame] = field(init=False, factory=deque[Frame])

    @staticmethod
    async def connect(options: dict[str, str], partition: int = 0, attempt: int = 0) -> Process:
        host, _, port = options["address"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        PLAYED.append(writer)
        greeter = Greeter(bytes.fromhex(options["secret"]), partition, attempt)
        writer.write(greeter.greeting)
        writer.write(greeter.answer(await reader.readexactly(REPLY.size)))
        return Process(reader, writer)

    @staticmethod
    async def task(options: dict[str, str], delivery: Delivery = FIRST, partition: int = 0) -> Process:
        """Connect a task, which has not been told to begin yet."""
        process = await Process.connect(options, partition)
        process.batch = delivery.batch
        process.say(frame(OPEN, delivery, schema=SCHEMA))
        return process

    @staticmethod
    async def driver(
        options: dict[str, str], delivery: Delivery = FIRST, kind: int = COMMIT, **rows: int | None
    ) -> Process:
        """Connect the driver, which has a word to say on a batch; ``p0=3`` are three rows of partition 0."""
        process = await Process.connect(options)
        process.say(frame(kind, delivery, rows={name[1:]: count for name, count in rows.items()}))
        return process

    def say(self, said: Frame) -> None:
        self.writer.writelines(said.encoded())

    def ready(self, count: int) -> None:
        """Have so many rows at hand."""
        self.say(Frame(READY, self.batch, count))

    def send(self, *ids: int) -> None:
        batch: Any = pa.record_batch({"id": pa.array(ids, pa.int64())})
        self.say(Frame(PART, self.batch, len(ids), pickled=to_arrow([batch])))

    def last(self) -> None:
        self.say(Frame(LAST, self.batch))

    async def hear(self) -> Frame | None:
        """Wait for a frame, or None where the loop has hung up."""
        while not self._heard:
            data = await self.reader.read(65536)
            if not data:
                return None
            self._heard.extend(self._decoder.feed(data))
        return self._heard.popleft()

    async def begun(self) -> int:
        """Wait to be told to begin; give the number of rows to leave out."""
        heard = await self.hear()
        assert heard is not None
        assert CHUNK == heard.kind
        return heard.detail

    async def granted(self) -> int:
        """Wait for credit."""
        heard = await self.hear()
        assert heard is not None
        assert CREDIT == heard.kind
        return heard.count

    async def stopped(self) -> None:
        """Wait to be told that all is well."""
        heard = await self.hear()
        assert heard is not None
        assert STOP == heard.kind

    async def refused(self) -> str:
        """Wait to be told why not."""
        heard = await self.hear()
        assert heard is not None
        assert FAILED == heard.kind
        return bytes(heard.pickled).decode()

    async def hang_up(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def hang_up_all() -> None:
    """Hang up for all who have been played."""
    while PLAYED:
        writer = PLAYED.pop()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
