"""The combinator that subscribes to its flow after a while."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, frozen

from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .waiting import Waiting

T = TypeVar("T")


@frozen
class DelaySubscription(Pushed[T]):
    """Source of ``Flow.delay_subscription``."""

    flow: FlowLike
    seconds: float

    passes_on = True

    @property
    def arguments(self) -> str:
        """The time."""
        return f"{self.seconds:g}"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Set the timer."""
        late = LateSubscription(inlet, self.flow)
        late.timer.start(self.seconds)
        return late


@define(eq=False)
class LateSubscription(Waiting):
    """Subscribes when the time has come, and then requests the demand until then."""

    flow: FlowLike

    def on_time(self) -> None:
        """Subscribe."""
        self.advance(self.flow)

    def on_source_complete(self) -> None:
        """Complete with it."""
        self.complete()
