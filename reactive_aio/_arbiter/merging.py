"""Merging: elements of several inner flows as they arrive, with turns for each flow."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from .._core.containers import new_deque, new_list
from ..spec import UNBOUNDED
from .gathering import Gathering
from .inner import Inner


@define(eq=False)
class Merging(Gathering):
    """Emits elements that arrive while there is demand. Else it keeps them, and later emits from each flow in turn.

    Invariant, whenever no method is on the stack: there is no demand, or nothing is kept, or a turn is due.
    """

    delay_errors: bool = False
    ready: deque[Inner] = field(init=False, factory=new_deque)  # bounded by the flows in the table
    """The flows that have elements kept here, each once. The first has its turn next."""
    _errors: list[BaseException] = field(init=False, factory=new_list)  # bounded by the flows that have failed
    """The failures that wait for the end."""

    def cancel(self) -> None:
        """Cancel all, and report what waits for the end."""
        self.ready.clear()
        super().cancel()
        errors, self._errors = self._errors, []
        for error in errors:
            self.inlet.dropped(error)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pass elements on as whole lists if there is demand and none wait. Else keep them."""
        demand, count = self.demand, len(items)
        if demand >= count and not self.ready and not self.busy:
            inner.consumed += count
            if demand == UNBOUNDED:  # as `emit`, without a call: where flows suspend, each element comes by here
                self.inlet.on_chunk(items)
            else:
                self.emit(items)
            if inner.consumed >= inner.limit:
                self.feed(inner)
            return
        if not inner.kept:
            self.ready.append(inner)
        super().on_chunk(inner, items)

    def step(self) -> bool:
        """Emit kept elements of the next flow, as far as there is demand."""
        if not self.ready or not self.demand:
            return False
        inner = self.ready.popleft()
        items = inner.take(self.demand)
        if inner.kept:
            self.ready.append(inner)
        self.emit(items)
        if inner.spent and inner in self.inners:
            self.on_spent(inner)
        else:
            self.feed(inner)
        return bool(self.ready and self.demand)

    def on_spent(self, inner: Inner) -> None:
        """Fail, or note the failure for the end. Complete after the last flow."""
        if self.delay_errors and inner.error is not None:
            self._errors.append(inner.error)
            inner.take_error()
        super().on_spent(inner)
        if not self.inners and not self.over:
            self._finish()

    def _finish(self) -> None:
        errors, self._errors = self._errors, []
        if not errors:
            self.complete()
        elif len(errors) == 1:
            self.fail(errors[0])
        else:
            self.fail(BaseExceptionGroup(f"{len(errors)} of the flows failed", errors))
