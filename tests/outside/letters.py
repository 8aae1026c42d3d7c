"""A connector of somebody else's; docs/writing-a-connector.md begins with it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from attrs import frozen

from reactive_aio import Flow
from reactive_aio.extend import Poll


@frozen
class Mailbox:
    """A client of a server that is asked for so many letters, and says how many follow; -1 when there will be none."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def fetch(self, n: int) -> Sequence[str]:
        count = int(await self._asked(f"TAKE {n}"))
        if count < 0:
            raise StopAsyncIteration
        return [(await self.reader.readline()).decode().strip() for _ in range(count)]

    async def idle(self) -> None:
        await self._asked("NOOP")

    async def close(self) -> None:
        self.writer.write(b"QUIT\n")

    async def _asked(self, command: str) -> bytes:
        self.writer.write(f"{command}\n".encode())
        return await self.reader.readline()


@asynccontextmanager
async def opened(host: str, port: int) -> AsyncGenerator[Poll[str], None]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield Mailbox(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


def letters(host: str, port: int, heartbeat: float = 10.0) -> Flow[str]:
    return Flow.from_poll(partial(opened, host, port), max_batch=64, heartbeat=heartbeat)
