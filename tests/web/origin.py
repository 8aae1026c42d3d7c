"""A server on a bare socket that breaks off as no library lets it, and the clients that read from it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import aiohttp
import httpx2
from attrs import define, field

from .test_servers import PATIENCE, RESET

CHUNK = b"x" * 65_536
MOST_CHUNKS = 8192
"""Half a gigabyte, which no socket holds."""
Open = Callable[..., AbstractAsyncContextManager[Any]]


@define(eq=False)
class Origin:
    """Serves each path by its own behaviour; says how many chunks it has written, and whether every answer has ended."""

    port: int = 0
    written: int = field(init=False, default=0)
    begun: int = field(init=False, default=0)
    ended: int = field(init=False, default=0)
    leave: asyncio.Event = field(init=False, factory=asyncio.Event)
    changed: asyncio.Condition = field(init=False, factory=asyncio.Condition)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            try:
                request = await reader.readuntil(b"\r\n\r\n")
                self.begun += 1
                behave: Callable[..., Awaitable[None]] = getattr(self, request.split()[1][1:].decode())
                await behave(reader, writer)
            finally:
                writer.transport.abort()
                async with self.changed:
                    self.ended += 1
                    self.changed.notify_all()

    async def lines(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\none\ntwo\nth")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def endless(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(CHUNK) * MOST_CHUNKS))
        for _ in range(MOST_CHUNKS):
            writer.write(CHUNK)
            await writer.drain()
            self.written += 1

    async def begin(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n")
        writer.write(b"data: begun\n\ndata: cut off")
        await writer.drain()

    async def resets(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.begin(writer)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    async def half_closes(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.begin(writer)
        writer.write_eof()
        await reader.read()

    async def stalls(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.begin(writer)
        await reader.read()

    async def has_no_more(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def reads_nothing(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.leave.wait()  # who does not read does not hear that the client has gone

    async def answers_early(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        await self.leave.wait()

    async def stopped(self) -> int:
        """Return how much is written when nothing more is, while everybody else has turns."""
        return await settled(lambda: self.written)

    async def all_ended(self) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: self.begun == self.ended)


async def settled(count: Callable[[], int]) -> int:
    quiet, last = 0, -1
    while quiet < 50:
        await asyncio.sleep(0.001)
        now = count()
        quiet, last = (quiet + 1, now) if now == last else (0, now)
    return last


@asynccontextmanager
async def origin() -> AsyncGenerator[Origin]:
    serving = Origin()
    async with await asyncio.start_server(serving.serve, "127.0.0.1", 0) as server:
        serving.port = server.sockets[0].getsockname()[1]
        yield serving


@asynccontextmanager
async def by_httpx(read_timeout: float | None = None) -> AsyncGenerator[Open]:
    timeout = httpx2.Timeout(PATIENCE, read=read_timeout)
    async with httpx2.AsyncClient(timeout=timeout, verify=False) as client:
        yield lambda method, url, **options: client.stream(method, url, **renamed(options))


@asynccontextmanager
async def by_aiohttp(read_timeout: float | None = None) -> AsyncGenerator[Open]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_read=read_timeout)) as session:
        yield session.request


def renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Call the body of a request as httpx does."""
    return {"content" if name == "data" else name: value for name, value in options.items()}


LIBRARIES = {"httpx": by_httpx, "aiohttp": by_aiohttp}


def sockets() -> int:
    return len(os.listdir("/dev/fd"))
