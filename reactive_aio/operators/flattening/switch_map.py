"""The combinator that makes a flow of each element, and leaves the one before for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .mapper import Mapper
from .one_by_one import OneByOne

T = TypeVar("T")

AHEAD: Final = 32
"""Elements that may have come and wait for those before them to be mapped, which takes no time."""


@frozen
class SwitchMap(Pushed[T]):
    """Source of ``Flow.switch_map``."""

    flow: FlowLike = field(repr=False)
    fn: Callable[[Any], FlowLike]

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow whose elements are mapped."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow whose elements are mapped."""
        mapping = SwitchMapping(inlet, Mapper(inlet, "switch_map", self.fn))
        mapping.begin(self.flow, AHEAD)
        return mapping


@define(eq=False)
class SwitchMapping(OneByOne):
    """Goes over to the flow of the latest element."""

    def take(self, item: Any) -> None:
        """Leave the flow that is read for that of the element."""
        self.leave()
        self.read(item)
