"""In order: inner flows that are read at the same time and emitted one after another."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from .._core.containers import new_deque
from .arbiter import SubscriptionArbiter
from .gathering import Gathering
from .inner import Inner


@define(eq=False)
class InOrder(Gathering):
    """Emits the flows in the order in which they were entered, each to its end. Later flows are read ahead.

    The end of a flow has its place in that order too, and so has its failure.

    Invariant, whenever no method is on the stack: there is no demand, or nothing of the first flow is kept, or a turn is
    due.
    """

    row: deque[Inner] = field(init=False, factory=new_deque)  # bounded by the flows in the table
    """The flows that have not been emitted to their ends."""

    def enter(self, prefetch: int | None, key: Any = None, arbiter: SubscriptionArbiter | None = None) -> Inner:
        """Enter a flow after the others."""
        inner = super().enter(prefetch, key, arbiter)
        self.row.append(inner)
        return inner

    def cancel(self) -> None:
        """Cancel all."""
        self.row.clear()
        super().cancel()

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pass on requested elements of the first flow, as whole lists. Keep those of other flows."""
        if inner is not self.row[0]:
            inner.keep(items)
        elif inner.kept or self.busy or self.demand < len(items):
            super().on_chunk(inner, items)
        else:
            inner.consumed += len(items)
            self.emit(items)
            self.feed(inner)

    def on_end(self, inner: Inner) -> None:
        """Handle the end of the first flow. The ends of others wait for their turn."""
        if inner is self.row[0]:
            self.go()

    def step(self) -> bool:
        """Emit kept elements of the first flow, as far as there is demand, or go on to the next flow."""
        if not self.row:
            return False
        first = self.row[0]
        if first.kept and self.demand:
            items = first.take(self.demand)
            self.emit(items)
            self.feed(first)
            return True
        if first.spent:
            self.row.popleft()
            self.on_spent(first)
            return True
        return False

    def on_spent(self, inner: Inner) -> None:
        """Fail, or complete after the last flow."""
        super().on_spent(inner)
        if not self.inners and not self.over:
            self.complete()
