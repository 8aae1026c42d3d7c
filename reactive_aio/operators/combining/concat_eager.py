"""The combinator that reads several flows at a time and emits them one after another."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import frozen

from ..._arbiter import InOrder
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .concat import first_of

T = TypeVar("T")


@frozen
class ConcatEager(Pushed[T]):
    """Source of ``Flow.concat_eager``."""

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
        reading = InOrder(inlet)
        reading.start(self.flows, self.ahead)
        return reading
