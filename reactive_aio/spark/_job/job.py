"""The job behind a subscription: every call into the JVM, on threads of its own.

A call into the JVM blocks, so none is made on the event loop. There is one thread for each partition that
runs at a time. Each partition is a Spark job of its own, so that we and not Spark decide how many slots of the
cluster are taken. In one job for all, the partitions would take every slot there is and hold it while they wait
for demand. And then one of them that has to be retried, or another job that the subscriber waits for, finds none.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import define, field, frozen

from ..._core.containers import new_dict, new_list
from ..._core.guard import FAILURES
from ...errors import SparkJobError
from .._task.connecting import Address, listen, unreachable
from .._task.pickling import NotPickled
from .calls import cancel_group, group_name
from .computation import Computation, Gathered, Group
from .local_properties import NO_PROPERTIES, LocalProperties, activate
from .once import once_for_each, scala_context
from .told import failure_of, text_of

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

GRACE: Final = 0.05
AGAIN: Final = 0.05
"""Seconds after which the group is cancelled once more, until its threads have ended."""

SPECULATES: Final = "spark.speculation.task.duration.threshold"
"""The setting with which Spark begins a second attempt of a job's only task."""


@frozen
class Prepared:
    """The facts that are known once the JVM has been asked."""

    listening: socket.socket
    partitions: int
    slots: int
    """The tasks that run at a time in the cluster."""
    gathers: bool = False
    """Whether a task can read several partitions."""


class Events(Protocol):
    """The receiver of the job's events, on the event loop."""

    def prepared(self, prepared: Prepared) -> None:
        """The job can begin, as soon as the socket is listening."""

    def not_prepared(self, error: BaseException) -> None:
        """The job can't begin."""

    def confirmed(self, partition: int) -> None:
        """Spark says that the task of a partition has succeeded."""

    def job_failed(self, partition: int, error: BaseException) -> None:
        """Spark has given up on a partition."""

    def threads_ended(self) -> None:
        """Nothing of the job is left."""


