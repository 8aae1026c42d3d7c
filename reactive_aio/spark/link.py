"""The loop's end of the connection that a task has opened."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, cast

from .wire import CHUNK, ENDED, FAILED, GRANT, HELLO, MAGIC, ORDER, START, STOP, FrameReader

if TYPE_CHECKING:
    from asyncio import BaseTransport, Transport

# A machine that vanishes says no goodbye; without these it would take hours to be noticed.
KEEPALIVE: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


class Listener(Protocol):
    """Who hears what the tasks say."""

    def connected(self, link: Link) -> None:
        """A task has proved that it is one of ours."""

    def chunk(self, link: Link, count: int, data: bytes) -> None:
        """Elements have come."""

    def failed(self, link: Link, data: bytes) -> None:
        """A partition has failed, behind what has come of it."""

    def ended(self, link: Link) -> None:
        """A partition has been read to its end."""

    def lost(self, link: Link) -> None:
        """The connection of one that was connected is gone."""


class Link(asyncio.Protocol):
    """A connection to a task; to be dropped, with nothing unpickled, unless it begins with the secret."""

    def __init__(self, secret: bytes, listener: Listener, links: set[Link], gone: Callable[[], None]) -> None:
        self._expected = MAGIC + secret
        self._listener = listener
        self._links = links
        self._gone = gone
        self._transport: Transport | None = None
        self._hello = b""
        self._known = False
        self._dropped = False
        self._frames = FrameReader()
        self.partition = 0
        self.attempt = 0
        self.granted = 0
        """Elements that the task may still send."""
        links.add(self)

    def connection_made(self, transport: BaseTransport) -> None:
        """Wait for what the other side has to say for itself."""
        self._transport = cast("Transport", transport)
        if self._dropped:
            self._transport.abort()
            return
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            option = getattr(socket, name, None)
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        if not self._known:
            self._hello += data
            if len(self._hello) < HELLO.size:
                return
            data, self._hello = self._hello[HELLO.size :], self._hello[: HELLO.size]
            if not self._introduced():
                self.drop()
                return
        for kind, count, payload in self._frames.feed(data):
            self._heard(kind, count, payload)

    def _introduced(self) -> bool:
        magic, secret, self.partition, self.attempt = HELLO.unpack(self._hello)
        self._hello = b""
        self._known = hmac.compare_digest(magic + secret, self._expected)
        if self._known:
            self._listener.connected(self)
        return self._known

    def _heard(self, kind: int, count: int, payload: bytes) -> None:
        if kind == CHUNK and count <= self.granted:
            self.granted -= count
            self._listener.chunk(self, count, payload)
        elif kind == FAILED:
            self._listener.failed(self, payload)
        elif kind == ENDED:
            self._listener.ended(self)
        else:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the task is gone."""
        self._links.discard(self)
        if self._known:
            self._listener.lost(self)
        self._gone()

    def start(self, skip: int) -> None:
        """Have the task begin, behind the elements that an earlier attempt has sent."""
        self._order(START, skip)

    def grant(self, n: int) -> None:
        """Let the task send ``n`` more elements."""
        self.granted += n
        self._order(GRANT, n)

    def stop(self) -> None:
        """Tell the task that it is done, or that nobody listens any more; it then hangs up."""
        if self._known:
            self._order(STOP, 0)
        else:
            self.drop()

    def _order(self, kind: int, number: int) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ORDER.pack(kind, number))

    def drop(self) -> None:
        """Hang up at once."""
        self._dropped = True
        if self._transport is not None:
            self._transport.abort()
        else:
            self._links.discard(self)
            self._gone()
