"""Delivery in the order of the partitions.

The partitions have their turn one after another. The one whose turn it is delivers as it receives. A few
ahead of it work already, each for a small share of what was requested, which waits here for its turn. All
shares together are less than the region keeps in reserve before it requests anew, so the partition in turn
can never starve.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from attrs import define, field

from ..._core.containers import new_list
from .delivery import Delivery, Partition

if TYPE_CHECKING:
    from ..._remote.frames import Frame
    from .link import Link

MOST_AHEAD: Final = 3
"""Partitions that run at most beside the one whose turn it is."""


@define(eq=False)
class OrderedDelivery(Delivery):
    """One partition after the other."""

    _turn: int = field(init=False, default=0)
    _ahead: int = field(init=False, default=0)
    """Partitions that run beside the one whose turn it is."""
    _share: int = field(init=False, default=0)
    """Elements that each of them may send before its turn."""
    _waiting: list[deque[Frame]] = field(init=False, factory=new_list)
    """For each partition the chunks that wait for its turn; bounded by its share."""

    def plan(self, slots: int) -> None:
        """Share an eighth with those ahead: the region requests anew while a quarter is still outstanding."""
        self._waiting = [deque() for _ in self.partitions]
        self._ahead = max(0, min(MOST_AHEAD, slots - 2, len(self.partitions) - 1))
        self._share = (self.prefetch >> 3) // self._ahead if self._ahead else 0

    @property
    def side_by_side(self) -> int:
        """Those ahead, and the one whose turn it is."""
        return 1 + self._ahead

    def may_ask(self) -> bool:
        """Start a partition only when the one before it has a slot. Otherwise those ahead might take all slots of the cluster."""
        if self.at_work > self._ahead:
            return False
        before = self.last_asked
        return before is None or before.begun or before.confirmed

    def _those_ahead(self) -> list[Partition]:
        """Return the partitions that may run beside the one whose turn it is."""
        return self._units(self._turn, 1 + self._ahead)[1:]

    def take(self, partition: Partition, link: Link, frame: Frame) -> None:
        """Pass elements on, or keep them until it is their turn."""
        self._waiting[partition.index].append(frame)
        self._advance()

    def settle(self, partition: Partition) -> None:
        """Go on if it was the turn of this partition."""
        self._advance()

    def _advance(self) -> None:
        """Deliver what it is the turn of."""
        while not self.over:
            if self._turn == len(self.partitions):
                self.work.finish(None)
                return
            partition, waiting = self.partitions[self._turn], self._waiting[self._turn]
            while waiting:
                self.deliver(waiting.popleft())
                if self.over:
                    return
            if partition.failure is None and not partition.confirmed:
                return
            if (error := partition.end) is not None:
                self.work.finish(error)
            else:
                self._next_turn(partition)

    def _next_turn(self, partition: Partition) -> None:
        self.close(partition)
        self._turn += partition.count
        if self._turn < len(self.partitions):
            self.take_turn(self.partitions[self._turn])
        self.ask()
        self.grant()

    def take_turn(self, partition: Partition) -> None:
        """Note that it is the turn of a partition, before it is granted anything."""

    def grant(self) -> None:
        """Grant their shares to the partitions ahead, and the rest to the current one.

        The shares of those whose tasks are still to connect are kept for them. Otherwise the one whose turn it is would
        have it all by then, and they would begin when it ends.
        """
        if self.over:
            return
        kept = 0
        for partition in self._those_ahead():
            if (link := partition.link) is not None:
                self.grant_to(link, self._share - partition.arrived - link.granted)
            elif not partition.ended:
                kept += max(0, self._share - partition.arrived)
        if self._turn < len(self.partitions) and (link := self.partitions[self._turn].link) is not None:
            self.grant_to(link, self.free - kept)
        self.make_room()

    def make_room(self) -> None:
        """Grant the partitions ahead a share of an eighth of the bytes, and the current one the rest."""
        kept = 0
        share = (self.most_bytes >> 3) // max(1, self._ahead)
        for partition in self._those_ahead():
            if (link := partition.link) is not None:
                self.allow(link, share - partition.size - link.room, needed=False)
            elif not partition.ended:
                kept += max(0, share - partition.size)
        if self._turn < len(self.partitions) and (link := self.partitions[self._turn].link) is not None:
            self.allow(link, self.room - kept)
