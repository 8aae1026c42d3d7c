"""The loop's end of the connection that a task has opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol, cast

from ..._remote.frames import CHUNK, CLEANUP, CREDIT, FAILED, LAST, PART, STOP, Decoder, Frame
from ..._remote.handshake import Guard, HandshakeError
from .._task.connecting import prepare
from .._task.watch import reset
from .entrance import MANNERS

if TYPE_CHECKING:
    from asyncio import BaseTransport, Transport

_NUMBERS: Final = count()


class Listener(Protocol):
    """The receiver of the tasks' messages."""

    def connected(self, link: Link) -> None:
        """A task has proved that it is one of ours."""

    def chunk(self, link: Link, frame: Frame) -> None:
        """Elements have come."""

    def failed(self, link: Link, data: bytes) -> None:
        """A partition has failed, after its elements."""

    def cleanup_failed(self, data: bytes) -> None:
        """The cleanup of a stopped task has failed."""

    def ended(self, link: Link, frame: Frame) -> None:
        """A partition has been read to its end, or as far as it matters."""

    def lost(self, link: Link) -> None:
        """The connection of one that was connected is gone."""


class Link(asyncio.Protocol):
    """A connection to a task; to be dropped, with nothing unpickled, unless it proves to know the secret."""

    def __init__(self, secret: bytes, listener: Listener, links: set[Link], gone: Callable[[], None]) -> None:
        self._guard = Guard(secret)
        self._listener = listener
        self._links = links
        self._gone = gone
        self._transport: Transport | None = None
        self._known = False
        self._dropped = False
        self._stopped = False
        self._decoder = Decoder()
        self.partition = 0
        self.granted = 0
        """Elements that the task may still send."""
        self.room = 0
        """Bytes after which it sends no more until it is allowed some."""
        self.number = next(_NUMBERS)
        """Which of all there were it is."""
        self._deadline = asyncio.get_running_loop().call_later(MANNERS, self.drop)
        """The time limit of its proof."""
        links.add(self)

    @property
    def is_stranger(self) -> bool:
        """Whether it has not greeted with the seal of the secret, and may still."""
        return not (self._guard.known or self._dropped)

    def connection_made(self, transport: BaseTransport) -> None:
        """Wait for what the other side has to say for itself."""
        self._transport = cast("Transport", transport)
        if self._dropped:
            self._transport.abort()
            return
        prepare(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Take the arrived bytes."""
        if not self._known:
            data = self._introduced(data)
        for frame in self._decoder.feed(data):
            self._heard(frame)

    def _introduced(self, data: bytes) -> bytes:
        """Take the handshake, and return the bytes after it."""
        while data and not self._guard.through and not self._dropped:
            count = self._guard.wants
            try:
                said = self._guard.feed(data[:count])
            except HandshakeError:
                self.drop()
                return b""
            data = data[count:]
            if said and self._transport is not None:
                self._transport.write(said)
        if self._guard.through:
            self._known = True
            self._deadline.cancel()
            self.partition = self._guard.partition
            if self._stopped:
                self.stop()
            else:
                self._listener.connected(self)
        return data

    def _heard(self, frame: Frame) -> None:
        if frame.kind == PART and self._stopped:
            return  # it was on its way, and nobody waits for it
        if frame.kind == PART and frame.count <= self.granted:
            self.granted -= frame.count
            self.room -= frame.size
            self._listener.chunk(self, frame)
        elif frame.kind == FAILED:
            self._listener.failed(self, bytes(frame.pickled))
        elif frame.kind == LAST:
            self._listener.ended(self, frame)
        elif frame.kind == CLEANUP:
            self._listener.cleanup_failed(bytes(frame.pickled))
        else:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the task is gone."""
        self._deadline.cancel()
        self._links.discard(self)
        if self._known:
            self._listener.lost(self)
        self._gone()

    def start(self, skip: int, place: int) -> None:
        """Begin the task, after the elements that an earlier attempt has sent, and at a place in the whole."""
        self._say(Frame(CHUNK, self.partition, place=place, detail=skip))

    def grant(self, n: int) -> None:
        """Let the task send ``n`` more elements."""
        self.granted += n
        self._say(Frame(CREDIT, self.partition, n))

    def allow(self, size: int) -> None:
        """Let the task send ``n`` more bytes, and a chunk beyond."""
        self.room += size
        self._say(Frame(CREDIT, self.partition, 0, detail=size))

    def stop(self) -> None:
        """Stop the task, because it is done or its reader has gone. The task then hangs up."""
        self._stopped = True
        if self._known:
            self._say(Frame(STOP, self.partition))
        elif not self._guard.known:
            self.drop()

    def _say(self, frame: Frame) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(frame.encoded())

    def reset(self) -> None:
        """Hang up on a task whose job has ended, which ends its worker. Nobody listens any more."""
        if self._transport is not None:
            reset(self._transport.get_extra_info("socket"))
        self.drop()

    def drop(self) -> None:
        """Hang up at once."""
        self._dropped = True
        self._deadline.cancel()
        if self._transport is not None:
            self._transport.abort()
        else:
            self._links.discard(self)
            self._gone()
