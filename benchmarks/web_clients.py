"""The clients of the chapter on the web, and the process of the service that they ask."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Any

ROOT = Path(__file__).parents[1]
STAMP = b"data: "
HEAD = b"\r\n\r\n"
RECEIVE_BUFFER = 4_096
"""Bytes that the system holds for a client that stalls."""


def allow_many_files() -> None:
    """Have the process open as many sockets as the system lets it."""
    with suppress(ImportError):  # which Windows has not
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def service(name: str, events: int = 0) -> Generator[int]:
    """Run a service in a process of its own, and give its port."""
    command = [sys.executable, "-m", "benchmarks.web_services", name, str(events)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def ask(port: int, path: str) -> dict[str, Any]:
    """Return what the service says of itself."""
    with requested(port, path) as connection:
        answer = b""
        while not answer.endswith(b"0\r\n\r\n"):
            answer += connection.recv(65_536)
    found: dict[str, Any] = json.loads(answer[answer.index(b"{") : answer.index(b"}") + 1])
    return found


def received(port: int, path: str) -> int:
    """Read a body to its end; return the number of bytes that have come."""
    buffer, number = bytearray(1 << 18), 0
    with requested(port, path) as connection:
        while some := connection.recv_into(buffer):
            number += some
    return number


@contextmanager
def requested(port: int, path: str) -> Generator[socket.socket]:
    """Ask for a page, and give the connection, which the service closes at the end."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        yield connection


class Client(asyncio.Protocol):
    """Reads events, and notes how long each has been on its way; or stalls."""

    def __init__(self, crowd: Crowd, stalls: bool) -> None:
        self._crowd = crowd
        self._stalls = stalls
        self._rest: bytes = b""
        self._begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the events."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        """Look for the head first, and then for the stamps of events."""
        now = monotonic_ns()
        data = self._rest + data
        if not self._begun:
            if HEAD not in data:
                self._rest = data
                return
            self._begun = True
            self._crowd.begun()
            if self._stalls:
                self._transport.pause_reading()
                return
        at = data.find(STAMP)
        while at >= 0 and (end := data.find(b" ", at + len(STAMP))) >= 0:
            self._crowd.had(now - int(data[at + len(STAMP) : end]))
            at = data.find(STAMP, end)
        self._rest = data[at:] if at >= 0 else data[-len(STAMP) + 1 :]


class Crowd:
    """Clients that are there at the same time."""

    def __init__(self, readers: int, stalling: int, events: int) -> None:
        self._readers = readers
        self._number = readers + stalling
        self._expected = readers * events
        self._connected = 0
        self.delays: list[int] = []
        """Nanoseconds that each event has been on its way."""
        self._all_there = asyncio.Event()
        self._all_had = asyncio.Event()

    def begun(self) -> None:
        """Note that one more has been answered."""
        self._connected += 1
        if self._connected == self._number:
            self._all_there.set()

    def had(self, delay: int) -> None:
        """Note an event."""
        self.delays.append(delay)
        if len(self.delays) == self._expected:
            self._all_had.set()

    async def run(self, port: int) -> dict[str, float]:
        """Connect all, have the events begin, and wait until the readers have had them; return what the service has taken."""
        loop = asyncio.get_running_loop()
        before = await asyncio.to_thread(ask, port, "/figures")
        transports: list[asyncio.Transport] = []
        for number in range(self._number):
            stalls = number >= self._readers
            connection = socket.socket()
            if stalls:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            connection.setblocking(False)
            await loop.sock_connect(connection, ("127.0.0.1", port))
            transport, _ = await loop.create_connection(partial(Client, self, stalls), sock=connection)
            transports.append(transport)
        await self._all_there.wait()
        there = await asyncio.to_thread(ask, port, "/begin")
        await self._all_had.wait()
        after = await asyncio.to_thread(ask, port, "/figures")
        for transport in transports:
            transport.abort()
        return {
            "cpu": after["cpu"] - there["cpu"],
            "memory": (after["memory"] - before["memory"]) / self._number,
        }
