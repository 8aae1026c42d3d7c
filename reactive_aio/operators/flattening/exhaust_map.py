"""The combinator that makes a flow of an element, and leaves out those that come while it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import Subscription
from .mapper import Mapper
from .one_by_one import OneByOne
from .switch_map import AHEAD

T = TypeVar("T")


@frozen
class ExhaustMap(Pushed[T]):
    """Source of ``Flow.exhaust_map``."""

    flow: FlowLike = field(repr=False)
    fn: Callable[[Any], FlowLike]

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow whose elements are mapped."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow whose elements are mapped."""
        mapping = ExhaustMapping(inlet, Mapper(inlet, "exhaust_map", self.fn))
        inlet.show(mapping.left_out)
        mapping.begin(self.flow, AHEAD)
        return mapping


@define
class LeftOut:
    """The number of dropped elements (a Gauge)."""

    size: int = field(init=False, default=0)
    buffered: int = field(init=False, default=0)
    dropped: int = field(init=False, default=0)


@define(eq=False)
class ExhaustMapping(OneByOne):
    """Reads a flow to its end before it takes another element."""

    left_out: LeftOut = field(init=False, factory=LeftOut)

    def take(self, item: Any) -> None:
        """Begin with the flow of the element, or leave it out."""
        if self.current is None:
            self.read(item)
        else:
            self.mapper.index += 1
            self.left_out.dropped += 1
            discard([item])
