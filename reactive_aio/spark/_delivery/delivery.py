"""Delivery: chunks of many tasks brought to one subscriber, under one demand.

The common part of delivery in order and as it comes: the attempts of each task, the credits they hold, and how a
partition ends.

A partition is over when its task has said so *and* Spark has confirmed the task. Where Spark fails to read the input of
a task (lost shuffle files, say), Python sees it end early, and only Spark knows better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define, field

from ..._core.containers import new_deque, new_dict, new_list
from ..._remote.failures import unpack
from ..._remote.limit import MOST_BYTES
from ...errors import SparkJobError
from .._task.failures import loaded
from .gathering import fitting, groups, worth
from .held import Held

if TYPE_CHECKING:
    from ..._plan import Inlet
    from ..._remote.frames import Frame
    from .link import Link


@define(eq=False)
class Partition:
    """The state of a part of the data, as it is known on the loop: a partition, or some that one task reads."""

    index: int
    """The number of the first partition."""
    count: int = 1
    """The partitions that its task reads."""
    arrived: int = 0
    """Elements that have arrived. A later attempt of the task goes on after them."""
    link: Link | None = None
    size: int = 0
    """Bytes of those elements."""
    others: deque[Link] = field(factory=new_deque)
    """Further attempts of the task, which wait to see whether the first is lost. Spark bounds them."""
    begun: bool = False
    """Whether its task has been running."""
    placed: bool = False
    """Whether its task got the place where it begins, and so has to report how far it has come."""
    passed: int = 0
    """Elements that have come to the stage that is done in turn."""
    seconds: float = 0
    """The time for which its task was at work, and did not wait for demand."""
    decided: bool = False
    """Whether it needed no more, so that later partitions do not matter."""
    ended: bool = False
    """Whether its task has said that this was all."""
    confirmed: bool = False
    failure: BaseException | None = None
    over: bool = False
    """Whether all of it has been delivered."""

    @property
    def end(self) -> BaseException | None:
        """The end of a partition that has failed or been confirmed."""
        if self.failure is None and (self.arrived or self.placed) and not self.ended:
            return SparkJobError(f"Spark reports that partition {self.index} is done, but its end has not arrived")
        return self.failure


class Work(Protocol):
    """The methods of the job that the delivery calls."""

    def run(self, partition: int) -> bool:
        """Run a task for a partition. Return False if that has to wait, until `Delivery.ask` is called."""
        ...

    def gather(self, first: int, groups: Sequence[range]) -> None:
        """Read groups of partitions, and no others from ``first`` on, by a task each. Then call `Delivery.gathered`."""

    def finish(self, error: BaseException | None) -> None:
        """Signal the end of the stream."""


@define(eq=False)
class Delivery(ABC):
    """The account of what was requested and of what the tasks have sent; a Listener of the links."""

    inlet: Inlet[Any]
    work: Work
    prefetch: int
    most_bytes: int = MOST_BYTES
    """Bytes that may be under way or wait here, and a chunk of each task beyond."""
    partitions: list[Partition] = field(init=False, factory=new_list)
    """By the numbers of their partitions. Where a task reads several, the first stands for all of them."""
    running: dict[int, Partition] = field(init=False, factory=new_dict)
    """The partitions whose tasks are connected."""
    asked: int = field(init=False, default=0)
    """The partitions whose task has been requested, in their order."""
    last_asked: Partition | None = field(init=False, default=None)
    at_work: int = field(init=False, default=0)
    """The requested tasks whose partitions are not over."""
    left: int = field(init=False, default=0)
    """The tasks whose partitions are not over, with those to be requested."""
    gathers: bool = field(init=False, default=False)
    """Whether a task can read several partitions."""
    gathering: bool = field(init=False, default=False)
    """Whether such tasks are being prepared, and no other is requested."""
    size: int = field(init=False, default=1)
    """The partitions that the next tasks read."""
    free: int = field(init=False, default=0)
    """Elements that were requested and that no task has been granted."""
    room: int = field(init=False)
    """Bytes that no task has been granted, and that are not those of waiting or held elements."""
    held: Held = field(init=False, factory=Held)
    """Elements that have been delivered and not been consumed."""
    over: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.room = self.most_bytes

    def begin(self, partitions: int, slots: int, *, gathers: bool = False) -> None:
        """Start on the first partitions; ``slots`` tasks run at a time in the whole cluster."""
        self.partitions = [Partition(index) for index in range(partitions)]
        self.left, self.gathers = partitions, gathers
        self.plan(slots)
        if not partitions:
            self.work.finish(None)
        self.ask()

    @property
    def leaves_some(self) -> bool:
        """Whether a partition is not read to its end, so that its task may still run."""
        return not all(partition.over for partition in self.partitions)

    @property
    def waiting(self) -> int:
        """The number of connected tasks that may send nothing. Any thread may ask."""
        links = [partition.link for partition in tuple(self.running.values())]
        return sum(link is not None and (link.granted <= 0 or link.room <= 0) for link in links)

    def request(self, n: int) -> None:
        """Let tasks send ``n`` more elements."""
        self.free += n
        self.grant()

    def consumed(self, n: int) -> None:
        """Take note that elements have been consumed, and let tasks send more bytes in place of theirs."""
        if freed := self.held.consume(n):
            self.room += freed
            if not self.over:
                self.make_room()

    def ask(self) -> None:
        """Run the next partitions, as far as allowed."""
        while not (self.over or self.gathering) and self.asked < len(self.partitions) and self.may_ask():
            if not self.work.run(self.asked):
                return
            self.last_asked = self.partitions[self.asked]
            self.asked += self.last_asked.count
            self.at_work += 1

    # -- several partitions for a task

    def _gather(self, partition: Partition) -> None:
        """Let the next tasks read as many partitions as are worth a task, by the time of this one."""
        if not self.gathers or self.gathering or self.over:
            return
        left = len(self.partitions) - self.asked
        size = fitting(partition.seconds, partition.count, left, self.side_by_side)
        if worth(size, self.size):
            self.gathering, self.size = True, size
            found = groups(self.asked, len(self.partitions), size) if size > 1 else []
            self.work.gather(self.asked, found)

    def gathered(self, groups: Sequence[range] | None) -> None:
        """Go on with tasks that read groups of partitions; None if there can be no such tasks."""
        self.gathering = False
        if groups is None:
            self.gathers, groups = False, []
        before = len(self._units(self.asked))
        for partition in self.partitions[self.asked :]:
            partition.count = 1
        for group in groups:
            self.partitions[group.start].count = len(group)
        self.left += len(self._units(self.asked)) - before
        self.ask()

    def _units(self, first: int, most: int | None = None) -> list[Partition]:
        """Return the partitions to request tasks for, from a partition on."""
        found: list[Partition] = []
        while first < len(self.partitions) and len(found) != most:
            found.append(self.partitions[first])
            first += found[-1].count
        return found

    # -- in which the two kinds of delivery differ

    @abstractmethod
    def plan(self, slots: int) -> None:
        """Decide how to share the credits, once the partitions are known."""

    @property
    @abstractmethod
    def side_by_side(self) -> int:
        """The tasks that run at a time."""

    @abstractmethod
    def may_ask(self) -> bool:
        """Return whether the next partition may have a task now."""

    @abstractmethod
    def take(self, partition: Partition, link: Link, frame: Frame) -> None:
        """Take elements that have arrived."""

    @abstractmethod
    def settle(self, partition: Partition) -> None:
        """Go on, now that a partition has failed or been confirmed."""

    @abstractmethod
    def grant(self) -> None:
        """Grant the free credits."""

    @abstractmethod
    def make_room(self) -> None:
        """Share the bytes that are free."""

    def start(self, partition: Partition, link: Link) -> None:
        """Begin an attempt after the elements that have arrived."""
        link.start(partition.arrived, 0)

    # -- what the tasks say

    def connected(self, link: Link) -> None:
        """Let an attempt begin, or wait until the one before it is lost."""
        partition = self._partition(link)
        if partition is None:
            link.stop()
            return
        if partition.link is None:
            self._adopt(partition, link)
        else:
            partition.others.append(link)
        partition.begun = True
        self.ask()

    def chunk(self, link: Link, frame: Frame) -> None:
        """Take elements, of the attempt that is listened to."""
        partition = self._partition(link)
        if partition is not None and partition.link is link:
            partition.arrived += frame.count
            partition.size += frame.size
            self.take(partition, link, frame)

    def failed(self, link: Link, data: bytes) -> None:
        """Take the failure of a function."""
        partition = self._partition(link)
        link.stop()
        if partition is not None and partition.link is link and partition.failure is None:
            partition.failure = unpack(data)
            self._release(partition, link)
            self.settle(partition)

    def cleanup_failed(self, data: bytes) -> None:
        """Pass on a failed cleanup of a stopped task."""
        self.inlet.cleanup_failed(unpack(data))

    def ended(self, link: Link, frame: Frame) -> None:
        """Note that all elements of a partition have come, if Spark confirms it."""
        partition = self._partition(link)
        link.stop()
        if partition is not None:
            partition.ended, partition.passed, partition.decided = True, frame.place, bool(frame.detail)
            partition.seconds = frame.count / 1e6
            self._release(partition, link)

    def lost(self, link: Link) -> None:
        """Let the next attempt take over, if there is one or will be."""
        partition = self._partition(link)
        if partition is not None:
            self._release(partition, link)

    def _partition(self, link: Link) -> Partition | None:
        """Return the partition of a connection, unless it is over."""
        if self.over or link.partition >= len(self.partitions):
            return None
        partition = self.partitions[link.partition]
        return None if partition.over else partition

    def _adopt(self, partition: Partition, link: Link) -> None:
        partition.link = link
        self.running[partition.index] = partition
        self.start(partition, link)
        self.grant()

    def _release(self, partition: Partition, link: Link) -> None:
        """Count on an attempt no more, and grant to others what it will not use."""
        if partition.link is link:
            self._take_back(partition, link)
            if partition.others and partition.failure is None:
                self._adopt(partition, partition.others.popleft())
            self.grant()
        elif link in partition.others:
            partition.others.remove(link)

    def _take_back(self, partition: Partition, link: Link) -> None:
        """Listen to an attempt no more, and free the credits that it was granted."""
        partition.link = None
        del self.running[partition.index]
        self.free += link.granted
        self.room += link.room
        link.granted = link.room = 0

    # -- what Spark says

    def confirmed(self, index: int) -> None:
        """Note that the task of a partition has succeeded."""
        if not self.over:
            partition = self.partitions[index]
            partition.confirmed = True
            if partition.ended:
                self._gather(partition)  # before the next task is asked for
            self.settle(partition)
            self.ask()

    def job_failed(self, index: int, error: BaseException) -> None:
        """Take the failure of a job, which comes after the elements before it."""
        partition = self.partitions[index]
        if not self.over and partition.failure is None:
            partition.failure = error
            self.settle(partition)

    # -- what both do

    def deliver(self, frame: Frame) -> None:
        """Pass a chunk on, as far as it can be unpickled."""
        items, failure = loaded(frame)
        self.held.deliver(len(items), frame.size)
        if items:
            self.inlet.on_chunk(items)
        if failure is not None and not self.over:  # else nobody wants the element any more
            self.work.finish(failure)

    def close(self, partition: Partition) -> None:
        """Close a partition, and stop the attempts that Spark no longer needs."""
        for each in self.partitions[partition.index : partition.index + partition.count]:
            each.over = True
        self.at_work -= 1
        self.left -= 1
        if partition.link is not None:  # it has taken over where the one before was at its end
            partition.others.append(partition.link)
            self._take_back(partition, partition.link)
        for link in partition.others:
            link.stop()

    def grant_to(self, link: Link, n: int) -> None:
        """Grant a task some of the free credits."""
        n = min(n, self.free)
        if n > 0:
            self.free -= n
            link.grant(n)

    def allow(self, link: Link, size: int, *, needed: bool = True) -> None:
        """Allow a task some of the bytes that are free, and not by driblets.

        Where nothing is held here, and so nothing would be set free, one that is ``needed`` may send a chunk, however
        large that is. Otherwise an element larger than the bound would never come.
        """
        size = min(size, self.room)
        if needed and link.room <= 0 and size <= 0 and not self.held.size:
            size = 1 - link.room
        if size > 0 and (8 * size >= self.most_bytes or link.room <= 0):
            self.room -= size
            link.allow(size)
