"""The operator that gathers elements into lists, and does not wait for ever to fill one."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ..timing.clockwork import Clocked, Clockwork

T = TypeVar("T")


@frozen
class BufferTimeout(Clocked[list[T]]):
    """Source of ``Flow.buffer_timeout``."""

    flow: FlowLike
    size: int
    seconds: float

    def machine(self, inlet: Inlet[Any]) -> Filling:
        """Fill lists of this size in this time."""
        return Filling(inlet, self.size, self.seconds)


@define(eq=False)
class Filling(Clockwork):
    """Fills one list. The next one begins when it has been emitted.

    Invariant: what has been asked for and has not been emitted is no more than one list. So a list that nobody wants
    yet can only wait, and be filled meanwhile.
    """

    size: int
    seconds: float
    _inside: int = field(init=False, default=0)
    """The elements that have been requested and not emitted."""
    _late: bool = field(init=False, default=False)
    """Whether the time of the list is up."""

    def request(self, n: int) -> None:
        """Emit a waiting list, in an event. Else request what a list still needs."""
        self.want(n)
        if self._is_due():
            self.later()
        else:
            self._ask()

    def _ask(self) -> None:
        missing = self.size - self._inside
        if self.demand and missing:
            self._inside += missing
            self.upstream.request(missing)

    def _is_due(self) -> bool:
        """Return whether the list has to be emitted before it is filled any further."""
        kept = self.upstream.kept
        return bool(kept) and (self._late or self.upstream.ended or len(kept) == self.size)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Fill the list. With its first element its time begins."""
        if not inner.kept:
            self.timer.start(self.seconds)
        super().on_chunk(inner, items)

    def on_time(self) -> None:
        """Emit the list as it is."""
        self._late = True
        self.go()

    def step(self) -> bool:
        """Emit the list if there is demand, and begin the next."""
        if not self.demand or not self._is_due():
            return False
        items = self.upstream.take(self.size)
        self._inside -= len(items)
        self._late = False
        self.timer.stop()
        self.emit([items])
        if self.over:
            return False
        if self.upstream.spent:
            self.on_spent(self.upstream)
        else:
            self._ask()
        return True

    def on_end(self, inner: Inner) -> None:
        """Emit the last list. A failure comes after a list that waits, and discards one that is being filled."""
        if inner.error is not None and not self._late and len(inner.kept) < self.size:
            discard(inner.take(self.size))
        super().on_end(inner)
