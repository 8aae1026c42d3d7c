"""Fifty readers of a stream of events that never read, among fifty that do: who reads gets everything, and no more is kept."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Hub
from reactive_aio.web import Event, EventStream, Resumable

from .test_frameworks import unchunked
from .test_servers import PATIENCE, SERVERS

READING, STALLED = 50, 50
EVENTS = 120
LAG, REPLAY = 16, 8
TEXT = "x" * 4_096
SMALL = 16_384
"""Of a buffer of a socket. The events have half a megabyte for each reader, which no two sockets and no server hold."""


@define(eq=False)
class Feed:
    """One stream, by an address for those who read and by one for those who don't, who are given up sooner."""

    hub: Hub[int] = field(factory=lambda: Hub[int](idle="wait", lag=1))
    resumable: Resumable[int] = field(init=False)
    reading: EventStream = field(init=False)
    stalled: EventStream = field(init=False)
    ended: int = field(init=False, default=0)
    """How many responses to those who don't read have ended."""
    kept: list[int] = field(init=False, factory=list[int])
    """How many events have been kept, behind each that was made."""

    def __attrs_post_init__(self) -> None:
        self.resumable = Resumable(self.hub.flow, lambda n: Event(f"{n} {TEXT}"), replay=REPLAY, lag=LAG)
        self.reading = EventStream(self.resumable, send_timeout=None)
        self.stalled = EventStream(self.resumable, send_timeout=0.5)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer (an ASGI application)."""
        if scope["path"] == "/reading":
            await self.reading(scope, receive, send)
        else:
            await self.stalled(scope, receive, send)
            self.ended += 1

    async def emit(self, subscribers: int) -> None:
        """Emit all events, when so many readers are there."""
        while len(self.shared.subscribers) < subscribers:
            await asyncio.sleep(0)
        for n in range(EVENTS):
            await self.hub.emit(n)
            self.kept.append(self.shared.kept)
        self.hub.complete()

    @property
    def shared(self) -> Any:
        return self.resumable._shared.snapshot()


async def reads(port: int) -> list[str]:
    """Read to the end; give the data of all events, without their text."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /reading HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    assert b"200" in head.split(b"\r\n")[0]
    lines = unchunked(body).decode().split("\n")
    assert "event: reset" not in lines
    return [line.split()[1] for line in lines if line.startswith("data: ")]


async def stalls(port: int) -> socket.socket:
    """Ask, and never read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, b"GET /stalled HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client


@pytest.mark.costly
@pytest.mark.parametrize("stalled", [0, STALLED])
@pytest.mark.parametrize("server", SERVERS)
async def test_readers_that_never_read_change_nothing_for_the_others_and_are_given_up(
    server: str, stalled: int
) -> None:
    feed = Feed()
    with socket.create_server(("127.0.0.1", 0), backlog=READING + STALLED) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)  # each connection has it from here
        port: int = listener.getsockname()[1]
        async with SERVERS[server](feed, listener), asyncio.timeout(PATIENCE):
            clients = [await stalls(port) for _ in range(stalled)]
            reading = [asyncio.create_task(reads(port)) for _ in range(READING)]
            try:
                await feed.emit(READING + stalled)
                ended = feed.ended
                taken = await asyncio.gather(*reading)
            finally:  # a server waits for its clients
                for client in clients:
                    client.close()
                for task in reading:
                    task.cancel()

    assert [[str(n) for n in range(EVENTS)]] * READING == taken
    assert stalled == ended, "those who don't read are given up while the others are served"
    assert EVENTS == len(feed.kept)
    assert max(LAG, REPLAY) >= max(feed.kept)
    assert () == feed.shared.subscribers
