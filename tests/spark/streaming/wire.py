"""A wire that is listened in on: a proxy in front of a feed or an inbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

from attrs import define, field

from reactive_aio._remote.frames import PART, Decoder
from reactive_aio._remote.handshake import GREETING, PROOF
from tests.spark.waiting import LIMIT


@define(eq=False)
class Overheard:
    """All that was said, in either direction."""

    address: str = field(init=False, default="")
    bytes: bytearray = field(init=False, factory=bytearray)
    rows: int = field(init=False, default=0)
    """The rows that tasks have sent to an inbox."""
    _writers: list[asyncio.StreamWriter] = field(init=False, factory=list[asyncio.StreamWriter])

    def watch(self, *writers: asyncio.StreamWriter) -> None:
        """Have connections that can be cut."""
        self._writers += writers

    def cut(self) -> None:
        """Cut all connections there are, as the death of a task would."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def overheard(options: Mapping[str, str], *, frames: bool = True) -> AsyncGenerator[Overheard]:
    """Record the connections to a feed. Clients connect to the ``address`` of the result instead of that in the options."""
    wire, tasks = Overheard(), set[asyncio.Task[None]]()
    host, _, port = options["address"].rpartition(":")

    async def pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter, decoder: Decoder | None) -> None:
        hello = GREETING.size + PROOF.size
        with suppress(OSError):
            while data := await source.read(65536):
                wire.bytes += data
                if decoder is not None:
                    frame_data, hello = data[hello:], max(0, hello - len(data))
                    wire.rows += sum(frame.count for frame in decoder.feed(frame_data) if frame.kind == PART)
                to.write(data)
                await to.drain()
        to.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(host, int(port))
        wire.watch(writer, to_writer)
        both = [
            asyncio.create_task(pass_on(reader, to_writer, Decoder() if frames else None)),
            asyncio.create_task(pass_on(to_reader, writer, None)),
        ]
        tasks.update(both)
        await asyncio.gather(*both)

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        wire.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield wire
        await asyncio.wait_for(asyncio.gather(*tasks), LIMIT)
