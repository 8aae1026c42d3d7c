"""The combinator that makes one element of one of each flow."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, frozen

from ..._arbiter import Gathering, Inner
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription, refill_after
from .concat import first_of

T = TypeVar("T")


@frozen
class Zip(Pushed[T]):
    """Source of ``Flow.zip``."""

    flows: tuple[FlowLike, ...]
    ahead: int

    @property
    def arguments(self) -> str:
        """The first flows."""
        return first_of(self.flows)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows in order."""
        return self.flows

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with all flows."""
        zipping = Zipping(inlet, refill_after(self.ahead))
        zipping.start(self.flows, self.ahead)
        return zipping


@define(eq=False)
class Zipping(Gathering):
    """Keeps what has arrived until there is one element of each, and emits as many tuples as are wanted.

    Of flows that have ended and have nothing left the first in order decides how the whole ends, as in the builtin.
    """

    batch: int = 1
    """How many tuples are made at once rather than in an event, by which there may be more of them."""

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Keep elements, and see to it that tuples are made where there is one of each: of many, if many come."""
        inner.keep(items)
        ready = min(len(each.kept) for each in self.inners)
        if ready:
            if ready >= min(self.batch, self.demand):
                self.go()
            else:
                self.later()

    def on_end(self, inner: Inner) -> None:
        """See whether another tuple can come."""
        self.go()

    def step(self) -> bool:
        """Emit what there is to emit; end if one of the flows has nothing more to give."""
        columns = tuple(self.inners)
        n = min(self.demand, *(len(each.kept) for each in columns)) if columns else 0
        if n:
            self.emit(list(zip(*(each.take(n) for each in columns), strict=True)))
        for each in columns:
            if each.spent:
                self._end(each)
                return False
            each.replenish()
        return n > 0

    def _end(self, inner: Inner) -> None:
        error = inner.take_error()
        if error is None:
            self.complete()
        else:
            self.fail(error)
