"""Merging: elements of several inner flows as they arrive, with turns for each flow."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, Final

from attrs import define, field

from .._core.containers import new_deque, new_dict, new_list
from ..hooks import discard
from ..spec import UNBOUNDED
from .gathering import Gathering
from .inner import Appended, Inner

SEVERAL: Final = 4
"""From how many flows on it pays to pass on together what arrives in one turn of the event loop."""

FEW: Final = 8
"""Lists of more elements are passed on as they are."""


class Merged(Inner):
    """The subscriber of one merged flow. It emits elements itself, because most come one at a time, and each call counts."""

    __slots__ = ()

    def on_chunk(self, items: list[Any]) -> None:
        """Pass elements on as a whole list if there is demand and none wait. Else keep them.

        Where several flows emit under unbounded demand, add them to those of this turn of the event loop.
        """
        merging: Any = self._owner
        if merging is None or self.ended:
            discard(items)
            return
        count = len(items)
        self.received += count
        demand = merging.demand
        if demand < count or merging.busy or merging.ready:
            if not self.kept:
                merging.ready.append(self)
            self.kept.extend(items)
            merging.go()
            return
        self.consumed += count
        if demand == UNBOUNDED and (merging.elements or (count <= FEW and len(merging.inners) >= SEVERAL)):
            merging.elements += items
            if not merging.due:
                merging.arrived()
        else:
            merging.emit(items)
        if self.consumed >= self.limit:
            merging.feed(self)

    def appending(self) -> tuple[Appended, int] | None:
        """Return the list of this turn of the event loop, where `on_chunk` would add to it."""
        merging: Any = self._owner
        if merging is None or self.ended or merging.demand != UNBOUNDED or merging.ready:
            return None
        return (merging, self.limit - self.consumed) if len(merging.inners) >= SEVERAL else None

    def count(self, n: int) -> None:
        """Count elements that have been appended, which are as good as passed on."""
        merging: Any = self._owner
        self.received += n
        self.consumed += n
        if merging is not None and self.consumed >= self.limit:
            merging.feed(self)


@define(eq=False)
class Merging(Gathering):
    """Emits elements that arrive while there is demand. Else it keeps them, and later emits from each flow in turn.

    Under unbounded demand, what several flows emit in one turn of the event loop is one list: so the region behind works once a turn.

    Invariant, whenever no method is on the stack: there is no demand, or nothing is kept, or a turn is due.
    """

    _kind: ClassVar[type[Inner]] = Merged
    delay_errors: bool = False
    ready: deque[Inner] = field(init=False, factory=new_deque)  # bounded by the flows in the table
    """The flows that have elements kept here, each once. The first has its turn next."""
    elements: list[Any] = field(init=False, factory=new_list)  # bounded by the prefetch of the flows
    """Elements that have arrived in this turn of the event loop, and are passed on at its end. Flows append to it: it is one list for ever."""
    due: bool = field(init=False, default=False)
    """Whether the end of this turn passes elements on."""
    _errors: dict[int, BaseException] = field(init=False, factory=new_dict)  # bounded by the flows that have failed
    """The failures that wait for the end, by their identity: several flows may read one that has failed."""

    def cancel(self) -> None:
        """Cancel all, and report what waits for the end."""
        self.ready.clear()
        super().cancel()
        elements = self._take_all()
        if elements:
            discard(elements)
        errors, self._errors = self._errors, {}
        for error in errors.values():
            self.inlet.dropped(error)

    def arrived(self) -> None:
        """Pass on at its end what arrives in this turn of the event loop."""
        self.due = True
        self.next_turn(self._end_turn)

    def _end_turn(self, _: None) -> None:
        self.due = False
        self.pass_on()

    def pass_on(self) -> None:
        """Pass on what has arrived in this turn of the event loop."""
        elements = self._take_all()
        if elements:
            self.inlet.on_chunk(elements)

    def _take_all(self) -> list[Any]:
        elements = self.elements.copy()
        self.elements.clear()
        return elements

    def step(self) -> bool:
        """Emit kept elements of the next flow, as far as there is demand."""
        if not self.ready or not self.demand:
            return False
        if self.elements:
            self.pass_on()
            if self.over:
                return False
        inner = self.ready.popleft()
        items = inner.take(self.demand)
        if inner.kept:
            self.ready.append(inner)
        self.emit(items)
        if inner.ended and not inner.kept and inner in self.inners:  # as `spent`, without a call
            self.on_spent(inner)
        elif inner.consumed >= inner.limit:
            self.feed(inner)
        return bool(self.ready and self.demand)

    def on_spent(self, inner: Inner) -> None:
        """Fail, or note the failure for the end. Complete after the last flow."""
        if self.delay_errors and inner.error is not None:
            self._errors[id(inner.error)] = inner.error
            inner.take_error()
        super().on_spent(inner)
        if not self.inners and not self.over:
            self.pass_on()
            self._finish()

    def fail(self, error: BaseException) -> None:
        """Fail the whole, after the elements that have arrived."""
        self.pass_on()
        super().fail(error)

    def _finish(self) -> None:
        errors, self._errors = [*self._errors.values()], {}
        if not errors:
            self.complete()
        elif len(errors) == 1:
            self.fail(errors[0])
        else:
            self.fail(BaseExceptionGroup(f"{len(errors)} of the flows failed", errors))
