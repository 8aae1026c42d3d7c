"""The combinator that reads one flow after another."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ...arbiter import Coordinator
from ...segments import Inlet, Pushed
from ...segments.plan import FlowLike
from ...spec import Subscription

T = TypeVar("T")


@frozen
class Concat(Pushed[T]):
    """Source of ``Flow.concat``."""

    flows: tuple[FlowLike, ...]

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flows in order."""
        return self.flows

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the first flow."""
        reading = Concatenation(inlet, self.flows)
        reading.on_source_complete()
        return reading


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