@define(eq=False)
class Job:
    """The threads of one subscription."""

    context: SparkContext
    name: str
    compute: Callable[[Address], Computation]
    """Makes the computation whose partitions are to run. Its argument is the address for the tasks. It is called on a thread."""
    events: Events
    post: Callable[[Callable[[Any], None], Any], None]
    properties: LocalProperties = NO_PROPERTIES
    """Of the thread that made the flow."""
    grace: float = GRACE
    """Seconds for tasks to end by themselves before they are killed, which costs Spark its Python workers."""
    session: SparkSession | None = None
    """The session in which the jobs run; None for those of an RDD."""
    secret: bytes = field(init=False, factory=lambda: secrets.token_bytes(32))
    group: str = field(init=False, factory=group_name)
    """The name by which its jobs are known."""
    _todo: SimpleQueue[Callable[[], None] | None] = field(init=False, factory=SimpleQueue["Callable[[], None] | None"])
    _threads: list[Thread] = field(init=False, factory=new_list)
    _left: int = field(init=False, default=0)
    _working: int = field(init=False, default=0)
    """The threads but the one that cancels."""
    _busy: int = field(init=False, default=0)
    """The calls that threads make or are to make."""
    _stopping: Event = field(init=False, factory=Event)
    _ended: Event = field(init=False, factory=Event)
    _computation: Computation | None = field(init=False, default=None)
    _grouped: dict[int, tuple[Any, int]] = field(init=False, factory=new_dict)
    """For the first partition of each group, the JavaRDD and the number of its task there."""

    # -- on the loop

    def start(self) -> None:
        """Start the first thread."""
        self._start(self._lead)

    def run(self, partition: int) -> None:
        """Run a partition, with its group if it is the first of one."""
        self._do(partial(self._try, partition))

    def gather(self, first: int, groups: Sequence[Group], gathered: Callable[[Sequence[Group] | None], None]) -> None:
        """Make ready tasks that read a group of partitions each, and from ``first`` on no others.

        Then ``gathered`` is called, with None if there can be no such tasks.
        """
        self._do(partial(self._gather, first, groups, gathered))

    def _do(self, work: Callable[[], None]) -> None:
        """Do something on an idle thread, or on a new one."""
        self._busy += 1
        if self._busy > self._working:
            self._start(self._work)
        self._todo.put(work)

    def stop(self, *, cancel: bool) -> None:
        """Run no more; with ``cancel`` see to it that what runs is stopped as well."""
        self._stopping.set()
        for _ in self._threads:
            self._todo.put(None)
        if cancel and not self._ended.is_set():
            self._start(self._cancel, working=False)

    def join(self) -> None:
        """Wait for the threads, which have nothing left to do, to end."""
        for thread in self._threads:
            thread.join()

    def _start(self, work: Callable[[], None], *, working: bool = True) -> None:
        self._left += 1
        self._working += working
        name = f"reactive_aio-spark-{len(self._threads)}"
        thread = Thread(target=self._guarded, args=(work, working), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _done(self, outcome: tuple[int, BaseException | None]) -> None:
        partition, error = outcome
        self._busy -= 1
        if error is None:
            self.events.confirmed(partition)
        else:
            self.events.job_failed(partition, error)

    def _made_ready(self, tell: Callable[[], None]) -> None:
        self._busy -= 1
        tell()

    def _thread_ended(self, working: bool) -> None:
        self._left -= 1
        self._working -= working
        if not self._working:
            self._ended.set()
        if not self._left:
            self.events.threads_ended()

    # -- on the threads

    def _guarded(self, work: Callable[[], None], working: bool) -> None:
        try:
            work()
        finally:
            self.post(self._thread_ended, working)

    def _lead(self) -> None:
        try:
            prepared = self._prepare()
        except NotPickled as failed:
            self.post(self.events.not_prepared, failed.error)
        except FAILURES as error:
            self.post(self.events.not_prepared, self._failure(error))
        else:
            self.post(self.events.prepared, prepared)
            self._loop()

    def _prepare(self) -> Prepared:
        context = self.context
        if self.session is not None:
            self.properties = self.properties.with_settings(self.session)
        self._enter()
        listening, host = listen(context)
        try:
            if self._stopping.is_set():
                raise SparkJobError("stopped")  # nobody will hear of it
            made = self._computation = self.compute(Address(host, listening.getsockname()[1], self.secret))
            partitions: int = made.java_rdd.getNumPartitions()
            return Prepared(listening, partitions, _slots(context), made.gather is not None)
        except BaseException:
            listening.close()
            raise

    def _work(self) -> None:
        self._enter()
        self._loop()

    def _loop(self) -> None:
        while (work := self._todo.get()) is not None and not self._stopping.is_set():
            work()

    def _try(self, partition: int) -> None:
        try:
            self._run(partition)
        except FAILURES as error:
            self.post(self._done, (partition, self._failure(error)))
        else:
            self.post(self._done, (partition, None))

    def _gather(self, first: int, groups: Sequence[Group], gathered: Callable[[Sequence[Group] | None], None]) -> None:
        """Make the tasks of groups ready. Where that fails, partitions are read by a task each, as before."""
        for at in [at for at in self._grouped if at >= first]:
            del self._grouped[at]
        made: Gathered | None = None
        with suppress(Exception):  # the JVM is gone, and the next task will say so; or it has no such methods
            if groups and self._computation is not None and self._computation.gather is not None:
                made = self._computation.gather(groups)
        if made is not None:
            found = enumerate(made.groups)
            self._grouped.update((group.start, (made.java_rdd, number)) for number, group in found)
        self.post(self._made_ready, partial(gathered, made.groups if made else None if groups else ()))

    def _enter(self) -> None:
        """Set the local properties and the session of this thread's jobs, and put them into the group, by which they can be cancelled."""
        self.properties.enter(self.context)
        if self.session is not None:
            activate(self.session)
        self.context.setJobGroup(self.group, f"reactive_aio: {self.name}")

    def _run(self, partition: int) -> None:
        """Run the job of one partition. It has no results, for the elements take the other way.

        SparkContext.runJob would pickle a function each time, would need a second Python worker for each task of a
        DataFrame, and would serve the results on a socket.
        """
        assert self._computation is not None
        rdd, number = self._grouped.get(partition, (self._computation.java_rdd, partition))
        rdd.collectPartitions(_known(self.context).ints(number).toArray())

    def _failure(self, error: BaseException) -> BaseException:
        """Return the failure to report; on this thread, because it calls into the JVM."""
        if not isinstance(error, Exception):
            return error  # only a function that is pickled raises anything but an Exception, and not Spark
        if self._stopping.is_set():
            return SparkJobError("stopped")  # nobody will hear of it
        if (cut_off := unreachable(text_of(error))) is not None:
            cut_off.__cause__ = error
            return cut_off
        return failure_of(f"the Spark job of {self.name} failed", error, self.context)

    def _cancel(self) -> None:
        """Cancel the jobs of the group, until no thread is left that may begin one.

        Once is not enough. Spark refuses future jobs of a cancelled group, but not the stages that adaptive execution
        runs one by one while a shuffle is prepared. Such a stage may begin at any time before its call returns.
        """
        wait = self.grace
        while not self._ended.wait(wait) and self._is_at_work():
            with suppress(Exception):  # the JVM is gone, and the threads will notice
                cancel_group(self.context, self.group)
            wait = AGAIN

    def _is_at_work(self) -> bool:
        """Return whether other threads are alive. A loop that has been closed hears of no end."""
        return any(thread.is_alive() for thread in self._threads if thread is not current_thread())


@frozen(eq=False)
class Known:
    """The objects and methods of a context that jobs use."""

    ints: Any
    """Makes a stream of a number. An array can be made of it."""
    profile: Any
    """The resources of a task that asks for nothing special."""
    speculates: bool
    """Whether Spark begins a second attempt of a job's only task."""


@once_for_each
def _known(context: SparkContext) -> Known:
    own: Any = context
    java = scala_context(context)
    profile, conf = java.resourceProfileManager().defaultResourceProfile(), java.conf()
    speculates = conf.getBoolean("spark.speculation", False) and conf.contains(SPECULATES)
    return Known(own._jvm.java.util.stream.IntStream.of, profile, speculates)


def _slots(context: Any) -> int:
    """Ask how many tasks of flows may run at a time. ``defaultParallelism`` may have been set to any number."""
    from py4j.protocol import Py4JError

    try:
        known = _known(context)
        slots: int = scala_context(context).maxNumConcurrentTasks(known.profile)
        if known.speculates:  # a second attempt holds another slot while it waits for the first
            slots = max(1, slots // 2)
    except Py4JError:  # not of Spark's public interface, and it may change
        slots = context.defaultParallelism
    return slots
