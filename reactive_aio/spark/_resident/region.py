"""A region on resident tasks, on the event loop that feeds it: tasks started and let go, and chunks that outlive them.

The function of a region depends on nothing but its chunk. So what a lost task had is worked on again by another one,
which leaves out the results that have come already: none is lost, doubled or out of place.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field

from ..._core.containers import new_deque, new_list, new_set
from ..._core.tasks import begin_task
from ..._remote.frames import STOP, Frame
from ...errors import SchedulerClosedError, WorkerDiedError
from ...schedulers._channels import report
from ...schedulers.base import Released, Report, Reports
from .._delivery.entrance import Entrance
from .._delivery.slots import Seat
from .._job.computation import Computation
from .._job.job import Job, Prepared
from .._task.connecting import Address
from .remote_task import RemoteTask, Sent
from .task import ResidentTask

if TYPE_CHECKING:
    from .scheduler import SparkWorkers

ATTEMPTS: Final = 4
"""How often a chunk may be lost with its task, and tasks in a row may end without results; Spark's default."""
GRACE: Final = 0.5
"""Seconds for tasks to finish their work when a flow has ended, before Spark is asked to stop them."""
SILENCE: Final = 6
"""Beats that may be missed before a task is taken for lost."""


@define(eq=False, repr=False)
class ResidentRegion:
    """One region on the cluster (a WorkerRegion); an event handler of its jobs."""

    workers: SparkWorkers
    introduction: Frame
    """The first message to each task."""
    most: int
    reports: Reports
    loop: asyncio.AbstractEventLoop
    _job: Job = field(init=False)
    _seat: Seat = field(init=False)
    _entrance: Entrance | None = field(init=False, default=None)
    _running: set[int] = field(init=False, factory=new_set)
    """The slots whose jobs run."""
    _silent: set[int] = field(init=False, factory=new_set)
    """The lost tasks, which may hold their slots for long."""
    _tasks: set[RemoteTask] = field(init=False, factory=new_set)
    _left: list[RemoteTask] = field(init=False, factory=new_list)
    """The tasks that end with the region."""
    _waiting: deque[Sent] = field(init=False, factory=new_deque)
    """Chunks that no task has, in order; bounded by what the boundary has under way."""
    _fruitless: int = field(init=False, default=0)
    """Tasks that have ended since a chunk was last done."""
    _met: bool = field(init=False, default=False)
    """Whether any task has ever connected."""
    _over: bool = field(init=False, default=False)
    _ended: bool = field(init=False, default=False)
    _released: Released | None = field(init=False, default=None)
    _changed: asyncio.Event = field(init=False, factory=asyncio.Event)
    _ticking: asyncio.TimerHandle | None = field(init=False, default=None)
    _task: asyncio.Task[None] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        workers = self.workers
        self._job = Job(workers.context, workers.name, self._computation, self, self._post, workers.properties, GRACE)
        self._seat = Seat.at(workers.context, lambda: self._post(self._offered, None))

    def begin(self) -> None:
        """Prepare the job. Tasks start when there is a chunk."""
        self._job.start()
        self._task = begin_task(self._live(), loop=self.loop)

    def _computation(self, address: Address) -> Computation:
        """Return an empty RDD, on a thread. Its partitions are the tasks, and as many again to replace silent ones."""
        task = ResidentTask(address, self.workers.beat)
        context: Any = self.workers.context
        return Computation(context.parallelize([], 2 * self.workers.count).mapPartitionsWithIndex(task.serve)._jrdd)

    def _post(self, handle: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop has been closed, and nobody waits
            self.loop.call_soon_threadsafe(handle, value)

    # -- what the boundary asks for

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        """Let the first free task process a chunk."""
        self._waiting.append(Sent(chunk, items, index, self.most))
        self.hand_out()

    def go_on(self, chunk: int) -> None:
        """Allow for more results of a chunk, wherever it is."""
        for sent in self._waiting:
            if sent.number == chunk:
                sent.credit = sent.given + self.most
        for task in self._tasks:
            if (sent_there := task.chunks.get(chunk)) is not None:
                task.allow(sent_there, self.most)

    def leave(self, released: Released) -> None:
        """Hang up, and stop the jobs."""
        self._over = True
        self._released = released
        if self._ticking is not None:
            self._ticking.cancel()
        self._left = list(self._tasks)
        self._tasks.clear()
        for task in self._left:
            task.leave()
        self._waiting.clear()
        self._job.stop(cancel=True)
        self._changed.set()

    # -- the tasks

    def hand_out(self) -> None:
        """Pass the waiting chunks to the tasks that have the fewest, and start tasks if that is not enough."""
        while self._waiting and not self._over:
            task = min((task for task in self._tasks if task.room), key=lambda task: len(task.chunks), default=None)
            if task is None:
                break
            task.give(self._waiting.popleft())
        self._staff()

    def _staff(self) -> None:
        """Start as many tasks as chunks wait, if there are slots."""
        while not self._over and self._entrance is not None:
            live = self._running - self._silent
            # Those that are at work have no room, else nothing would wait.
            starting = live - {task.slot for task in self._tasks if task.ready}
            slot = next((slot for slot in range(2 * self.workers.count) if slot not in self._running), None)
            if slot is None or len(live) >= self.workers.count or len(self._waiting) <= len(starting):
                break
            if not self._seat.take():
                return
            self._running.add(slot)
            self._job.run(slot)
        self._seat.decline()  # what it was refused for may have been done by others meanwhile

    def _offered(self, _: None) -> None:
        self._staff()

    def _entered(self, connection: socket.socket, slot: int) -> None:
        task = RemoteTask(self, slot, connection)
        if self._over:
            task.channel.open()
            task.channel.send(Frame(STOP))
            task.channel.drop()
            return
        self._met = True
        self._tasks.add(task)
        task.open()

    def lost(self, task: RemoteTask) -> None:
        """Let other tasks process the unfinished chunks of a task."""
        self._tasks.discard(task)
        if self._over:
            return
        for sent in task.chunks.values():
            sent.losses += 1
            if sent.losses == ATTEMPTS:
                last = sent.index + len(sent.items) - 1
                self._fail(
                    WorkerDiedError(
                        f"{self.workers.name} has lost {ATTEMPTS} tasks while they worked on elements #{sent.index} to #{last}"
                    )
                )
                return
        self._waiting = deque(sorted([*self._waiting, *task.chunks.values()], key=lambda sent: sent.number))
        self.hand_out()

    def reported(self, frame: Frame, sent: Sent) -> None:
        """Pass on the results of a chunk."""
        told = report(frame, sent.failing)
        if told.over:
            self._fruitless = 0
        self.reports.reported(evolve(told, taken=sent.taken))
        if told.over:
            self.hand_out()

    def failed(self, sent: Sent) -> None:
        """Pass on that not even the first element of a chunk could be sent."""
        self.reports.reported(Report(sent.number, [], 0, 0.0, True, sent.failing))

    def _fail(self, error: BaseException) -> None:
        """Fail the flow, which then leaves."""
        self._over = True
        self.reports.lost(error)

    # -- the jobs

    def prepared(self, prepared: Prepared) -> None:
        """Accept tasks."""
        self._seat.slots.total = prepared.slots
        self._entrance = Entrance(self.loop, prepared.listening, self._job.secret, self._entered)
        self._entrance.open()
        self._staff()
        self._tick()

    def not_prepared(self, error: BaseException) -> None:
        """Fail."""
        if not self._over:
            self._fail(error)

    def confirmed(self, partition: int) -> None:
        """Note that a task has ended without an order here: it was dismissed, or cut off."""
        self._gone(partition, None)

    def job_failed(self, partition: int, error: BaseException) -> None:
        """Start the task anew, unless that leads to nothing."""
        self._gone(partition, error)

    def _gone(self, slot: int, error: BaseException | None) -> None:
        self._running.discard(slot)
        self._silent.discard(slot)
        self._seat.give_back()
        if self._over:
            return
        if error is not None:
            self._fruitless += 1
            if not self._met or self._fruitless >= ATTEMPTS:
                self._fail(error)
                return
        self._staff()

    def threads_ended(self) -> None:
        """Clean up the rest."""
        self._seat.leave()
        self._ended = True
        self._changed.set()

    # -- time

    def _tick(self) -> None:
        """Count the beats that are missed and the time without work, in turns of this loop: it may have been held up."""
        if self._over:
            return
        beat, idle = self.workers.beat, self.workers.idle
        step = min(beat, idle)
        self._ticking = self.loop.call_later(step, self._tick)
        for task in tuple(self._tasks):
            task.silent += 1
            task.idle = 0 if task.chunks else task.idle + 1
            if task.silent * step > SILENCE * beat:
                self._silent.add(task.slot)
                task.channel.drop()
                self.lost(task)
            elif task.idle * step > idle and task.room:
                task.dismiss()

    async def _live(self) -> None:
        while not (self._ended and self._released is not None):
            try:
                await self._changed.wait()
            except asyncio.CancelledError as error:
                self._interrupted(error)
            self._changed.clear()
        if self._entrance is not None:
            self._entrance.close()
        for task in self._left:  # the jobs have ended, and nobody listens: workers end that are stuck
            task.hang_up()
        assert self._released is not None
        self._released(self._job.join)

    def _interrupted(self, error: asyncio.CancelledError) -> None:
        if not self._over:
            closed = SchedulerClosedError(f"the event loop that feeds {self.workers.name} is being shut down")
            closed.__cause__ = error
            self._fail(closed)
