"""The operator that moves the elements of a flow in time."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._core.containers import new_deque
from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from .clockwork import Clocked, Clockwork

T = TypeVar("T")


@frozen
class Delay(Clocked[T]):
    """Source of ``Flow.delay``."""

    flow: FlowLike
    seconds: float
    max_size: int

    def machine(self, inlet: Inlet[Any]) -> Delaying:
        """Keep up to ``max_size`` elements, each for ``seconds``."""
        return Delaying(inlet, self.seconds, self.max_size)


@define(eq=False)
class Delaying(Clockwork):
    """Keeps each element for its time. It requests only as much as there is room for.

    Invariant: what has been asked for and has not been emitted is no more than the demand, nor than the room. So
    what has had its time is wanted.
    """

    seconds: float
    size: int
    _inside: int = field(init=False, default=0)
    """The elements that have been requested and not emitted."""
    _times: deque[tuple[float, int]] = field(init=False, factory=new_deque)  # bounded by `size`
    """When how many of the elements that are kept have had their time."""

    def request(self, n: int) -> None:
        """Ask on as far as there is room."""
        self.want(n)
        self._ask()

    def _ask(self) -> None:
        missing = min(self.demand, self.size) - self._inside
        if missing > 0:
            self._inside += missing
            self.upstream.request(missing)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Keep elements for their time."""
        due = self.timer.now + self.seconds
        inner.keep(items)
        self._times.append((due, len(items)))
        if not self.timer.running:
            self.timer.start_at(due)

    def on_time(self) -> None:
        """Emit the elements whose time is over."""
        now = max(self.timer.now, self._times[0][0])
        ripe = 0
        while self._times and self._times[0][0] <= now:
            ripe += self._times.popleft()[1]
        if self._times:
            self.timer.start_at(self._times[0][0])
        self._inside -= ripe
        self.emit(self.upstream.take(ripe))
        if self.over:
            return
        if self.upstream.spent:
            self.on_spent(self.upstream)
        else:
            self._ask()
