"""One subscription of a Spark-backed flow, on the event loop: it lives as long as anything of its job does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from ..._core.containers import new_set
from ..._core.guard import FAILURES, is_closed_with
from ..._plan import TasksSnapshot
from ...errors import TaskCancelledError
from ...spec import refill_after
from .._job.computation import Computation, Group
from .._job.job import Job, Prepared
from .._job.preparing import Preparing
from .._task.connecting import Address
from .._task.worker import RegionTask
from .delivery import Delivery
from .entrance import MOST_STRANGERS
from .idle_slots import IdleSlots
from .link import Link
from .slots import Seat

if TYPE_CHECKING:
    from ..._plan import Inlet
    from .._source.source import FromSpark

HANG_UP: Final = 0.5
"""Seconds for tasks to hang up once their jobs have ended; then the workers end in which they are stuck."""


@define(eq=False)
class SparkSubscription:
    """The Subscription of the region; brings delivery, job and connections together, and cleans up."""

    inlet: Inlet[Any]
    source: FromSpark
    _delivery: Delivery = field(init=False)
    _job: Job = field(init=False)
    _seat: Seat = field(init=False)
    _idle: IdleSlots = field(init=False)
    _before: Preparing = field(init=False)
    _links: set[Link] = field(init=False, factory=new_set)
    _requested: int = field(init=False, default=0)
    """Elements that were requested, and whose credits the tasks have not got yet."""
    _prepared: Prepared | None = field(init=False, default=None)
    _changed: asyncio.Event = field(init=False, factory=asyncio.Event)
    _ended: bool = field(init=False, default=False)
    _interrupted: asyncio.CancelledError | None = field(init=False, default=None)
    _task: asyncio.Task[None] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._delivery = self.source.delivery(self.inlet, self, self.source.ahead)
        source = self.source
        self._job = Job(
            source.context,
            str(source),
            self._computation,
            self,
            self.inlet.post,
            source.properties,
            session=source.session,
        )
        self._before = Preparing(
            self.source.context, self._job.group, ended=lambda: self.inlet.post(self._looked, None)
        )
        self._seat = Seat.at(
            self.source.context,
            lambda: self.inlet.post(self._offered, None),
            self.inlet.where,
            lambda: self._delivery.waiting,
        )
        self._idle = IdleSlots(self._seat, self.inlet.loop)

    def _computation(self, address: Address) -> Computation:
        source = self.source
        return source.computation(RegionTask(str(source), source.pickled(), source.reading, address=address))

    def begin(self) -> None:
        """Start the job. Nothing here waits for it."""
        self.inlet.show_tasks(self.tasks)
        self._job.start()
        self._task = self.inlet.start(self._live())

    # -- the Subscription of the region

    def tasks(self) -> TasksSnapshot:
        """Return how far the tasks are. There is one for each partition, and others may run before those."""
        partitions = self._delivery.partitions
        if any(each.begun or each.confirmed for each in partitions):
            self._before.end()
        elif (before := self._before.so_far()).total:
            return before
        done = sum(1 for each in partitions if each.confirmed or each.over)
        return TasksSnapshot(len(partitions), len(self._delivery.running), done)

    def _looked(self, _: None) -> None:
        self._changed.set()

    def request(self, n: int) -> None:
        """Note consumed elements, and let the tasks send more when they are three quarters of the prefetch."""
        self._delivery.consumed(n)
        self._seat.requests += 1
        self._requested += n
        if self._requested >= refill_after(self.source.ahead):
            requested, self._requested = self._requested, 0
            self._delivery.request(requested)

    def cancel(self) -> None:
        """Stop the tasks and the job. The rest is cleaned up in the task of this subscription."""
        if not self._delivery.over:
            self._delivery.over = True
            self._stop(cancel=True)

    # -- what the delivery asks for

    def run(self, partition: int) -> bool:
        """Run a task for a partition, if a slot is free for it."""
        if not self._seat.take():
            return False
        self._job.run(partition)
        self._idle.watch()
        return True

    def gather(self, first: int, groups: Sequence[Group]) -> None:
        """Read groups of partitions by one task each."""
        self._job.gather(first, groups, self._delivery.gathered)

    def _offered(self, _: None) -> None:
        self._delivery.ask()

    def finish(self, error: BaseException | None) -> None:
        """Signal the end, and stop."""
        if self._delivery.over:
            if error is not None:
                self.inlet.cleanup_failed(error)
            return
        self._delivery.over = True
        self._stop(cancel=error is not None or self._delivery.leaves_some)
        if error is None:
            self.inlet.on_complete()
        else:
            self.inlet.on_error(error)

    def _stop(self, *, cancel: bool) -> None:
        self._stop_links()
        self._idle.stop()
        self._before.end()
        self._job.stop(cancel=cancel)
        self._changed.set()

    def _stop_links(self) -> None:
        for link in tuple(self._links):
            link.stop()

    # -- what the job tells

    def prepared(self, prepared: Prepared) -> None:
        """Accept connections."""
        self._prepared = prepared
        self._before.prepared = True
        self._changed.set()

    def not_prepared(self, error: BaseException) -> None:
        """Fail."""
        if not self._delivery.over:
            self.finish(error)

    def confirmed(self, partition: int) -> None:
        """Pass on that a partition is over."""
        self._seat.give_back()
        self._delivery.confirmed(partition)

    def job_failed(self, partition: int, error: BaseException) -> None:
        """Pass on that a partition has failed."""
        self._seat.give_back()
        self._delivery.job_failed(partition, error)

    def threads_ended(self) -> None:
        """Clean up the rest."""
        self._seat.leave()
        self._ended = True
        self._changed.set()

    # -- life

    async def _live(self) -> None:
        try:
            await self._until_all_is_gone()
        except FAILURES as error:
            if isinstance(error, asyncio.CancelledError) or is_closed_with(error, self.inlet.loop):
                raise
            self.finish(error)

    async def _until_all_is_gone(self) -> None:
        while self._prepared is None and not self._ended:
            await self._change()
        server: asyncio.Server | None = None
        if self._prepared is not None:
            server = await self._serve(self._prepared)
        # While the job lasts newcomers are accepted too, if only to be told that it is over.
        while not self._ended:
            await self._change()
        if server is not None:
            server.close()
            await self._hung_up()
        while self._before.looking:
            await self._change()
        self._job.join()
        self._before.join()
        if self._interrupted is not None:
            raise self._interrupted

    async def _hung_up(self) -> None:
        """Wait until no connection is left. One that has just been accepted shows up in the loop's next turn."""
        self._changed.set()
        self.inlet.loop.call_soon(self._changed.set)
        await self._change()
        await self._change()
        self._stop_links()
        deadline = self.inlet.loop.call_later(HANG_UP, self._reset_links)
        while self._links:
            await self._change()
        deadline.cancel()

    async def _serve(self, prepared: Prepared) -> asyncio.Server | None:
        server: asyncio.Server | None = None
        try:
            server = await self.inlet.loop.create_server(self._link, sock=prepared.listening)
        except asyncio.CancelledError as error:
            self._interrupt(error)
        except OSError as error:
            self.finish(error)
        if self._delivery.over:
            return server
        self._seat.slots.total = prepared.slots
        self._delivery.begin(prepared.partitions, prepared.slots, gathers=prepared.gathers)
        return server

    async def _change(self) -> None:
        """Wait until something has changed. A cancellation of the task stops the job and waits on."""
        try:
            await self._changed.wait()
        except asyncio.CancelledError as error:
            self._interrupt(error)
        self._changed.clear()

    def _interrupt(self, error: asyncio.CancelledError) -> None:
        self._interrupted = error
        if not self._delivery.over:
            cancelled = TaskCancelledError("the task of a source was cancelled by somebody else")
            cancelled.__cause__ = error
            self.finish(cancelled)

    def _link(self) -> Link:
        strangers = [link for link in self._links if link.is_stranger]
        if len(strangers) >= MOST_STRANGERS:
            min(strangers, key=lambda link: link.number).drop()
        return Link(self._job.secret, self._delivery, self._links, self._changed.set)

    def _reset_links(self) -> None:
        for link in tuple(self._links):
            link.reset()
