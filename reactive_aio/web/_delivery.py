"""The delivery of a body to a client: one chunk at a time, as long as the client is there and reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, cast

from attrs import define, field

from .._core.missing import NOTHING
from .._core.settling import settled
from .._core.tasks import begin_task
from .._flow.rows import readily

Scope = Mapping[str, object]
Receive = Callable[[], Awaitable[Mapping[str, object]]]
Send = Callable[[dict[str, object]], Awaitable[None]]
Body = AbstractAsyncContextManager[AsyncIterator[bytes]] | AbstractAsyncContextManager[AsyncIterator[str]]
Headers = list[tuple[bytes, bytes]]

LONGEST_LOOK: Final = 60.0
"""The most seconds between two checks of a client that does not read."""


class DisconnectedError(ConnectionError):
    """The other side of a connection has gone."""


class ClientDisconnectedError(DisconnectedError):
    """A client has gone in the middle of a request or a response."""


@define(eq=False)
class Delivery:
    """Sends a body. It ends with the body, with its failure, or when the client has gone or stalls."""

    _send: Send
    _status: int
    _headers: Headers
    send_timeout: float | None
    """Seconds that a client may take for a chunk."""
    heartbeat: float | None = None
    """Seconds without a chunk after which a client gets `idle`. It needs ``at_once``."""
    idle: bytes = b""
    """A comment, which shows that the connection is there."""
    at_once: bool = False
    """Whether the client gets the status before there is a chunk, to know that it is connected."""
    _begun: bool = field(init=False, default=False)
    _sending: bool = field(init=False, default=False)
    """Whether the status, a chunk or the end is on its way to the client."""
    _sent: float = field(init=False, default=0.0)
    """The time when it, or the last one, was sent. The clock is read once for each chunk."""

    async def run(self, body: Body, receive: Receive) -> None:
        """Send the body. Return when everything has been closed, also after a cancel."""
        self._sent = asyncio.get_running_loop().time()
        sending = begin_task(self._all(body))
        gone = begin_task(disconnected(receive))
        try:
            while not sending.done() and not gone.done() and not self._stalled:
                await asyncio.wait((sending, gone), timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
                if not sending.done() and not gone.done() and not await self._beat():
                    break
        finally:
            by_client = not sending.done()
            gone.cancel()
            if by_client:
                sending.cancel()
            await settled(sending, gone)
        if not (by_client and sending.cancelled()):
            with suppress(ClientDisconnectedError):
                await sending  # its failure is the server's to log, and to show by a body that is cut short

    # -- the body

    async def _all(self, body: Body) -> None:
        send, clock = self._send, clock_of(asyncio.get_running_loop())
        if self.at_once:
            await self._begin()
        async with body as chunks:
            ready = readily(chunks)
            while True:
                # As `async for`, without a coroutine for each chunk that needs no wait.
                chunk = ready.poll()
                if chunk is NOTHING:
                    try:
                        chunk = await anext(chunks)
                    except StopAsyncIteration:
                        break
                if type(chunk) is not bytes:
                    chunk = as_bytes(chunk)
                if not self._begun:
                    await self._begin()
                self._sent, self._sending = clock(), True
                try:  # as `_put`, without a coroutine for each chunk
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                except OSError as error:
                    raise ClientDisconnectedError("the client has gone") from error
                self._sending = False
        await self._begin()
        await self._put({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self) -> None:
        """Send the status and the headers, once. Without ``at_once`` they wait for a chunk: a body may fail before it."""
        if not self._begun:
            self._begun = True
            await self._put({"type": "http.response.start", "status": self._status, "headers": self._headers})

    async def _put(self, message: dict[str, object]) -> None:
        """Send a message of the response. A server may take the end only when the client has read what comes before."""
        self._sent, self._sending = asyncio.get_running_loop().time(), True
        await self._tell(message)
        self._sending = False

    # -- the client

    @property
    def _patience(self) -> float:
        """Return the seconds until the next check."""
        now, waits = asyncio.get_running_loop().time(), [LONGEST_LOOK]
        if self.send_timeout is not None:
            waits.append(self._sent + self.send_timeout - now if self._sending else self.send_timeout)
        if self.heartbeat is not None and not self._sending:
            waits.append(self._sent + self.heartbeat - now)
        return max(min(waits), 0.0)

    @property
    def _stalled(self) -> bool:
        """Whether the client has not taken a chunk in time."""
        most = self.send_timeout
        return self._sending and most is not None and asyncio.get_running_loop().time() >= self._sent + most

    async def _beat(self) -> bool:
        """Send a heartbeat if it is time for one; False if the client does not take it."""
        now = asyncio.get_running_loop().time()
        if self.heartbeat is None or self._sending or now < self._sent + self.heartbeat:
            return True
        self._sent = now
        try:
            async with asyncio.timeout(self.send_timeout):
                await self._tell({"type": "http.response.body", "body": self.idle, "more_body": True})
        except (TimeoutError, ClientDisconnectedError):
            return False
        return True

    async def _tell(self, message: dict[str, object]) -> None:
        try:
            await self._send(message)
        except OSError as error:  # by which some servers say so
            raise ClientDisconnectedError("the client has gone") from error


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the clock of an event loop, without the Python call that asyncio's loops make."""
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time


def as_bytes(chunk: Any) -> bytes:
    """Return the bytes to send for an element."""
    if isinstance(chunk, str):
        return chunk.encode()
    if not isinstance(chunk, (bytes, bytearray, memoryview)):
        raise TypeError(f"the body of a response is bytes or str, not {type(chunk).__name__}")
    return bytes(cast("bytes", chunk))


def headers_of(media_type: str, more: Mapping[str, str]) -> Headers:
    """Return the headers of a response. Raise ValueError for a header with a line break."""
    given = {"content-type": media_type, **{name.lower(): value for name, value in more.items()}}
    for name, value in given.items():
        if not name or not name.isascii() or any(letter in "\r\n\0" for letter in name + value):
            # Without the value: that of Set-Cookie or Authorization is a secret.
            raise ValueError(f"the header {name!r} must have an ASCII name, and no line break or NUL in name and value")
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in given.items()]


def check_http(scope: Scope, what: str) -> None:
    """Raise unless the scope is an HTTP request."""
    if scope["type"] != "http":
        raise TypeError(f"{what} answers HTTP requests, not a scope of type {scope['type']!r}")
