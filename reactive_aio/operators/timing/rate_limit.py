"""The operator that keeps a rate, by asking for no more than it may emit."""

from __future__ import annotations

from collections import deque
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._core.containers import new_deque
from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from ...hooks import discard
from .clockwork import Clocked, Clockwork

T = TypeVar("T")

SLACK: Final = 1e-9
"""Seconds by which a timer of an event loop may come early."""


@frozen
class RateLimit(Clocked[T]):
    """Source of ``Flow.rate_limit``."""

    flow: FlowLike
    max_elements: int
    per: float

    def machine(self, inlet: Inlet[Any]) -> Limiting:
        """Keep to this rate."""
        return Limiting(inlet, self.max_elements, self.per)


@define(eq=False)
class Limiting(Clockwork):
    """Has permits for ``n`` elements. One is out from the request of its element until ``per`` seconds after it.

    So nothing ever waits here, and the elements of any ``per`` seconds are no more than ``n``. The timer is set only
    where demand waits for a permit, to the time when the next one comes back.
    """

    n: int
    per: float
    _asked: int = field(init=False, default=0)
    """The elements that have been requested and have not come."""
    _recent: int = field(init=False, default=0)
    """The elements that were emitted less than ``per`` seconds ago."""
    _fresh: int = field(init=False, default=0)
    """The elements that were emitted in this turn."""
    _times: deque[tuple[float, int]] = field(init=False, factory=new_deque)  # bounded by `n`
    """When they were emitted, and how many at each time."""

    def request(self, n: int) -> None:
        """Ask for what may be emitted."""
        self.want(n)
        self._ask()

    def _ask(self) -> None:
        """Take back the expired permits, and request as far as there are permits. Set the timer for the others."""
        now = self.timer.now
        # The same sum as that of the timer: another one may come out less, and the timer would be set for ever.
        while self._times and self._times[0][0] + self.per <= now + SLACK:
            self._recent -= self._times.popleft()[1]
        missing = min(self.demand, self.n - self._recent) - self._asked
        if missing > 0:
            self._asked += missing
        if self.demand > self._asked and self._times and not self.timer.running:
            self.timer.start_at(self._times[0][0] + self.per)
        if missing > 0:
            self.upstream.request(missing)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Emit elements one by one, counted when the turn is over, however long they take."""
        for place, item in enumerate(items):
            if self.over:
                discard(items[place:])
                return
            self._asked -= 1
            self._count()
            self.emit([item])
        if not self.over:
            self._ask()

    def _count(self) -> None:
        # Some loops read the clock once a turn. So the time is that of the next turn, which is no earlier than the element.
        self._recent += 1
        if not self._fresh:
            self.next_turn(self._stamp)
        self._fresh += 1

    def _stamp(self, _: None) -> None:
        if not self.over:
            self._times.append((self.timer.now, self._fresh))
            self._fresh = 0
            self._ask()

    def on_time(self) -> None:
        """Request the demand that had to wait."""
        self._ask()
