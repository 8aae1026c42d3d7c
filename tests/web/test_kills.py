"""Clients of responses that are killed at random, or stop reading, leave no source, no task and no socket behind."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
from contextlib import suppress
from typing import Any

import pytest
from attrs import frozen

from reactive_aio import Flow
from reactive_aio.web import Event, EventStream, FlowResponse, JSONLinesResponse
from reactive_aio.web._delivery import Delivery

from .test_servers import PATIENCE, SERVERS, Sources, reset

SMALL = 16_384
"""Of the buffers of a socket, so that one who does not read stops the server soon."""
TEXT = "x" * 4_096
FATES = ("resets", "ends", "half closes and resets", "reads slowly and resets", "falls silent", "never reads")


def answers(flow: Flow[int]) -> dict[str, Any]:
    """Return the responses that clients read, each with enough in an element to stop a server that is not read."""
    return {
        "/body": FlowResponse(flow.map(lambda n: f"{n} {TEXT}\n"), send_timeout=0.5),
        "/lines": JSONLinesResponse(flow.map(lambda n: [n, TEXT]), send_timeout=0.5),
        "/events": EventStream(lambda _: flow.map(lambda n: Event(f"{n} {TEXT}")), send_timeout=0.5),
    }


@frozen
class Killed:
    """A client that has met its fate."""

    writer: asyncio.StreamWriter

    @classmethod
    async def by(cls, port: int, path: str, fate: str) -> Killed:
        """Be in the middle of an answer, and meet it."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=client, limit=1024)
        killed = cls(writer)
        if fate == "never reads":
            killed.silent()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        if fate == "never reads":
            return killed
        await reader.readuntil(b"xx")  # of an element
        match fate:
            case "resets":
                reset(writer)
            case "ends":
                writer.transport.abort()
            case "half closes and resets":
                writer.write_eof()
                with suppress(OSError):  # it may be over by that
                    await reader.read(100)
                reset(writer)
            case "reads slowly and resets":
                for _ in range(100):
                    await reader.read(100)
                    await asyncio.sleep(0)
                reset(writer)
            case _:
                killed.silent()
        return killed

    def silent(self) -> None:
        """Read nothing more."""
        transport: Any = self.writer.transport  # that of uvloop is no asyncio.Transport
        transport.pause_reading()

    async def gone(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


def sockets() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("server", SERVERS)
async def test_clients_of_responses_that_are_killed_leave_nothing(server: str) -> None:
    count = 200
    chance, sources = random.Random(1), Sources()
    responses = answers(sources.flow)
    fates = [*FATES, *chance.choices(FATES, k=count - len(FATES))]
    left = 0

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal left
        response = responses[scope["path"]]  # a lifespan has no path, and is no client
        try:
            await response(scope, receive, send)
        finally:
            left += 1

    tasks = asyncio.all_tasks()
    with socket.create_server(("127.0.0.1", 0), backlog=count) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)  # each connection has it from here
        port: int = listener.getsockname()[1]
        async with SERVERS[server](application, listener), asyncio.timeout(2 * PATIENCE):
            await (await Killed.by(port, "/body", "ends")).gone()  # the event loop opens what it needs for all of them
            await sources.all_ended()
            before = sockets()
            paths = chance.choices(list(responses), k=count)
            clients = await asyncio.gather(*map(Killed.by, [port] * count, paths, fates))
            try:
                while left < count + 1:  # those who stay are given up while their sockets are open
                    await asyncio.sleep(0)
                cleaned = sources.ended
            finally:  # a server waits for its clients
                for client in clients:
                    await client.gone()

    assert (count + 1, count + 1) == (sources.begun, cleaned), "each cleanup has ended when the call returns"
    assert tasks == asyncio.all_tasks()
    del clients
    gc.collect()
    assert [] == [each for each in gc.get_objects() if type(each) is Delivery], "nothing of a response is in memory"
    async with asyncio.timeout(PATIENCE):
        while sockets() >= before:  # the socket that listened is gone, too
            await asyncio.sleep(0)
