"""The work of Spark before the first partition: stages in front of a shuffle, and the jobs of a large sort."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from ..._plan import TasksSnapshot

if TYPE_CHECKING:
    from pyspark import SparkContext

EVERY: Final = 0.25
"""Seconds between two looks."""


@define(eq=False)
class Preparing:
    """Its progress. A thread finds it out by calls into the JVM, from the first request on."""

    context: SparkContext
    group: str
    """The group of the jobs of the flow."""
    prepared: bool = False
    """Whether partitions are next: the last stage of each job is then one of those."""
    ended: Callable[[], None] = lambda: None
    """Called on the thread when it has nothing more to do."""
    looking: bool = field(init=False, default=False)
    """Whether the thread is at work. If not, it may be joined without a wait worth the name."""
    _found: TasksSnapshot = field(init=False, default=TasksSnapshot(0, 0, 0, preparing=True))
    _over: Event = field(init=False, factory=Event)
    _thread: Thread | None = field(init=False, default=None)
    _lock: Lock = field(init=False, factory=Lock)
    """A snapshot may be taken on any thread."""

    def so_far(self) -> TasksSnapshot:
        """Return how many tasks there are, run and are done, as far as that is known now."""
        with self._lock:
            if self._thread is None and not self._over.is_set():
                self.looking = True
                self._thread = Thread(target=self._look, name="reactive_aio-spark-preparing", daemon=True)
                self._thread.start()
        return self._found

    def end(self) -> None:
        """Stop looking: partitions have begun, or the flow has ended."""
        with self._lock:
            self._over.set()

    def join(self) -> None:
        """Wait for the thread, which is ending."""
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        with suppress(Exception):  # the JVM is gone, and the one that waits for the jobs will say so
            while not self._over.is_set():
                self._found = tasks_before(self.context, self.group, prepared=self.prepared)
                self._over.wait(EVERY)
        self.looking = False
        self.ended()


def tasks_before(context: SparkContext, group: str, *, prepared: bool) -> TasksSnapshot:
    """Count the tasks that a group of jobs has before partitions. It takes calls into the JVM."""
    tracker: Any = context.statusTracker()
    total = running = done = 0
    for stage, needed in _stages_before(tracker, group, prepared=prepared).items():
        if (info := tracker.getStageInfo(stage)) is not None:
            # A job that is over did not need the stages that it has not run.
            total += info.numTasks if needed else info.numCompletedTasks
            running += info.numActiveTasks
            done += info.numCompletedTasks
    if prepared and not (running or done):
        total = 0  # they may turn out not to be needed, because an earlier job has run them
    return TasksSnapshot(total, running, done, preparing=True)


def _stages_before(tracker: Any, group: str, *, prepared: bool) -> dict[int, bool]:
    """Return the stages, and whether all their tasks are needed, each once: jobs have some in common."""
    stages: dict[int, bool] = {}
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        if info is None:  # it has been forgotten
            continue
        before, goes_on = sorted(info.stageIds), info.status == "RUNNING"
        if prepared:
            last = tracker.getStageInfo(before.pop())
            if not goes_on or (last is not None and last.numActiveTasks):
                continue
        stages.update(dict.fromkeys(before, goes_on))
    return stages
