"""The combinator that subscribes again when its flow fails and a function says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Coordinator
from ..._core.guard import Failed, guarded
from ..._core.notes import set_context
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .resume import Errors, catches

T = TypeVar("T")


@frozen
class RetryIf(Pushed[T]):
    """Source of ``Flow.retry_if``."""

    flow: FlowLike
    predicate: Callable[[Any, int], object]
    errors: Errors = field(repr=False)

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first attempt."""
        attempts = AttemptsIf(inlet, self.flow, self.predicate, self.errors)
        attempts.advance(self.flow)
        return attempts


@define(eq=False)
class AttemptsIf(Coordinator):
    """Counts the attempts of one subscription, and asks after each that failed."""

    flow: FlowLike
    predicate: Callable[[Any, int], object]
    errors: Errors
    _failed: int = field(init=False, default=0)

    def on_source_complete(self) -> None:
        """Complete with the attempt that did."""
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        """Try once more, or give up with this failure."""
        if not catches(self.errors, error):
            self.fail(error)
            return
        self._failed += 1
        again = guarded(self.inlet.context, self._again, error)
        if isinstance(again, Failed):
            set_context(again.error, error)
            self.fail(again.take())
        elif again:
            self.advance(self.flow)
        else:
            self.fail(error)

    def _again(self, error: BaseException) -> bool:
        return bool(self.predicate(error, self._failed))
