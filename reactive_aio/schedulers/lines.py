"""What event loops do alike with the workers at the other end of a channel: watch it, pack chunks, read results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from attrs import define, field

from ..hooks import drop_error
from ..notes import add_note
from ..remote.channel import Channel
from ..remote.failures import unpack
from ..remote.frames import CHUNK, FAILED, LAST, Frame
from ..remote.pickling import Buffers, picklable
from .base import Report

Dumps = Callable[[object, Buffers], bytes]


@define(eq=False)
class Line:
    """A channel that an event loop watches, from `open` until it ends or is dropped."""

    loop: asyncio.AbstractEventLoop
    channel: Channel
    heard: Callable[[Frame], None]
    ended: Callable[[], None]
    """Called once, when the other side has hung up and the line has been dropped."""
    _writing: bool = field(init=False, default=False)
    _open: bool = field(init=False, default=False)

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

    def drop(self) -> None:
        """Hang up."""
        if self._open:
            self._open = False
            if not self.loop.is_closed():
                self.loop.remove_reader(self.channel.socket.fileno())
                self.loop.remove_writer(self.channel.socket.fileno())
            self.channel.close()

    def _read(self) -> None:
        try:
            for frame in self.channel.receive():
                self.heard(frame)
                if not self._open:
                    return
            over = self.channel.ended
        except Exception as error:  # it is no frame, or one for which there is no memory
            drop_error(error)
            over = self._open
        if over:
            self.drop()
            self.ended()

    def _write(self) -> None:
        self.channel.flush()
        if not self.channel.waits:
            self._writing = False
            self.loop.remove_writer(self.channel.socket.fileno())


def chunk_frame(
    chunk: int, items: list[Any], index: int, credit: int, dumps: Dumps, leave_out: int = 0
) -> tuple[Frame | None, Exception | None]:
    """Pack a chunk; where an element can't be pickled, those before it, if any, and the failure that follows them."""
    buffers: Buffers = []
    failure: Exception | None = None
    try:
        data = dumps(items, buffers)
    except Exception as error:
        failure, items, buffers = error, picklable(items, dumps), []
        add_note(failure, "an element that goes to a worker process has to be picklable")
        add_note(failure, f"it is element #{index + len(items)}")
        if not items:
            return None, failure
        data = dumps(items, buffers)
    return Frame(CHUNK, chunk, credit, index, leave_out, data, buffers), failure


def report(frame: Frame, failing: BaseException | None) -> Report:
    """Read what a worker says of a chunk; ``failing`` is why the chunk lacks the rest of its elements, if it does."""
    items: list[Any] = []
    failure: BaseException | None = None
    over = frame.kind in {LAST, FAILED}
    try:
        if frame.kind == FAILED:
            failure = unpack(frame.pickled)
        else:
            items = frame.loads()
            if len(items) != frame.count:
                raise ValueError(f"{len(items)} results have come, of which {frame.count} were announced")
    except Exception as error:
        add_note(error, "while what came from a worker process was unpickled")
        items, failure, over = [], error, True
    if over:
        failure = failure or failing
    return Report(frame.number, items, frame.place, frame.detail * 1e-9, over, failure)
