"""The combinator that goes on with the flow that signals first."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, frozen

from ..._arbiter import Gathering, Inner
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .concat import first_of

T = TypeVar("T")


@frozen
class Race(Pushed[T]):
    """Source of ``Flow.race``."""

    flows: tuple[FlowLike, ...]

    @property
    def arguments(self) -> str:
        """The first flows."""
        return first_of(self.flows)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows in order."""
        return self.flows

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Start the flows."""
        racing = Racing(inlet)
        racing.start(self.flows, None)
        return racing


@define(eq=False)
class Racing(Gathering):
    """Asks all flows for the demand until one has signalled; then that one alone is left in the table."""

    def request(self, n: int) -> None:
        """Ask the flows in the race when all have entered. Otherwise a late flow that is ready would be the first."""
        if not self.started:
            self.want(n)
            return
        for inner in tuple(self.inners):
            inner.request(n)

    def step(self) -> bool:
        """Request what was requested before all were in the race. Nothing is kept."""
        if self.started and self.demand:
            wanted = self.take_demand()
            self.request(wanted)
        return False

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Cancel the others, the first time, and pass elements on."""
        if len(self.inners) > 1:
            for other in tuple(self.inners):
                if other is not inner:
                    self.remove(other)
        self.inlet.on_chunk(items)

    def on_end(self, inner: Inner) -> None:
        """End the whole: it is the first signal, or the winner's last."""
        error = inner.take_error()
        if error is None:
            self.complete()
        else:
            self.fail(error)
