"""The combinator that reads one flow after another."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import Factory, define, field, frozen

from ..._arbiter import Coordinator
from ..._fusion import Placed, Stage, label
from ..._plan import Capabilities, FlowLike, Inlet, Pushed, reach_of_sequence
from ...spec import Subscription

T = TypeVar("T")


@frozen
class Concat(Pushed[T]):
    """Source of ``Flow.concat``."""

    flows: tuple[FlowLike, ...]
    # Known from the start, so that nobody has to go down a nest to find out.
    capabilities: Capabilities = field(
        init=False,
        repr=False,
        eq=False,
        default=Factory(lambda it: reach_of_sequence(it.flows, it.flows, it.name), takes_self=True),
    )

    passes_on = True

    @property
    def arguments(self) -> str:
        """The first flows."""
        return first_of(self.flows)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows in order."""
        return self.flows

    @property
    def sequence(self) -> tuple[FlowLike, ...]:
        """The flows in order."""
        return self.flows

    def lower(self, stage: Placed[Stage[Any, Any]]) -> Concat[Any]:
        """Let each flow run a stage where its elements are made: they are parts of the whole."""
        return Concat(tuple(flow.__nodes__.then(stage) for flow in self.flows))

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the first flow."""
        reading = Concatenation(inlet, self.flows)
        reading.on_source_complete()
        return reading


def first_of(flows: tuple[FlowLike, ...]) -> str:
    """Show the first of several flows."""
    shown = [label(flow) for flow in flows[:2]]
    return ", ".join(shown if len(flows) == len(shown) else [*shown, "..."])


def parts(flow: FlowLike) -> tuple[FlowLike, ...]:
    """Return the flows that a concat reads, else the flow. So a chain of concats is one concat."""
    nodes = flow.__nodes__
    operator = nodes.source.operator
    return operator.flows if isinstance(operator, Concat) and not nodes.steps else (flow,)


@define(eq=False)
class Concatenation(Coordinator):
    """Goes on to the next flow when one completes."""

    flows: tuple[FlowLike, ...]
    _at: int = field(init=False, default=0)

    def on_source_complete(self) -> None:
        """Go on, or complete after the last flow."""
        if self._at == len(self.flows):
            self.complete()
        else:
            self._at += 1
            self.advance(self.flows[self._at - 1])
