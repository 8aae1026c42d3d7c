"""The combinator that goes on with another flow when its own has no elements."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Coordinator
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription

T = TypeVar("T")


@frozen
class SwitchIfEmpty(Pushed[T]):
    """Source of ``Flow.switch_if_empty``."""

    flow: FlowLike
    other: FlowLike

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow, and the one in its place."""
        return (self.flow, self.other)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow."""
        switching = Switching(inlet, self.other)
        switching.advance(self.flow)
        return switching


@define(eq=False)
class Switching(Coordinator):
    """Goes over to the other flow when the first completes and nothing has come."""

    other: FlowLike
    _switched: bool = field(init=False, default=False)

    def on_source_complete(self) -> None:
        """Go over once, or complete."""
        if self.emitted or self._switched:
            self.complete()
        else:
            self._switched = True
            self.advance(self.other)
