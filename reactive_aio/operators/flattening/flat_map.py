"""The combinator that makes a flow of each element, and merges them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner, Merging
from ..._core.guard import Failed
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .mapper import Mapper

T = TypeVar("T")


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
        mapping.outer = mapping.enter(None)
        mapping.outer.request(self.max_concurrency)
        # In a callback, so that what is wanted by then has been asked for before the first element comes.
        mapping.subscribe(self.flow, mapping.outer, at_once=False)
        return mapping


@define(eq=False)
class FlatMapping(Merging):
    """Merges the flows of the elements that the outer flow gives, one more for each that has ended."""

    mapper: Mapper = field(kw_only=True)
    ahead: int = field(kw_only=True)
    outer: Inner = field(init=False)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Keep elements that are to be mapped; merge the others."""
        if inner is self.outer:
            inner.keep(items)
            self.go()
        else:
            super().on_chunk(inner, items)

    def step(self) -> bool:
        """Subscribe to the flow of the next element, and emit what is kept of one."""
        mapped = bool(self.outer.kept)
        if mapped:
            self._map(*self.outer.take(1))
        return super().step() or mapped

    def _map(self, item: Any) -> None:
        flow = self.mapper(item)
        if isinstance(flow, Failed):
            self.fail(flow.take())
            return
        outer = self.outer
        items = None if self.ready else self.inlet.given(flow, min(self.demand, self.ahead))
        if items is None:
            self.add(flow, self.ahead, self.mapper.index)
        elif isinstance(items, Failed):
            self.enter(self.ahead, self.mapper.index).on_error(items.take())
        else:
            self.several = True
            if items:
                self.emit(items)
            outer.request(1)
        if outer.ended and outer.spent and outer in self.inners:
            self.on_spent(outer)

    def on_spent(self, inner: Inner) -> None:
        """See to the end, and ask for an element in its place."""
        self.mapper.locate(inner)
        super().on_spent(inner)
        self.outer.request(1)
