"""The entrance of a streaming query's processes: a socket on the event loop. Its guests prove to know a secret."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from attrs import define, field

from ..._core.containers import new_dict, new_set
from ..._remote.handshake import Guard
from .._delivery.entrance import MANNERS, MOST_STRANGERS
from .._task.connecting import listen_on, prepare

LOOPBACK: Final = "127.0.0.1"
LOOPBACKS: Final = (LOOPBACK, "::1")


def listen_at(host: str, port: int) -> socket.socket:
    """Listen on a port, 0 for any, for processes that reach this one at ``host``. On loopback no other machine can."""
    return listen_on(host if host in LOOPBACKS else "", host, port)


@define(eq=False)
class Reception:
    """Accepts connections that know the secret. All others are closed, without an answer and unread."""

    listening: socket.socket
    host: str
    """The address at which the processes reach this one."""
    serve: Callable[[Guard, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    """Talks to an accepted connection, until it returns."""
    secret: bytes = field(init=False, repr=False, factory=lambda: secrets.token_bytes(32))
    _port: int = field(init=False)
    _server: asyncio.Server = field(init=False)
    _lines: set[asyncio.Task[Any]] = field(init=False, factory=new_set)
    _guests: dict[Guard, asyncio.StreamWriter] = field(init=False, factory=new_dict)
    """The connections without a proof, the oldest first."""

    def __attrs_post_init__(self) -> None:
        self._port = self.listening.getsockname()[1]

    @property
    def address(self) -> str:
        """The address on which it listens, as an option."""
        return f"{self.host}:{self._port}"

    @property
    def options(self) -> dict[str, str]:
        """The options of ``format("reactive_aio")`` by which a process connects here."""
        return {"address": self.address, "secret": self.secret.hex()}

    async def open(self) -> None:
        """Listen, until `close`."""
        # A server that starts at once waits for a turn, and would go on if it were cancelled there.
        self._server = await asyncio.start_server(self._connected, sock=self.listening, start_serving=False)
        try:
            await self._server.start_serving()
        except BaseException:
            self._server.close()
            raise

    async def close(self) -> None:
        """Close all connections."""
        self._server.close()
        lines = tuple(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        prepare(writer.get_extra_info("socket"))
        try:
            # A cancellation is ours, for the reception closes; asyncio would report it as a failure.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self.serve(await self._introduced(reader, writer), reader, writer)
        finally:
            self._lines.discard(task)
            writer.close()

    async def _introduced(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Guard:
        guard = Guard(self.secret)
        strangers = [guest for guest in self._guests if not guest.known]
        if len(strangers) >= MOST_STRANGERS:
            self._guests.pop(strangers[0]).transport.abort()
        self._guests[guard] = writer
        try:
            async with asyncio.timeout(MANNERS):
                while not guard.through:
                    writer.write(guard.feed(await reader.readexactly(guard.wants)))
        finally:
            self._guests.pop(guard, None)
        return guard
