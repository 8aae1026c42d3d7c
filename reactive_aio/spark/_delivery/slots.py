"""The slots of a cluster, shared by the flows of this process.

A task that waits for demand holds its slot, and can't be asked to give it back: to compute its partition once
more would not be exact for all data. So a flow that took every slot could wait for ever for a subscriber that
waits for another flow (``zip`` does, and a task that reads two iterators in turn). Therefore

- a flow that runs nothing may always take a slot, and one is left for each flow that has subscribed,
- for more than that a flow has to leave one free beside, for a flow or any other job that comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

from attrs import define, field

_LOCK: Final = Lock()
"""Flows subscribe on any thread."""
_TIMES: Final = count(1)


@define(eq=False)
class Slots:
    """The slots of one cluster."""

    total: int = 0
    """As far as it is known. The first flow has to ask."""
    seats: WeakSet[Seat] = field(init=False, factory=WeakSet["Seat"])

    def spare(self) -> bool:
        """Return whether a flow may take more than one."""
        return self.total - sum(max(seat.held, 1) for seat in self.seats) > 1

    def first(self) -> Seat | None:
        """Return the flow that gets the next slot: the refused flow with the fewest slots, then the oldest."""
        refused = [seat for seat in self.seats if seat.refused]
        return min(refused, key=lambda seat: (seat.held, seat.refused), default=None)

    def are_taken(self) -> bool:
        """Return whether flows hold all of them, so that another job of Spark finds none."""
        with _LOCK:
            return 0 < self.total <= sum(seat.held for seat in self.seats)

    def all_wait(self) -> bool:
        """Return whether in all of them there are tasks that wait for demand."""
        with _LOCK:
            return 0 < self.total <= sum(seat.waiting() for seat in self.seats)

    def requests(self) -> int:
        """Return a number that changes when an element of a flow is requested."""
        with _LOCK:
            return sum(seat.requests for seat in self.seats)

    def to_be_named(self) -> list[str]:
        """Return the names of the flows that hold slots, or nothing if each of them has been named before."""
        with _LOCK:
            holding = [seat for seat in self.seats if seat.held]
            new = any(not seat.named for seat in holding)
            for seat in holding:
                seat.named = True
        return sorted(seat.name for seat in holding) if new else []


_CLUSTERS: Final[WeakKeyDictionary[Hashable, Slots]] = WeakKeyDictionary()


@define(eq=False)
class Seat:
    """The slots that one subscription holds."""

    wake: Callable[[], None]
    """Called, on any thread, when a slot that was refused may be had. Then it takes, declines, or leaves."""
    slots: Slots
    name: str = ""
    """The flow and its line, for a warning."""
    waiting: Callable[[], int] = lambda: 0
    """Returns, on any thread, how many of its tasks wait for demand."""
    requests: int = field(init=False, default=0)
    """How often its elements were requested."""
    named: bool = field(init=False, default=False)
    """Whether a warning has named it."""
    held: int = field(init=False, default=0)
    refused: int = field(init=False, default=0)
    """If the flow has been refused a slot, a number that grows with time, else 0."""

    @staticmethod
    def at(cluster: Hashable, wake: Callable[[], None], name: str = "", waiting: Callable[[], int] = lambda: 0) -> Seat:
        """Reserve a slot for a new subscription."""
        with _LOCK:
            slots = _CLUSTERS.setdefault(cluster, Slots())
            seat = Seat(wake, slots, name, waiting)
            slots.seats.add(seat)
        return seat

    def take(self) -> bool:
        """Take a slot, if that leaves enough to the others."""
        with _LOCK:
            first = self.slots.first()
            waits = first is not None and first is not self and first.held <= self.held
            taken = not self.held or (self.slots.spare() and not waits)
            if taken:
                self.held += 1
                self.refused = 0
            elif not self.refused:
                self.refused = next(_TIMES)
        self._offer()
        return taken

    def decline(self) -> None:
        """Request no more slots, so that other refused flows do not wait for this one."""
        if self.refused:
            with _LOCK:
                self.refused = 0
            self._offer()

    def give_back(self) -> None:
        """Give back a slot whose task has ended."""
        with _LOCK:
            self.held -= 1
        self._offer()

    def leave(self) -> None:
        """Give back all."""
        with _LOCK:
            self.slots.seats.discard(self)
            self.held = self.refused = 0
        self._offer()

    def _offer(self) -> None:
        """Wake the first of those that were refused; when it has taken a slot, it wakes the next."""
        with _LOCK:
            first = self.slots.first() if self.slots.spare() else None
        if first is not None and first is not self:
            first.wake()
