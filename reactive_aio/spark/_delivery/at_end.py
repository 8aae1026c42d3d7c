"""Delivery in order of what comes at the ends of partitions, such as one sum of each.

A task that has nothing to send before its end needs next to no room for what it sends before its turn. So as many
run as there are slots, not only a few. They are combined in the order of the partitions all the same, for that makes the
result the same each time.
"""

from __future__ import annotations

from collections import deque

from attrs import define

from .ordered import OrderedDelivery


@define(eq=False)
class DeliveryAtEnd(OrderedDelivery):
    """One partition after the other. Each has been worked on before its turn."""

    def plan(self, slots: int) -> None:
        """Run on all slots but one, as a subscriber may be waiting for another job; share an eighth as ever."""
        self._waiting = [deque() for _ in self.partitions]
        self._ahead = max(0, min(slots - 2, len(self.partitions) - 1, self.prefetch >> 3))
        self._share = (self.prefetch >> 3) // self._ahead if self._ahead else 0
