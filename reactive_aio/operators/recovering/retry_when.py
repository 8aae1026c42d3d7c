"""The combinator that subscribes again when its flow fails and a coroutine function says so, in its time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._core.notes import set_context
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .asking import Asking
from .resume import Errors, catches

T = TypeVar("T")


@frozen
class RetryWhen(Pushed[T]):
    """Source of ``Flow.retry_when``."""

    flow: FlowLike
    decide: Callable[[Any, int], Awaitable[object]]
    errors: Errors = field(repr=False)

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first attempt."""
        attempts = AttemptsWhen(inlet, self.flow, self.decide, self.errors)
        attempts.advance(self.flow)
        return attempts


@define(eq=False)
class AttemptsWhen(Asking):
    """Asks after each attempt that failed."""

    errors: Errors

    def on_source_complete(self) -> None:
        """Complete with the attempt that did."""
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        """Ask whether to try once more, if it is for this failure."""
        if catches(self.errors, error):
            self.ask(error)
        else:
            self.fail(error)

    def refused(self, about: BaseException) -> None:
        """Give up with the failure that was asked about."""
        self.fail(about)

    def failed(self, failure: BaseException, about: BaseException) -> None:
        """Fail with the last failure as the context."""
        set_context(failure, about)
        super().failed(failure, about)
