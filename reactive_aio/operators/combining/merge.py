"""The combinator that reads several flows at a time and emits elements as they arrive."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import field, frozen

from ..._arbiter import Merging
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .concat import first_of

T = TypeVar("T")


@frozen
class Merge(Pushed[T]):
    """Source of ``Flow.merge``."""

    flows: tuple[FlowLike, ...]
    ahead: int
    delay_errors: bool = field(repr=False)

    @property
    def arguments(self) -> str:
        """The first flows."""
        return first_of(self.flows)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows, in the order in which they are subscribed to."""
        return self.flows

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with all flows."""
        merging = Merging(inlet, self.delay_errors)
        merging.start(self.flows, self.ahead)
        return merging
