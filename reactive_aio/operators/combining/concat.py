"""The combinator that reads one flow after another."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ...arbiter import Coordinator
from ...segments import Inlet, Pushed, label
from ...segments.plan import FlowLike
from ...spec import Subscription

T = TypeVar("T")


@frozen
class Concat(Pushed[T]):
    """Source of ``Flow.concat``."""

    flows: tuple[FlowLike, ...]

    @property
    def arguments(self) -> str:
        """The first flows."""
        shown = [label(flow) for flow in self.flows[:2]]
        return ", ".join(shown if len(self.flows) == len(shown) else [*shown, "..."])

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows in order."""
        return self.flows

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the first flow."""
        reading = Concatenation(inlet, self.flows)
        reading.on_source_complete()
        return reading


def parts(flow: FlowLike) -> tuple[FlowLike, ...]:
    """Give the flows that a concat reads, else the flow: so a chain of concats is one, and no nest of them."""
    operator = flow.source.operator
    return operator.flows if isinstance(operator, Concat) and not flow.steps else (flow,)


@define(eq=False)
class Concatenation(Coordinator):
    """Goes on to the next flow when one completes."""

    flows: tuple[FlowLike, ...]
    _at: int = field(init=False, default=0)

    def on_source_complete(self) -> None:
        """Go on, or complete behind the last."""
        if self._at == len(self.flows):
            self.complete()
        else:
            self._at += 1
            self.advance(self.flows[self._at - 1])
