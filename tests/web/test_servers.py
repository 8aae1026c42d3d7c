"""Responses on real servers: clients that vanish leave nothing, whatever the server and the loop."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import hypercorn.asyncio
import pytest
import uvicorn
from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Mount, Route

from reactive_aio import Flow
from reactive_aio.web import Event, EventStream, FlowResponse, JSONLinesResponse

CLIENTS = 20
PATIENCE = 20.0
"""Seconds after which a cleanup that should come at once counts as lost."""
RESET = struct.pack("ii", 1, 0)

Application = Callable[..., Awaitable[None]]


@define(eq=False)
class Sources:
    """The sources that clients read, and whether each has been cleaned up to the end."""

    begun: int = field(init=False, default=0)
    ended: int = field(init=False, default=0)
    changed: asyncio.Condition = field(init=False, factory=asyncio.Condition)

    async def numbers(self) -> AsyncIterator[int]:
        self.begun += 1
        try:
            for n in range(1_000_000):
                await asyncio.sleep(0.001)
                yield n
        finally:
            await asyncio.sleep(0.005)
            async with self.changed:
                self.ended += 1
                self.changed.notify_all()

    @property
    def flow(self) -> Flow[int]:
        return Flow.from_async_iterable(self.numbers)

    async def all_ended(self) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: self.begun == self.ended)

    def application(self) -> Starlette:
        async def body(_: Request) -> Any:
            return FlowResponse(self.flow.map(lambda n: f"{n}\n"))

        async def lines(_: Request) -> Any:
            return JSONLinesResponse(self.flow)

        async def starlettes_own(_: Request) -> Any:
            return StreamingResponse(self.flow.map(lambda n: f"{n}\n"))

        events = EventStream(lambda _: self.flow.map(lambda n: Event(str(n))))
        routes = [Route("/body", body), Route("/lines", lines), Route("/own", starlettes_own), Mount("/events", events)]
        return Starlette(routes=routes)


@asynccontextmanager
async def on_uvicorn(application: Application, listener: socket.socket, **options: Any) -> AsyncGenerator[None]:
    server = uvicorn.Server(uvicorn.Config(application, log_level="critical", lifespan="off", **options))
    task = asyncio.create_task(server.serve([listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield
    finally:  # a test that fails leaves no server behind
        server.should_exit = True
        await task


@asynccontextmanager
async def on_hypercorn(application: Application, listener: socket.socket) -> AsyncGenerator[None]:
    config = hypercorn.Config()
    config.bind = [f"fd://{os.dup(listener.fileno())}"]  # which it closes
    config.errorlog = None
    over = asyncio.Event()
    serving: Any = hypercorn.asyncio.serve
    task = asyncio.create_task(serving(application, config, shutdown_trigger=over.wait))
    try:
        yield
    finally:
        over.set()
        await task


SERVERS = {"uvicorn": on_uvicorn, "hypercorn": on_hypercorn}


async def read_some(port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the connection of a client that has read the beginning of a body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    status = await reader.readline()
    assert b"200" in status
    await reader.readuntil(b"\r\n\r\n")
    await reader.readuntil(b"7")
    return reader, writer


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by a reset, unless the other side has ended it already."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


def vanish(writer: asyncio.StreamWriter, number: int) -> None:
    """Leave: by a reset, or by an end."""
    if number % 2:
        reset(writer)
    else:
        writer.close()


@pytest.mark.parametrize("path", ["/body", "/lines", "/events/", "/own"])
@pytest.mark.parametrize("server", SERVERS)
async def test_clients_that_vanish_leave_no_source_behind(server: str, path: str) -> None:
    sources = Sources()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        async with SERVERS[server](sources.application(), listener):
            connections = await asyncio.gather(*(read_some(port, path) for _ in range(CLIENTS)))
            for number, (_, writer) in enumerate(connections):
                vanish(writer, number)
            await sources.all_ended()
            for _, writer in connections:
                with suppress(OSError):
                    await writer.wait_closed()

    assert (CLIENTS, CLIENTS) == (sources.begun, sources.ended)


@pytest.mark.parametrize("server", SERVERS)
async def test_a_client_that_reads_no_more_stops_the_source(server: str) -> None:
    made: list[int] = []
    stalled = asyncio.Event()

    def chunks() -> Flow[bytes]:
        return Flow.range(100_000).do_on_next(made.append).map(lambda _: b"x" * 65_536)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await FlowResponse(chunks(), send_timeout=0.3)(scope, receive, send)
        stalled.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        async with SERVERS[server](application, listener):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                await stalled.wait()
            writer.transport.abort()

    # The buffers of the sockets and of the server take some megabytes; the source has six gigabytes.
    assert 1_000 > len(made)
