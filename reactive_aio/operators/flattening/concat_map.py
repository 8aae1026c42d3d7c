"""The combinator that makes a flow of each element, and reads one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._core import budgets
from ..._core.missing import NOTHING
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .mapper import Mapper
from .one_by_one import OneByOne

T = TypeVar("T")


@frozen
class ConcatMap(Pushed[T]):
    """Source of ``Flow.concat_map``."""

    flow: FlowLike = field(repr=False)
    fn: Callable[[Any], FlowLike]

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow whose elements are mapped."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow whose elements are mapped."""
        mapping = ConcatMapping(inlet, Mapper(inlet, "concat_map", self.fn))
        mapping.begin(self.flow, None)
        return mapping


@define(eq=False)
class ConcatMapping(OneByOne):
    """Requests an element when its flow is needed, and the flow before has ended.

    The end of the outer flow, and its failure, stand behind the flow of its last element.
    """

    _asked: bool = field(init=False, default=False)

    def request(self, n: int) -> None:
        """Pass demand to the current flow, or request an element for the next one."""
        super().request(n)
        if self.current is None:
            self.later()

    def take(self, item: Any) -> None:
        """Begin with its flow."""
        self._asked = False
        self.read(item)

    def _reads_none(self) -> bool:
        """Return whether the flow of the latest element has ended, and the next one may be requested."""
        return self.current is None and not self.over

    def on_spent(self, inner: Inner) -> None:
        """Handle the end of the outer flow in its place, when no flow is read."""
        if inner is not self.outer or self.current is None:
            super().on_spent(inner)

    def step(self) -> bool:
        """Go on when no flow is read."""
        outer = self.outer
        if self.current is not None:
            return False
        if outer.kept:
            super().step()
            if outer.kept or not self._reads_none():
                return bool(outer.kept)
        if outer.ended:
            if outer not in self.inners:
                return False
            self.on_spent(outer)
            return True
        return self._next() if self.arbiter.requested and not self._asked else False

    def _next(self) -> bool:
        """Pull given elements, and begin with the flow of each, as long as there is time. Request one of other outer flows."""
        outer, arbiter, until = self.outer, self.arbiter, self.budget.until
        while not outer.ended:
            item = outer.pull()
            if item is NOTHING:
                self._asked = True
                outer.request(1)
                return False
            self.read(item)
            if self.current is not None or not arbiter.requested or budgets.clock() >= until:
                break
        return self.current is None
