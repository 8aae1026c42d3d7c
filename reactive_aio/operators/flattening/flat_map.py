"""The combinator that makes a flow of each element, and merges them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner, Merging
from ..._core import budgets
from ..._core.guard import Failed
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import Subscription
from .mapper import Mapper

T = TypeVar("T")

LONGEST: Final = 64
"""The most elements to map before their given elements are emitted."""

AT_ONCE: Final = 16
"""Flows that begin and do not end at once, before the event loop has a turn. Some end in it, and are freed before the next ones begin."""


@frozen
class FlatMap(Pushed[T]):
    """Source of ``Flow.flat_map``."""

    flow: FlowLike = field(repr=False)
    fn: Callable[[Any], FlowLike]
    max_concurrency: int
    ahead: int

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow whose elements are mapped."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with as many elements as flows may be read at the same time."""
        mapping = FlatMapping(inlet, mapper=Mapper(inlet, "flat_map", self.fn), ahead=self.ahead)
        outer = mapping.outer = Inner(mapping)  # its elements are mapped, not merged
        mapping.inners[outer] = None
        mapping.outer.request(self.max_concurrency)
        # In a callback, so that what is wanted by then has been asked for before the first element comes.
        mapping.subscribe(self.flow, mapping.outer, at_once=False)
        return mapping


@define(eq=False)
class FlatMapping(Merging):
    """Merges the flows of the outer flow's elements. One more begins for each that has ended."""

    mapper: Mapper = field(kw_only=True)
    ahead: int = field(kw_only=True)
    outer: Inner = field(init=False)
    _most: int = field(init=False, default=1)
    """The number of elements to map before their given elements are emitted."""
    _left: int = field(init=False, default=AT_ONCE)
    """The number of flows that may begin before the next turn of the event loop."""

    def step(self) -> bool:
        """Begin the flows of the waiting elements, and emit kept elements of one."""
        if self.outer.kept and self._left:
            self._map()
        more = bool(self.ready) and super().step()
        return more or (bool(self.outer.kept) and self._left > 0)

    def _map(self) -> None:
        """Map the next elements. The given elements of their flows are one list, a short one if the function is slow."""
        outer, count, then = self.outer, 0, budgets.clock()
        given: list[Any] = []
        flow: FlowLike | Failed | None
        flow, items = self._next()
        while isinstance(items, list) and not self.ready and len(given) + len(items) <= self.demand:
            given += items
            flow, items = None, None
            count += 1
            if not outer.kept or count >= self._most or len(given) >= self.demand:
                break
            flow, items = self._next()
        if count:
            taken = budgets.clock() - then
            quick = taken <= budgets.QUICK
            self._most = min(2 * self._most, LONGEST) if quick else max(1, int(count * budgets.QUICK / taken))
        if self.over:
            discard(given + items if isinstance(items, list) else given)
            return
        if given:
            self.emit(given)
        if self.over:
            return  # elements of a flow that nobody has subscribed to are no loss
        if count:
            outer.request(count)
        if flow is not None:
            self._begin(flow, items)
        if outer.ended and outer.spent and outer in self.inners:
            self.on_spent(outer)

    def _next(self) -> tuple[FlowLike | Failed, list[Any] | Failed | None]:
        """Return the flow of the next element, and its elements if they are given and not more than the prefetch."""
        flow = self.mapper(self.outer.take(1)[0])
        if isinstance(flow, Failed) or self.over:
            return flow, None
        items = self.inlet.given(flow, self.ahead)
        if items is not None:
            self.several = True
        return flow, items

    def _begin(self, flow: FlowLike | Failed, given: list[Any] | Failed | None) -> None:
        """Subscribe to a flow, or keep its given elements until there is demand, or fail."""
        if isinstance(flow, Failed):
            self.fail(flow.take())
        elif given is None:
            inner = self.enter(self.ahead, self.mapper.index)
            self.subscribe(flow, inner, at_once=True)
            if inner.ended:
                return
            self._left -= 1
            if not self._left:
                self.next_turn(self._go_on_mapping)  # behind the first steps of their tasks
        elif isinstance(given, Failed):
            self.enter(self.ahead, self.mapper.index).on_error(given.take())
        elif given:
            self.ready.append(self.enter_given(given, self.ahead, self.mapper.index))
        else:
            self.outer.request(1)

    def _go_on_mapping(self, _: None) -> None:
        self._left = AT_ONCE
        self.go()

    def on_spent(self, inner: Inner) -> None:
        """Handle the end, and request an element in its place."""
        if inner.error is not None:
            self.mapper.locate(inner)
        super().on_spent(inner)
        self.outer.request(1)
