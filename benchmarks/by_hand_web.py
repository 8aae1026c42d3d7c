"""Code without the library where bytes come and go: loops of `readline`, `receive` and `send`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

CHUNK = 262_144
"""Bytes that are read of a file at a time, as the library does."""
EVENT_STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
BYTES = [(b"content-type", b"application/octet-stream")]


# --- lines -----------------------------------------------------------------------------------------------------------


async def lengths_of_lines(reader: asyncio.StreamReader) -> int:
    """Add up the lengths of the lines of a socket, without their breaks."""
    total = 0
    while line := await reader.readline():
        total += len(line.removesuffix(b"\n"))
    return total


async def lengths_in_file(path: str) -> int:
    """Add up the lengths of the lines of a text file, which is read on a thread, as much at a time as the library does."""
    file = await anyio.to_thread.run_sync(lambda: open(path, "rb", buffering=0))  # noqa: SIM115 - closed below
    try:
        total, rest = 0, b""
        while chunk := await anyio.to_thread.run_sync(file.read, CHUNK):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                total += len(line.decode())
        return total + len(rest.decode())
    finally:
        await anyio.to_thread.run_sync(file.close)


async def lengths_by_anyio(path: str) -> int:
    """Do the same by the files of anyio, line by line."""
    total = 0
    async with await anyio.open_file(path, encoding="utf-8") as file:
        async for line in file:
            total += len(line.removesuffix("\n"))
    return total


async def sum_of_json_lines(receive: Receive, max_bytes: int) -> int:
    """Add up the numbers of the lines of JSON that a request has."""
    total, received, rest, more = 0, 0, b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        received += len(message["body"])
        if received > max_bytes:
            raise ValueError(received)
        lines = (rest + message["body"]).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if line:
                total += json.loads(line)["n"]
        more = message["more_body"]
    return total + (json.loads(rest)["n"] if rest else 0)


# --- responses -------------------------------------------------------------------------------------------------------


class Log:
    """The events of all clients, each encoded once, and how those who have had all of them are told of more."""

    def __init__(self) -> None:
        self._events: list[bytes] = []
        self._ended = False
        self._more = asyncio.Event()

    async def write(self, texts: AsyncIterator[str]) -> None:
        """Write all that comes."""
        async for text in texts:
            self._events.append(f"id: {len(self._events)}\ndata: {text}\n\n".encode())
            self._tell()
        self._ended = True
        self._tell()

    def _tell(self) -> None:
        more, self._more = self._more, asyncio.Event()
        more.set()

    async def serve(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send a client what comes, until it has gone."""
        await send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
        tasks = [asyncio.create_task(self._sent(send)), asyncio.create_task(gone(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _sent(self, send: Send) -> None:
        place = len(self._events)
        while True:
            while place < len(self._events):
                await send({"type": "http.response.body", "body": self._events[place], "more_body": True})
                place += 1
            if self._ended:
                break
            await self._more.wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def gone(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_all(chunks: AsyncIterator[bytes], send: Send) -> None:
    """Send a body, and look for nothing else."""
    await send({"type": "http.response.start", "status": 200, "headers": BYTES})
    async for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
