"""One task of a resident region, seen from the event loop: the chunks that it has, and whether it is alive."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from attrs import define, field

from ..._core.containers import new_dict
from ..._remote.frames import BEAT, CLEANUP, CREDIT, FAILED, LAST, PART, READY, STOP, Frame
from ...hooks import drop_error
from ...schedulers._channels import WatchedChannel, chunk_frame

if TYPE_CHECKING:
    from .region import ResidentRegion

from ..._remote.channel import Channel
from ..._remote.failures import unpack
from .._task.pickling import dumps
from .._task.watch import reset


@define(eq=False)
class Sent:
    """A chunk, from when it is submitted until it is over: the task that has it may be lost, and it goes to another."""

    number: int
    items: list[Any]
    index: int
    credit: int
    """The results that were allowed for, in all."""
    given: int = field(init=False, default=0)
    """The results that have come."""
    size: int = field(init=False, default=0)
    """Bytes of the results from its current task, since the task last had leave to go on."""
    taken: int = field(init=False, default=0)
    """The elements that have been worked on, as far as anybody knows."""
    losses: int = field(init=False, default=0)
    failing: BaseException | None = field(init=False, default=None)
    """Why it lacks its last elements, which could not be pickled."""


@define(eq=False)
class RemoteTask:
    """A connected task."""

    region: ResidentRegion
    slot: int
    connection: socket.socket
    channel: WatchedChannel = field(init=False)
    ready: bool = field(init=False, default=False)
    """Whether it has said how many chunks it can hold."""
    room: int = field(init=False, default=0)
    """The further chunks that it can hold."""
    chunks: dict[int, Sent] = field(init=False, factory=new_dict)
    silent: int = field(init=False, default=0)
    """The ticks since its last message."""
    idle: int = field(init=False, default=0)
    """The ticks since it last had a chunk."""
    left: bool = field(init=False, default=False)
    """Whether it ends with the region."""

    def __attrs_post_init__(self) -> None:
        self.channel = WatchedChannel(self.region.loop, Channel(self.connection), self._heard, self._ended)

    def open(self) -> None:
        """Send the region's function, and listen."""
        self.channel.open()
        self.channel.send(self.region.introduction)

    def give(self, sent: Sent) -> None:
        """Process a chunk, after the results that an earlier task has sent."""
        frame, sent.failing = chunk_frame(
            sent.number, sent.items, sent.index, sent.credit - sent.given, dumps, leave_out=sent.given
        )
        if frame is None:
            self.region.failed(sent)
            return
        self.room -= 1
        self.idle = 0
        self.chunks[sent.number] = sent
        sent.size = 0
        self.region.reports.sent(sent.number, frame.size)
        self.channel.send(frame)

    def allow(self, sent: Sent, most: int) -> None:
        """Allow a number of results of a chunk after those that have come, and as many bytes as these had."""
        more, size = sent.given + most - sent.credit, sent.size
        sent.credit, sent.size = sent.credit + more, 0
        self.channel.send(Frame(CREDIT, sent.number, more, detail=size))

    def dismiss(self) -> None:
        """End the task, which has no chunk."""
        self.room = 0
        self.channel.send(Frame(STOP))

    def leave(self) -> None:
        """End the task as soon as it is out of its function, and read its failed cleanups."""
        self.left = True
        self.chunks.clear()
        self.channel.say_goodbye()

    def hang_up(self) -> None:
        """Read the last messages, and reset the connection of a task that has not hung up."""
        if self.channel.is_open:
            reset(self.connection)
            self.channel.drain()

    def _heard(self, frame: Frame) -> None:
        self.silent = 0
        if frame.kind == CLEANUP:
            self.region.reports.cleanup_failed(unpack(frame.pickled))
        elif self.left:
            return  # nobody wants it any more
        elif frame.kind == READY:
            self.ready = True
            self.room += frame.count
            self.region.hand_out()
        elif frame.kind in {PART, LAST, FAILED}:
            self._reported(frame)
        elif frame.kind != BEAT:
            self._misbehaved()

    def _reported(self, frame: Frame) -> None:
        sent = self.chunks.get(frame.number)
        if sent is None or sent.given + frame.count > sent.credit:
            self._misbehaved()
            return
        sent.given += frame.count
        sent.size += frame.size
        sent.taken = max(sent.taken, frame.place)
        if frame.kind != PART:
            del self.chunks[frame.number]
            self.room += 1
        self.region.reported(frame, sent)

    def _misbehaved(self) -> None:
        """Drop a task that does not keep the protocol."""
        self.channel.drop()
        self._ended()

    def _ended(self, failure: BaseException | None = None) -> None:
        if failure is not None:
            drop_error(failure)
        self.region.lost(self)
