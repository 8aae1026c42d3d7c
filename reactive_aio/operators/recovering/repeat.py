"""The combinator that subscribes again when its flow completes."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, frozen

from ...arbiter import Coordinator
from ...segments import Inlet, Pushed
from ...segments.plan import FlowLike
from ...spec import Subscription

T = TypeVar("T")


@frozen
class Repeat(Pushed[T]):
    """Source of ``Flow.repeat``."""

    flow: FlowLike
    times: int | None

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first run."""
        repeating = Repetition(inlet, self.flow, self.times)
        repeating.on_source_complete()
        return repeating


@define(eq=False)
class Repetition(Coordinator):
    """Subscribes anew for each run; without a number of times, for ever."""

    flow: FlowLike
    left: int | None

    def on_source_complete(self) -> None:
        """Run once more, or complete."""
        if self.left == 0:
            self.complete()
            return
        if self.left is not None:
            self.left -= 1
        self.advance(self.flow)
