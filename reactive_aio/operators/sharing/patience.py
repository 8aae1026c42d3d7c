"""A limit for how long the others wait for a slow reader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import define, field

from ..._core.containers import new_dict, new_set
from ...errors import SlowSubscriberError
from .delivery import Delivery, soon
from .reader import Reader

if TYPE_CHECKING:
    from .broadcast import Broadcast, Then

PARTS: Final = 4
"""In how many parts a time is counted."""

TOLD_AFTER: Final = 5.0
"""Seconds after which a line in the log names a reader that holds up the others, without eviction."""

_logger = logging.getLogger("reactive_aio")


@define(eq=False)
class Watch:
    """A time limit, from the moment when a reader had to wait."""

    mark: int
    """The number of elements at the time. A reader that has not taken these when the time is up is too slow."""
    joined: int
    """The number of readers that had come."""
    asked: set[Delivery] = field(init=False, factory=new_set)
    """Those whose event loops are to have a turn, and have not."""
    seen: set[Delivery] = field(init=False, factory=new_set)
    """Those whose event loops have had one since the latest part."""
    parts: dict[Reader, int] = field(init=False, factory=new_dict)
    """The number of parts that count for a reader."""

    def count(self, readers: Iterable[Reader]) -> list[Reader]:
        """Count a part that is over. Return the readers for which the time is up."""
        seen, self.seen = self.seen, set()
        slow: list[Reader] = []
        for reader in readers:
            if (
                reader.cursor.at < self.mark
                and reader.number <= self.joined
                and reader.delivery in seen
                and not reader.waits
            ):
                parts = self.parts[reader] = self.parts.get(reader, 0) + 1
                if parts >= PARTS:
                    slow.append(reader)
        return slow


@define(eq=False)
class Patience:
    """Bounds how long readers wait for others that have not taken their elements.

    ::

        somebody has to wait ──► WATCHING ──nobody has to any more──► OVER
                                    │ └── all have taken what there was: the time begins anew
                                    └──── the time is up: the slow ones are evicted

    The time is that of an event loop on which somebody reads. It is counted in parts. A part counts for a reader when its event loop has had
    a turn since the one before, and it does not wait for an element itself. So a reader is not to blame for a loop that is blocked, or busy
    with the others. The time is no more exact than a part where somebody waits again and again.
    """

    broadcast: Broadcast
    loop: asyncio.AbstractEventLoop
    evict_after: float | None
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)

    @classmethod
    def of(cls, broadcast: Broadcast, evict_after: float | None) -> Patience | None:
        """Return a patience by the clock of the running loop, or of another reader's. None if all are closed."""
        loops = [each for each in broadcast.deliveries if not each.is_closed()]
        with suppress(RuntimeError):
            here = asyncio.get_running_loop()
            loops.sort(key=lambda each: each is not here)
        return cls(broadcast, loops[0], evict_after) if loops else None

    @property
    def seconds(self) -> float:
        """The seconds to wait."""
        return TOLD_AFTER if self.evict_after is None else self.evict_after

    def begin(self) -> None:
        """Begin to watch; from any thread."""
        soon(self.loop, self._begin)

    def stop(self) -> None:
        """Watch no more; from any thread."""
        soon(self.loop, self._stop)

    # -- on the loop

    def _begin(self) -> None:
        with self.broadcast.mutex:
            watch = self._watch() if self.broadcast.patience is self else None
        if watch is not None:
            self._wait(watch)

    def _stop(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _watch(self) -> Watch:
        return Watch(self.broadcast.log.made, self.broadcast.joined)

    def _wait(self, watch: Watch) -> None:
        with self.broadcast.mutex:
            # One that was asked and whose loop has been closed since is asked again: so its readers are found to be gone.
            there = self.broadcast.deliveries.values()
            deliveries = [each for each in there if each not in watch.asked or each.loop.is_closed()]
        for delivery in deliveries:
            watch.asked.add(delivery)
            delivery.send(self._has_turn, watch, delivery)
        self._timer = self.loop.call_later(self.seconds / PARTS, self._look, watch)

    def _has_turn(self, watch: Watch, delivery: Delivery) -> None:
        soon(self.loop, self._count, watch, delivery)

    def _count(self, watch: Watch, delivery: Delivery) -> None:
        watch.asked.discard(delivery)
        watch.seen.add(delivery)

    def _look(self, watch: Watch) -> None:
        self._timer = None
        broadcast, calls = self.broadcast, list[Callable[[], object]]()
        with broadcast.mutex:
            if broadcast.patience is not self:
                return
            if not broadcast.log.is_held_up(broadcast.lag):
                broadcast.patience = None
                return
            if slow := watch.count(broadcast.everybody):
                calls += self._told(slow) if self.evict_after is None else self._evicted(slow)
            goes_on = not (slow and self.evict_after is None)
            if slow or broadcast.log.places.least >= watch.mark:
                watch = self._watch()
        if goes_on:
            self._wait(watch)
        for call in calls:
            call()

    def _evicted(self, slow: list[Reader]) -> Iterable[Then]:
        for reader in slow:
            behind = self.broadcast.log.made - reader.cursor.at
            yield partial(reader.inlet.post, reader.fail, self._error(reader, behind))
            yield from self.broadcast.evict(reader)

    def _error(self, reader: Reader, behind: int) -> SlowSubscriberError:
        return SlowSubscriberError(
            f"this subscriber has held up the others for {self.seconds:g} s, and is {behind} elements behind: {reader.inlet.where}. "
            "Put on_backpressure_buffer(), _drop() or _latest() behind the shared flow, so that it holds up nobody"
        )

    def _told(self, slow: list[Reader]) -> Iterable[Then]:
        where, number = slow[0].inlet.where, len(slow)
        yield partial(
            _logger.warning,
            "%d of the subscribers of a shared flow have held up the others for %g s: %s. Set evict_after to make them fail, or "
            "put on_backpressure_buffer(), _drop() or _latest() behind the shared flow",
            number, self.seconds, where,
        )  # fmt: skip
