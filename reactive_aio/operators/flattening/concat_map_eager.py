"""The combinator that makes a flow of each element, and reads several of them ahead to emit them in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Gathering, Inner, InOrder
from ..._core.guard import Failed
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .mapper import Mapper

T = TypeVar("T")


@frozen
class ConcatMapEager(Pushed[T]):
    """Source of ``Flow.concat_map_eager``."""

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
        mapping = EagerMapping(inlet, Mapper(inlet, "concat_map_eager", self.fn), self.ahead)
        mapping.outer = Gathering.enter(mapping, None)
        mapping.outer.request(self.max_concurrency)
        # In a callback, so that what is wanted by then has been asked for before the first element comes.
        mapping.subscribe(self.flow, mapping.outer, at_once=False)
        return mapping


@define(eq=False)
class EagerMapping(InOrder):
    """Emits the flows of the outer flow's elements, in their order.

    One more is read for each that has ended.

    The end of the outer flow, and its failure, stand behind all of them.
    """

    mapper: Mapper
    ahead: int
    outer: Inner = field(init=False)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Keep elements to map. Handle the others in order."""
        if inner is self.outer:
            inner.keep(items)
            self.go()
        else:
            super().on_chunk(inner, items)

    def on_end(self, inner: Inner) -> None:
        """Handle the end in its place."""
        if inner is self.outer:
            self.go()
        else:
            super().on_end(inner)

    def step(self) -> bool:
        """Subscribe to the flow of the next element, and emit kept elements of the first."""
        outer = self.outer
        mapped = bool(outer.kept)
        if mapped:
            self._map(*outer.take(1))
        if super().step() or mapped:
            return True
        if outer.spent and not self.row and outer in self.inners:
            self.on_spent(outer)
        return False

    def _map(self, item: Any) -> None:
        flow = self.mapper(item)
        if isinstance(flow, Failed):
            # Its place is that of the flow that could not be made; nothing is mapped behind it.
            self.remove(self.outer)
            self.enter(None).on_error(flow.take())
            return
        items = self.inlet.given(flow, self.ahead)
        if items is None:
            self.add(flow, self.ahead, self.mapper.index)
        elif isinstance(items, Failed):
            self.enter(self.ahead, self.mapper.index).on_error(items.take())
        elif self.row or len(items) > self.demand:
            self.enter_given(items, self.ahead, self.mapper.index)
        else:
            self.several = True
            if items:
                self.emit(items)
            self.outer.request(1)

    def on_spent(self, inner: Inner) -> None:
        """Handle the end, and request an element in its place."""
        self.mapper.locate(inner)
        super().on_spent(inner)
        self.outer.request(1)
