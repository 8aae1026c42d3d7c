"""Delivery: chunks of many tasks brought into one order, under one demand.

The partitions have their turn one after another. The one whose turn it is delivers as it receives. A few
ahead of it work already, each for a small share of what was requested, which waits here for its turn. All
shares together are less than the region keeps in reserve before it requests anew, so the partition in turn
can never starve.

A partition is over when its task has said so *and* Spark has confirmed the task: where Spark fails to read
the input of a task (lost shuffle files, say), Python sees it end early, and only Spark knows better.
"""

from __future__ import annotations

import pickle
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define, field

from ..errors import SparkJobError
from .failures import unpack

if TYPE_CHECKING:
    from ..segments import Inlet
    from .link import Link


@define(eq=False)
class Partition:
    """What is known on the loop of a part of the data."""

    index: int
    arrived: int = 0
    """Elements that have arrived; a later attempt of the task goes on behind them."""
    waiting: deque[bytes] = field(factory=deque[bytes])
    """Chunks that wait for their turn; bounded by what was granted ahead."""
    link: Link | None = None
    others: deque[Link] = field(factory=deque["Link"])
    """Further attempts of the task, which wait to see whether the first is lost; Spark bounds them."""
    ended: bool = False
    begun: bool = False
    """Whether its task has been running."""
    confirmed: bool = False
    failure: Exception | None = None


class Work(Protocol):
    """What the delivery asks of the job."""

    def run(self, partition: int) -> None:
        """Have a task run for a partition."""

    def finish(self, error: Exception | None) -> None:
        """Signal the end of the stream."""


@define(eq=False)
class Delivery:
    """The order of the partitions, and the account of what was requested; a Listener of the links."""

    inlet: Inlet[Any]
    work: Work
    prefetch: int
    _partitions: list[Partition] = field(init=False, factory=list[Partition])
    _turn: int = field(init=False, default=0)
    _ahead: int = field(init=False, default=0)
    _asked: int = field(init=False, default=0)
    """The partitions for which a task has been asked for."""
    _share: int = field(init=False, default=0)
    _free: int = field(init=False, default=0)
    """Elements that were requested and that no task has been granted."""
    over: bool = field(init=False, default=False)

    def begin(self, partitions: int, ahead: int) -> None:
        """Start on the first partition, to have ``ahead`` more running beside the one whose turn it is."""
        self._partitions = [Partition(index) for index in range(partitions)]
        self._ahead = ahead
        # An eighth: the region requests anew while a quarter is still outstanding.
        self._share = (self.prefetch >> 3) // ahead if ahead else 0
        self._ask()
        self._advance()

    def request(self, n: int) -> None:
        """Let tasks send ``n`` more elements."""
        self._free += n
        self._grant()

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
        self._ask()

    def chunk(self, link: Link, count: int, data: bytes) -> None:
        """Pass elements on, or keep them until it is their turn."""
        partition = self._partition(link)
        if partition is None or partition.link is not link:
            return
        partition.arrived += count
        partition.waiting.append(data)
        self._advance()

    def failed(self, link: Link, data: bytes) -> None:
        """Take the failure of a function."""
        partition = self._partition(link)
        link.stop()
        if partition is not None and partition.link is link and partition.failure is None:
            partition.failure = unpack(data)
            self._release(partition, link)
            self._advance()

    def ended(self, link: Link) -> None:
        """Note that all elements of a partition have come, if Spark confirms it."""
        partition = self._partition(link)
        link.stop()
        if partition is not None:
            partition.ended = True
            self._release(partition, link)

    def lost(self, link: Link) -> None:
        """Let the next attempt take over; there may be none yet, or ever."""
        partition = self._partition(link)
        if partition is not None:
            self._release(partition, link)

    def _release(self, partition: Partition, link: Link) -> None:
        """Count on an attempt no more, and grant to others what it will not use."""
        if partition.link is link:
            partition.link = None
            self._free += link.granted
            link.granted = 0
            if partition.others and partition.failure is None:
                self._adopt(partition, partition.others.popleft())
            self._grant()
        elif link in partition.others:
            partition.others.remove(link)

    # -- what Spark says

    def confirmed(self, index: int) -> None:
        """Note that the task of a partition has succeeded."""
        if not self.over:
            self._partitions[index].confirmed = True
            self._advance()
            self._ask()

    def job_failed(self, index: int, error: Exception) -> None:
        """Take the failure of a job, which stays behind what came of earlier partitions."""
        if not self.over and self._partitions[index].failure is None:
            self._partitions[index].failure = error
            self._advance()

    # -- order

    def _partition(self, link: Link) -> Partition | None:
        """Give the partition of a connection, unless it is over."""
        if self.over or not self._turn <= link.partition < len(self._partitions):
            return None
        return self._partitions[link.partition]

    def _advance(self) -> None:
        """Deliver what it is the turn of."""
        while not self.over:
            if self._turn == len(self._partitions):
                self.work.finish(None)
                return
            partition = self._partitions[self._turn]
            while partition.waiting:
                self._deliver(partition.waiting.popleft())
                if self.over:
                    return
            if partition.failure is not None:
                self.work.finish(partition.failure)
            elif not partition.confirmed:
                return
            elif not partition.ended and partition.arrived:
                self.work.finish(SparkJobError(f"Spark took partition {self._turn} for done, but it had not ended"))
            else:
                self._next_turn()

    def _next_turn(self) -> None:
        partition = self._partitions[self._turn]
        for link in filter(None, (partition.link, *partition.others)):
            link.stop()  # an attempt that Spark no longer needs
        self._turn += 1
        self._ask()
        self._grant()

    def _ask(self) -> None:
        """Have the next partitions run, each when the one before it has a slot of the cluster.

        Else those ahead might take all slots, for this flow or several, and those in turn find none.
        """
        while not self.over and self._asked < min(len(self._partitions), self._turn + self._ahead + 1):
            before = self._partitions[self._asked - 1] if self._asked else None
            if before is not None and not before.begun and not before.confirmed:
                return
            self._asked += 1
            self.work.run(self._asked - 1)

    def _deliver(self, data: bytes) -> None:
        try:
            items = pickle.loads(data)
        except Exception as error:
            error.add_note("while elements that came from Spark were unpickled")
            self.work.finish(error)
        else:
            self.inlet.on_chunk(items)

    # -- credit

    def _adopt(self, partition: Partition, link: Link) -> None:
        partition.link = link
        link.start(partition.arrived)
        self._grant()

    def _grant(self) -> None:
        """Grant what is free: their shares to those ahead, the rest to the partition whose turn it is."""
        if self.over:
            return
        for partition in self._partitions[self._turn + 1 : self._turn + 1 + self._ahead]:
            link = partition.link
            if link is not None:
                self._grant_to(link, min(self._free, self._share - partition.arrived - link.granted))
        if self._turn < len(self._partitions):
            link = self._partitions[self._turn].link
            if link is not None:
                self._grant_to(link, self._free)

    def _grant_to(self, link: Link, n: int) -> None:
        if n > 0:
            self._free -= n
            link.grant(n)
