"""A line in the log when flows hold all slots of a cluster, and nobody reads them.

A subscriber that waits for a job of Spark then waits for ever, since the job finds no slot. That may be the job that
writes a batch of ``to_spark``. Nothing can be taken from the flows, so all that can be done is to say it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from attrs import define, field

from .slots import Seat

TOLD_AFTER: Final = 5.0
"""Seconds without demand after which the flows are named."""
PARTS: Final = 4
"""The looks in these seconds. Each is a turn of the loop, so that a loop which is blocked does not count."""

_logger = logging.getLogger("reactive_aio")


@define(eq=False)
class IdleSlots:
    """Looks at the slots from the time when the flow of a seat has taken the last one."""

    seat: Seat
    loop: asyncio.AbstractEventLoop
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)
    _requests: int = field(init=False, default=-1)
    """The requests to all flows, as of the latest look."""
    _looks: int = field(init=False, default=0)
    """The looks that have found all slots waiting, and no request since the first of them."""

    def watch(self) -> None:
        """Begin to look, if all slots are taken. The flow that takes the last one calls this, so one flow looks."""
        if self._timer is None and self.seat.slots.are_taken():
            self._requests, self._looks = -1, 0
            self._look()

    def stop(self) -> None:
        """Look no more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _look(self) -> None:
        self._timer = None
        slots = self.seat.slots
        if not slots.are_taken():
            return
        requests, waits = slots.requests(), slots.all_wait()
        self._looks = self._looks + 1 if waits and requests == self._requests else 0
        self._requests = requests
        if self._looks < PARTS:
            self._timer = self.loop.call_later(TOLD_AFTER / PARTS, self._look)
        elif names := slots.to_be_named():
            _logger.warning(
                "flows hold all slots of the cluster (%d), and nobody has requested anything from them for %g s: %s. If their "
                "subscribers wait for Spark jobs, such as the batches of to_spark(), these find no slot and never begin. Give Spark "
                "one slot more than all flows hold (local[%d]), or write by to_spark(size=None)",
                slots.total, TOLD_AFTER, "; ".join(names), slots.total + 1,
            )  # fmt: skip
