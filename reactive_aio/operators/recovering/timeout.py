"""The combinator that does not wait for ever."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, frozen

from ..._arbiter import Inner
from ..._fusion import label
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from ..timing.waiting import Waiting

T = TypeVar("T")


@frozen
class Timeout(Pushed[T]):
    """Source of ``Flow.timeout``."""

    flow: FlowLike
    seconds: float
    fallback: FlowLike | None

    passes_on = True

    @property
    def arguments(self) -> str:
        """The time, and what comes instead."""
        return f"{self.seconds:g}" if self.fallback is None else f"{self.seconds:g}, {label(self.fallback)}"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow, and the one that comes instead."""
        return (self.flow,) if self.fallback is None else (self.flow, self.fallback)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow."""
        limited = TimeLimit(inlet, self.seconds, self.fallback)
        limited.advance(self.flow)
        return limited


@define(eq=False)
class TimeLimit(Waiting):
    """Leaves the flow when a requested element does not come in time. The fallback has no time limit.

    Invariant, whenever no method is on the stack and the flow has not been left: the timer runs exactly while there
    is demand.
    """

    seconds: float
    fallback: FlowLike | None

    def request(self, n: int) -> None:
        """Pass demand on. From the first on that is not met, time counts."""
        if not self.timer.running:
            self.timer.start(self.seconds)
        super().request(n)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Pass elements on. The time for the next one begins when these have been taken."""
        self.timer.stop()
        super().on_chunk(inner, items)
        if self.arbiter.requested and not self.timer.running:
            self.timer.start(self.seconds)

    def on_source_complete(self) -> None:
        """Complete."""
        self.complete()

    def on_time(self) -> None:
        """Leave the flow, and fail or go over to what comes instead."""
        self.timer.cancel()
        self.leave()
        if self.fallback is not None:
            self.advance(self.fallback)
        else:
            self.fail(TimeoutError(f"no element came within {self.seconds:g} s of its request: {self.inlet.where}"))
