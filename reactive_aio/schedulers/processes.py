"""The scheduler that runs CPU-bound functions in worker processes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextvars import Context, ContextVar
from functools import partial
from typing import Any, Final

from attrs import define, field

from .._core.containers import new_dict
from .._core.guard import FAILURES, brief
from .._remote import worker
from .._remote.failures import unpack
from .._remote.frames import CLEANUP, CREDIT, FAILED, REGION, Frame
from .._remote.limit import ByteLimit
from .._remote.pickling import by_reference, by_value_dumps, dumps, dumps_in_pieces, has_main
from .._remote.variables import Variable, values_in, variables
from ._channels import WatchedChannel, chunk_frame, report
from ._team import ChannelEnd, Team
from .base import Released, Report, Reports, Work, WorkerRegion
from .pool import Pool
from .threads import check_bytes, check_workers

REGION_BYTES: Final = 64 << 20
"""Bytes of elements and results of one region, as they are sent, by default: two workers get chunks of several large arrays."""

Given = dict[int, tuple[int, int]]
"""The results, and their bytes, that chunks have sent since they last had leave to go on."""


@define(eq=False, repr=False)
class _Member:
    """One region's hold on the processes: a channel to each, on the region's event loop."""

    pool: ProcessPool
    team: Team
    reports: Reports
    loop: asyncio.AbstractEventLoop
    _most: int = field(init=False, default=0)
    _channels: dict[WatchedChannel, Given] = field(init=False, factory=new_dict)
    """The chunks of each worker."""
    _failing: dict[int, BaseException] = field(init=False, factory=new_dict)
    """Chunks without their last elements, which could not be pickled."""
    _left: bool = field(init=False, default=False)
    """Whether no more results are wanted."""
    _released: Released | None = field(init=False, default=None)
    """Called when the last channel has ended and the workers go on for others."""

    def begin(self, region: bytes, most: int) -> None:
        """Connect, and send the function."""
        self._most = most
        ends: list[ChannelEnd] = []
        try:
            for _ in range(self.team.count):
                ours, theirs = self.team.channel()
                ends.append(theirs)
                channel = WatchedChannel(self.loop, ours, self._heard, self._ended)
                self._channels[channel] = {}
                channel.open()
                channel.send(Frame(REGION, detail=self.pool.byte_limit.share, pickled=region))
        finally:
            self.team.connect(ends)

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        """Send a chunk to the worker that has the fewest."""
        frame, failure = chunk_frame(chunk, items, index, self._most, dumps_in_pieces)
        if frame is None:
            self.reports.reported(Report(chunk, [], 0, 0.0, True, failure))
            return
        if failure is not None:
            self._failing[chunk] = failure
        channel = self._least_busy()
        self._channels[channel][chunk] = 0, 0
        self.reports.sent(chunk, frame.size)
        channel.send(frame)

    def _least_busy(self) -> WatchedChannel:
        """Return the channel with the fewest chunks, without a call for each."""
        (least, fewest), *others = self._channels.items()
        for channel, chunks in others:
            if len(chunks) < len(fewest):
                least, fewest = channel, chunks
        return least

    def go_on(self, chunk: int) -> None:
        """Send the message to the worker that has the chunk."""
        for channel, chunks in self._channels.items():
            if chunk in chunks:
                count, size = chunks[chunk]
                chunks[chunk] = 0, 0
                channel.send(Frame(CREDIT, chunk, count, detail=size))

    def leave(self, released: Released) -> None:
        """Send the end to the workers. Read until each has dropped its work and has reported the failed cleanups."""
        self._left = True
        for channel in self._channels:
            channel.say_goodbye()
        if self.pool.ends_with(self):
            # At once: a worker may be stuck, and the next region is to find new ones.
            self.pool.let_go(self, self.team, partial(self._workers_ended, released))
        else:
            self._released = released
            self._ended(None)

    def _workers_ended(self, released: Released, join: Callable[[], None] | None = None) -> None:
        """Close the channels on the loop. The thread of the workers calls this when they have ended."""

        def hang_up() -> None:
            self._hang_up()
            released(join)

        try:
            self.loop.call_soon_threadsafe(hang_up)
        except RuntimeError:  # it has been closed
            hang_up()

    def expel(self, error: BaseException) -> None:
        """Fail the region, because the pool is closed or a worker has died."""
        self.reports.lost(error)
        if self.loop.is_closed():
            self._hang_up()  # nobody else will

    def _hang_up(self) -> None:
        """Take the last messages, and close the channels."""
        for channel in self._channels:
            channel.drain()

    def _ended(self, failure: BaseException | None) -> None:
        """End with the last channel. The thread that watches a worker reports its death, because it knows the cause."""
        if failure is not None:
            self.reports.lost(failure)
        released = self._released
        if released is not None and not any(channel.is_open for channel in self._channels):
            self._released = None
            self.pool.let_go(self, self.team, released)

    def _heard(self, frame: Frame) -> None:
        if frame.kind == CLEANUP:
            self.reports.cleanup_failed(unpack(frame.pickled))
        elif frame.kind == FAILED or not self._left:
            told = report(frame, self._failing.get(frame.number))
            self._note(told, frame.count)
            self.reports.reported(told)

    def _note(self, told: Report, count: int) -> None:
        """Note the results of a chunk, or its end."""
        if told.over:
            self._failing.pop(told.chunk, None)
        for chunks in self._channels.values():
            if (given := chunks.pop(told.chunk, None)) is not None and not told.over:
                chunks[told.chunk] = given[0] + count, given[1] + told.size


@define(eq=False, repr=False)
class ProcessPool(Pool[Team]):
    """Processes for CPU-bound functions, shared by the regions that are placed on them (Workers)."""

    variables: tuple[Variable, ...] = ()
    max_bytes: int = REGION_BYTES

    @property
    def byte_limit(self) -> ByteLimit:
        """The bytes that a region on the processes may have outstanding."""
        return ByteLimit.of(self.max_bytes, self.count)

    @property
    def name(self) -> str:
        """How plans show the place."""
        return f"processes({self.count})"

    def check(self, stage: object) -> None:
        """Raise unless the stage can be pickled."""
        try:
            if by_value_dumps() is None:
                by_reference(stage, None, main=has_main())
            else:
                dumps(stage)
        except FAILURES as error:
            advice = (
                "Remove the object that can't be pickled from its function"
                if by_value_dumps() is not None
                else "Use a function from the top level of a module, or install cloudpickle for lambdas and local functions"
            )
            raise TypeError(
                f"{stage}, can't be sent to a worker process: {brief(error)}. {advice}. Or run it in this process, with "
                ".publish_on(schedulers.current()) before it"
            ) from error

    def add_region(self, work: Work, most: int, context: Context, reports: Reports) -> WorkerRegion:
        """Take a region in. The first one starts the processes."""
        if worker.starting:
            raise RuntimeError(
                f"{worker.starting[0]} runs a flow on processes while a worker process imports it. Put the code of the "
                'program under `if __name__ == "__main__":`'
            )
        region = dumps((dumps(work), values_in(context, self.variables)))
        members: list[_Member] = []

        def make(team: Team) -> _Member:
            members.append(_Member(self, team, reports, asyncio.get_running_loop()))
            return members[0]

        self._enter(make)
        try:
            members[0].begin(region, most)
        except FAILURES:
            members[0].leave(lambda join=None: None)
            raise
        return members[0]

    def _form(self) -> Team:
        return Team(self.name, self.count, self._lost)

    def _lost(self, team: Team, error: BaseException) -> None:
        for member in self._dismiss(team):
            member.expel(error)


def processes(n: int, *, context: Iterable[ContextVar[Any]] = (), max_bytes: int = REGION_BYTES) -> ProcessPool:
    """Run the functions that follow in ``n`` worker processes: for functions that keep a processor busy.

    It is for ``publish_on``. The elements travel in small chunks, pickled once each way, and come back in order. A
    chunk has the elements that are there: one at first, and more as long as the functions are quick. Operators that
    depend on an element's place in the stream, such as ``take``, run with what follows them on the event loop that
    reads.

    The functions are pickled once for each flow, by reference. Functions without a reference, such as lambdas, are
    pickled by value, if cloudpickle is installed. A value that can't be pickled is refused with TypeError when the flow
    is built. The variables in ``context`` have the subscriber's values in the functions. These must be values that can
    be pickled.

    A region has at most ``max_bytes`` of elements and results outstanding, as they are sent, and always a chunk for
    each worker. So large elements are requested in smaller numbers than ``prefetch``. A chunk of several elements has
    at most 8 MiB of them.

    The processes start with the first flow, as new interpreters, and end with the last, before its terminal returns. A
    cancel ends them even while a function runs. ``async with schedulers.processes(2) as pool:`` keeps them for many
    flows. A worker that dies fails the flows on the pool with WorkerDiedError. Raises NotImplementedError on Windows,
    where a socket can't carry another. (Pekko: none; Python: ``ProcessPoolExecutor``.)

    >>> import math
    >>> from reactive_aio import Flow, schedulers
    >>> Flow.of(10, 20).publish_on(schedulers.processes(1)).map(math.factorial).map(str).map(len).run_sync()
    [7, 19]
    """
    check_workers("processes", n)
    if not hasattr(socket, "send_fds"):
        raise NotImplementedError("processes() needs a system with Unix sockets. Use threads(n) on this system")
    check_bytes("processes", max_bytes)
    return ProcessPool(n, variables("processes", context), max_bytes)
