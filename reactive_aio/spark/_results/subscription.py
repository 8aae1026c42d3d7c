"""One subscription of a flow whose elements are results of Spark jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import define, field

from ..._core.guard import FAILURES, is_closed_with
from ..._plan import TasksSnapshot
from ..._remote.failures import unpack
from ..._remote.frames import FAILED, Decoder, Frame
from ..._remote.limit import MOST_BYTES
from ...errors import SparkJobError, TaskCancelledError
from ...spec import add_demand
from .._delivery.held import Held
from .._job.asking import STOPPED, is_stopped
from .._job.calls import Calls, JobGroup
from .._job.preparing import Preparing
from .._job.told import failure_of
from .._task.failures import loaded
from .._task.pickling import NotPickled
from .pulling import Pulling

if TYPE_CHECKING:
    from ..._plan import Inlet


@define(eq=False)
class ResultsSubscription:
    """The Subscription of the region. A task of the loop asks a thread for one frame after another, under demand."""

    inlet: Inlet[Any]
    pulling: Pulling
    _demand: int = field(init=False, default=0)
    _held: Held = field(init=False, factory=Held)
    """Elements that have been delivered and not been consumed."""
    _wanted: asyncio.Event = field(init=False, factory=asyncio.Event)
    _cancelled: bool = field(init=False, default=False)
    _before: Preparing | None = field(init=False, default=None)
    """The work before the first partition; not known of Spark Connect."""
    _come: bool = field(init=False, default=False)
    """Whether some of it has come."""
    _task: asyncio.Task[None] | None = field(init=False, default=None)

    def begin(self) -> None:
        """Start the task. The first job is run for the first demand."""
        self.inlet.show_tasks(self.tasks)
        self._task = self.inlet.start(self._live())
        self._task.add_done_callback(self._ended)

    def tasks(self) -> TasksSnapshot:
        """Return how many partitions have been read. One is read at a time. Other tasks may run before the first."""
        total, done = self.pulling.tasks, self.pulling.done
        if self._before is not None and not self._come:
            self._before.prepared = total > 0
            if (before := self._before.so_far()).total:
                return before
        return TasksSnapshot(total, int(done < total), done)

    def request(self, n: int) -> None:
        """Note consumed elements, and let more be delivered."""
        self._held.consume(n)
        self._demand = add_demand(self._demand, n)
        self._wanted.set()

    def cancel(self) -> None:
        """Stop the job. The rest is cleaned up in the task of this subscription."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    # -- life

    async def _live(self) -> None:
        """Deliver all there is, and signal the end."""
        try:
            await self._wanted.wait()
            failure = await self._pull()
        except FAILURES as error:
            if isinstance(error, asyncio.CancelledError) or is_closed_with(error, self.inlet.loop):
                raise
            failure = error
        if failure is not None:
            (self.inlet.cleanup_failed if self._cancelled else self.inlet.on_error)(failure)
        elif not self._cancelled:
            self.inlet.on_complete()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Signal that other code has cancelled the task; here, because that may be before it has begun."""
        if task.cancelled() and not self._cancelled:
            self.inlet.on_error(TaskCancelledError("the task of a source was cancelled by somebody else"))

    async def _pull(self) -> BaseException | None:
        """Deliver all elements, and return the failure at the end, if there is one."""
        jobs = self.pulling.jobs
        self._before = Preparing(jobs.context, jobs.name) if isinstance(jobs, JobGroup) else None
        async with Calls(jobs) as calls:
            frames = self.pulling.frames()
            try:
                while (frame := await calls(self._next, frames)) is not None:
                    self._has_come()
                    if isinstance(frame, BaseException):
                        return frame
                    if frame.kind == FAILED:
                        return unpack(bytes(frame.pickled))
                    items, failure = loaded(frame)
                    self._held.deliver(len(items), frame.size)
                    await self._deliver(items)
                    while self._held.size >= MOST_BYTES:
                        await self._more_wanted()
                    if failure is not None:
                        return failure
            finally:
                self._has_come()
                await calls(self._close, frames)
        return None

    def _has_come(self) -> None:
        """Look no more for what comes before."""
        self._come = True
        if self._before is not None:
            self._before.end()

    async def _deliver(self, items: list[Any]) -> None:
        at = 0
        while at < len(items):
            while not self._demand:
                await self._more_wanted()
            chunk = items[at : at + self._demand]
            self._demand -= len(chunk)
            at += len(chunk)
            self.inlet.on_chunk(chunk)

    async def _more_wanted(self) -> None:
        self._wanted.clear()
        await self._wanted.wait()

    # -- on the thread

    def _next(self, frames: Iterator[bytes]) -> Frame | BaseException | None:
        """Return the next frame, or the failure of the job. Raised, some exceptions would be taken for others."""
        try:
            data = next(frames, None)
        except NotPickled as failed:
            raise failed.error from None
        except Exception as error:
            source = self.pulling.source
            frame: Any = source.data
            if source.connect and is_stopped(frame.sparkSession):  # gRPC's error does not say so
                stopped = SparkJobError(f"the Spark job of {source} failed: {STOPPED}")
                stopped.__cause__ = error
                return stopped
            context = None if source.connect else source.context
            return failure_of(f"the Spark job of {source} failed", error, context)
        return None if data is None else next(Decoder().feed(data))

    def _close(self, frames: Any) -> None:
        """Close the iterator on the thread that it runs on, and wait for the other thread there as well."""
        with suppress(Exception):  # whatever is wrong, nobody reads any more
            frames.close()
        if self._before is not None:
            self._before.join()
