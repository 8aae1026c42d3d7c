"""Delivery in order where each partition has to know how many elements came before it.

The partition whose turn it is tells so at its end. Those ahead of it have connected by then, and wait to hear where they
begin. So their tasks are started ahead of their turn, and none of their elements is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from .ordered import OrderedDelivery

if TYPE_CHECKING:
    from .delivery import Partition
    from .link import Link


@define(eq=False)
class DeliveryInTurn(OrderedDelivery):
    """One partition after the other. Each begins where the one before it has ended."""

    _place: int = field(init=False, default=0)
    """The number of elements that came to the stage in turn, in the partitions before the current one."""

    def plan(self, slots: int) -> None:
        """Share nothing with those ahead."""
        super().plan(slots)
        self._share = 0

    def start(self, partition: Partition, link: Link) -> None:
        """Begin an attempt, or let it wait for its turn. Each attempt begins at the same place."""
        if partition.index == self._turn:
            partition.placed = True
            link.start(partition.arrived, self._place)

    def take_turn(self, partition: Partition) -> None:
        """Begin the task that has waited for this."""
        if partition.link is not None:
            self.start(partition, partition.link)

    def _next_turn(self, partition: Partition) -> None:
        """Count on, or end if nothing after the partition matters, because its remaining elements are not counted."""
        if partition.decided:
            self.close(partition)
            self.work.finish(None)
            return
        self._place += partition.passed
        super()._next_turn(partition)
