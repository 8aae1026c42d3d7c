"""A WebSocket client on a bare socket, which can do what no library lets it: fall silent, read nothing, and reset."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from attrs import define

from .test_servers import reset

ASK = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: reactive-streams.v1\r\n\r\n"
)
NO_MASK = bytes(4)
CLOSE = b"\x88\x80" + NO_MASK


@define(eq=False)
class Raw:
    """One client, which is in the middle of a stream."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, port: int, stream: str, n: int, begun: bytes) -> Raw:
        """Subscribe, and read until the elements have begun."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        client = cls(reader, writer)
        writer.write(ASK.encode())
        await reader.readuntil(b"\r\n\r\n")
        client.say(type="limits")
        client.say(type="subscribe", id=1, stream=stream, n=n)
        await reader.readuntil(begun)
        return client

    def say(self, **frame: object) -> None:
        text = json.dumps(frame).encode()
        assert len(text) < 126
        self.writer.write(bytes([0x81, 0x80 | len(text)]) + NO_MASK + text)

    def silent(self) -> None:
        """Read nothing more; no ping is answered either."""
        transport: Any = self.writer.transport  # that of uvloop is no asyncio.Transport
        transport.pause_reading()

    def reset(self) -> None:
        reset(self.writer)

    def end(self) -> None:
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.write(CLOSE)

    async def gone(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()
