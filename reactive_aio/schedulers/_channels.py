"""The work of event loops with the workers at the other end of a channel: watch it, pack chunks, read results."""

from __future__ import annotations

import asyncio
import select
import socket
import weakref
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from .._core.guard import FAILURES
from .._core.notes import add_note
from .._remote.channel import Channel
from .._remote.failures import unpack
from .._remote.frames import CHUNK, FAILED, LAST, Frame
from .._remote.partial import loaded
from .._remote.pickling import Dumps, Parcel
from .base import Report

UNPICKLED: Final = "while the results of a worker process were unpickled"


@define(eq=False)
class WatchedChannel:
    """A channel that an event loop watches, from `open` until it ends or is dropped."""

    loop: asyncio.AbstractEventLoop
    channel: Channel
    heard: Callable[[Frame], None]
    ended: Callable[[BaseException | None], None]
    """Called once, when it has been dropped: the other side has hung up, or this is why nothing more can be read."""
    _writing: bool = field(init=False, default=False)
    _open: bool = field(init=False, default=False)
    _left: weakref.finalize[[], WatchedChannel] = field(init=False)
    """Hangs up when nothing refers to this any more."""

    def __attrs_post_init__(self) -> None:
        # An event loop that is closed forgets the callbacks that it has not run, `drop` among them.
        self._left = weakref.finalize(self, self.channel.close)
        self._left.atexit = False  # another thread may still be using it then, and the system closes it

    @property
    def is_open(self) -> bool:
        """Whether it is watched."""
        return self._open

    def open(self) -> None:
        """Begin to listen."""
        self._open = True
        self.loop.add_reader(self.channel.socket.fileno(), self._read)

    def send(self, frame: Frame) -> None:
        """Send a frame, when there is room for it."""
        self.channel.send(frame)
        if self.channel.waits and not self._writing:
            self._writing = True
            self.loop.add_writer(self.channel.socket.fileno(), self._write)

    def say_goodbye(self) -> None:
        """Send the end. The other side then hangs up when it has sent its last messages."""
        try:
            self.channel.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.drop()

    def drain(self) -> None:
        """Take the arrived messages, and close the connection."""
        if self._open:
            poll = select.poll()
            poll.register(self.channel.socket, select.POLLIN)
            while self.is_open and poll.poll(0):
                self._read()
            self.drop()

    def drop(self) -> None:
        """Hang up."""
        if self._open:
            self._open = False
            if not self.loop.is_closed():
                self.loop.remove_reader(self.channel.socket.fileno())
                self.loop.remove_writer(self.channel.socket.fileno())
            self._left.detach()  # and not a call, which does nothing once the interpreter has begun to exit
            self.channel.close()

    def _read(self) -> None:
        failure: BaseException | None = None
        try:
            for frame in self.channel.receive():
                self.heard(frame)
                if not self._open:
                    return
        except FAILURES as error:  # it is no frame, or one for which there is no memory
            failure = error
        if self._open and (self.channel.ended or failure is not None):
            self.drop()
            self.ended(failure)

    def _write(self) -> None:
        self.channel.flush()
        if not self.channel.waits:
            self._writing = False
            self.loop.remove_writer(self.channel.socket.fileno())


def chunk_frame(
    chunk: int, items: list[Any], index: int, credit: int, dumps: Dumps, leave_out: int = 0
) -> tuple[Frame | None, BaseException | None]:
    """Pack a chunk; where an element can't be pickled, those before it, if any, and the failure that follows them."""
    parcel = Parcel.of(items, dumps)
    failure = parcel.failure
    if failure is not None:
        add_note(failure, "an element that goes to a worker process has to be picklable")
        if parcel.count < len(items):
            add_note(failure, f"it is element #{index + parcel.count}")
        if not parcel.count:
            return None, failure
    return Frame(CHUNK, chunk, credit, index, leave_out, parcel.pickled, parcel.buffers, parcel.more), failure


def report(frame: Frame, failing: BaseException | None) -> Report:
    """Read a worker's message on a chunk. ``failing`` is why the chunk lacks its last elements, if it does."""
    items: list[Any] = []
    failure: BaseException | None = None
    over = frame.kind in {LAST, FAILED}
    try:
        if frame.kind == FAILED:
            failure = unpack(frame.pickled)
        else:
            items, failure = loaded(frame)
            if failure is None and len(items) != frame.count:
                raise ValueError(f"{len(items)} results came, but the worker announced {frame.count}")
            if failure is not None:
                add_note(failure, UNPICKLED)
                over = True
    except FAILURES as error:
        add_note(error, UNPICKLED)
        items, failure, over = [], error, True
    if over and failure is None:
        failure = failing
    return Report(frame.number, items, frame.place, frame.detail * 1e-9, over, failure, size=frame.size)
