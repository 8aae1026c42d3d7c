"""The combinator that subscribes again when its flow fails."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ...arbiter import Coordinator
from ...segments import Inlet, Pushed
from ...segments.nodes import FlowLike
from ...spec import Subscription
from .resume import Errors

T = TypeVar("T")


@frozen
class Retry(Pushed[T]):
    """Source of ``Flow.retry``."""

    flow: FlowLike
    max_retries: int | None
    errors: Errors = field(repr=False)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first attempt."""
        attempts = Attempts(inlet, self.flow, self.max_retries, self.errors)
        attempts.advance(self.flow)
        return attempts


@define(eq=False)
class Attempts(Coordinator):
    """Subscribes anew after a failure, as long as there are retries left in this subscription."""

    flow: FlowLike
    left: int | None
    errors: Errors

    def on_source_complete(self) -> None:
        """Complete with the attempt that did."""
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        """Try once more, or give up with the last failure."""
        if self.left == 0 or not isinstance(error, self.errors):
            self.fail(error)
            return
        if self.left is not None:
            self.left -= 1
        self.advance(self.flow)
