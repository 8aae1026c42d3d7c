"""The combinator that makes an element of the latest of each flow whenever one of them emits."""

from __future__ import annotations

from collections import deque
from sys import exception
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Gathering, Inner
from ..._core.containers import new_deque
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import Subscription
from .concat import first_of

T = TypeVar("T")

NOTHING: Final = object()
"""Stands for the latest element of a flow that has not emitted yet."""


@frozen
class CombineLatest(Pushed[T]):
    """Source of ``Flow.combine_latest``."""

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
        combining = CombiningLatest(inlet, len(self.flows))
        combining.start(self.flows, self.ahead)
        return combining


@define(eq=False)
class CombiningLatest(Gathering):
    """Takes the elements of all flows in the order of their arrival, each on demand."""

    _missing: int
    """The number of flows that have not emitted yet."""
    _latest: list[Any] = field(init=False)
    _arrived: deque[tuple[Inner, int]] = field(init=False, factory=new_deque)  # bounded by what is kept
    """The flows whose elements come next, each with the number of them."""

    def __attrs_post_init__(self) -> None:
        self._latest = [NOTHING] * self._missing

    def cancel(self) -> None:
        """Cancel all, and let go of the elements that have been in no tuple."""
        super().cancel()
        self._arrived.clear()
        latest, self._latest = self._latest, []
        if self._missing:
            discard(each for each in latest if each is not NOTHING)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Emit a tuple for each element if there is demand and none wait. Else keep them, and note whose turn it is."""
        idle = not self.busy and exception() is None  # as `idle`, without a call
        if idle and self.demand >= len(items) and not (self._missing or self._arrived):
            inner.consumed += len(items)
            self._combine(inner.key, items)
            if inner.consumed >= inner.limit:
                self.feed(inner)
            return
        self._arrived.append((inner, len(items)))
        super().on_chunk(inner, items)

    def step(self) -> bool:
        """Take the next elements, as far as there is demand."""
        if not self.demand or not self._arrived:
            return False
        inner, count = self._arrived.popleft()
        # Before all have emitted, one after another: an element that makes no tuple uses up no demand.
        n = 1 if self._missing else min(count, self.demand)
        if n < count:
            self._arrived.appendleft((inner, count - n))
        items = inner.take(n)
        self._combine(inner.key, items)
        if inner.spent and inner in self.inners:
            self.on_spent(inner)
        else:
            self.feed(inner)
        return bool(self._arrived and self.demand)

    def _combine(self, place: int, items: list[Any]) -> None:
        """Emit a tuple for each element, or keep the last one for those to come."""
        latest = self._latest
        replaced, latest[place] = latest[place], items[-1]
        if replaced is NOTHING:
            self._missing -= 1
        elif self._missing:
            discard([replaced])
        if self._missing:
            return
        if len(items) == 1:  # most flows emit one at a time
            self.emit([tuple(latest)])
        else:
            before, after = latest[:place], latest[place + 1 :]
            self.emit([(*before, item, *after) for item in items])

    def on_spent(self, inner: Inner) -> None:
        """Complete after the last flow, or after one that has never emitted."""
        super().on_spent(inner)
        if not self.over and (not self.inners or self._latest[inner.key] is NOTHING):
            self.complete()
