"""Delivery without order: all running partitions deliver at the same time.

Each task may have a *window* of elements outstanding, refilled from what is free when half of it has been
used. The windows of all tasks but one are at most the quarter that the region keeps in reserve before it
requests anew. So a task is never short of credit because others hold credit that they don't use, however
slow they are. And what a finished task held goes to the rest, whose windows grow as fewer are left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from ...spec import quarter
from .delivery import Delivery, Partition

if TYPE_CHECKING:
    from ..._remote.frames import Frame
    from .link import Link


@define(eq=False)
class UnorderedDelivery(Delivery):
    """The partitions side by side, each in its own order."""

    _width: int = field(init=False, default=1)
    """The partitions that may run at a time."""
    _window: int = field(init=False, default=0)

    def plan(self, slots: int) -> None:
        """Take as many slots as there are, but one: a subscriber may be waiting for another job."""
        self._width = max(1, slots - 1)
        self._resize()

    def _resize(self) -> None:
        others = min(self._width, self.left) - 1
        self._window = max(1, quarter(self.prefetch) // others) if others > 0 else self.prefetch

    @property
    def side_by_side(self) -> int:
        """As many as there may be slots for."""
        return self._width

    def may_ask(self) -> bool:
        """Run one for each slot that there may be: any of them goes on while the others wait."""
        return self.at_work < self._width

    def take(self, partition: Partition, link: Link, frame: Frame) -> None:
        """Refill the window, so that the task can go on meanwhile, and pass elements on."""
        self._refill(partition, link)
        self.deliver(frame)

    def settle(self, partition: Partition) -> None:
        """End with the first failure, or with the last partition."""
        if (error := partition.end) is not None:
            self.work.finish(error)
            return
        self.close(partition)
        if self.left:
            self._resize()
            self.grant()
        else:
            self.work.finish(None)

    def grant(self) -> None:
        """Refill all windows; where there is too little for all, first those whose turn is the longest ago."""
        if not self.over:
            for partition in tuple(self.running.values()):
                if (link := partition.link) is not None:
                    self._refill(partition, link)

        self.make_room()

    def make_room(self) -> None:
        """Allow each task as much, and all but one no more than a quarter together."""
        others = min(self._width, self.left) - 1
        share = max(1, quarter(self.most_bytes) // others) if others > 0 else self.most_bytes
        for partition in self.running.values():
            if (link := partition.link) is not None and 2 * link.room <= share:
                self.allow(link, share - link.room)

    def _refill(self, partition: Partition, link: Link) -> None:
        missing = self._window - link.granted
        if self.free and 2 * missing >= self._window:
            self.running[partition.index] = self.running.pop(partition.index)  # to the end
            self.grant_to(link, missing)
