"""The combinator that makes another error of the error of its flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, frozen

from ..._arbiter import Coordinator
from ..._core.guard import Failed, guarded
from ..._core.notes import set_cause, set_context
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .resume import Errors, catches

T = TypeVar("T")


@frozen
class OnErrorMap(Pushed[T]):
    """Source of ``Flow.on_error_map``."""

    flow: FlowLike
    fn: Callable[[Any], BaseException]
    errors: Errors

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow."""
        mapping = ErrorMapping(inlet, self.fn, self.errors)
        mapping.advance(self.flow)
        return mapping


@define(eq=False)
class ErrorMapping(Coordinator):
    """Asks for the error to fail with."""

    fn: Callable[[Any], BaseException]
    errors: Errors

    def on_source_complete(self) -> None:
        """Complete."""
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        """Fail with what the function makes of the error, which is its cause then."""
        if not catches(self.errors, error):
            self.fail(error)
            return
        mapped = guarded(self.inlet.context, self._mapped, error)
        if isinstance(mapped, Failed):
            set_context(mapped.error, error)
            self.fail(mapped.take())
        else:
            set_cause(mapped, error)
            self.fail(mapped)

    def _mapped(self, error: BaseException) -> BaseException:
        mapped = self.fn(error)
        if not isinstance(mapped, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance] - not all type
            raise TypeError(f"on_error_map() takes a function that returns an exception, not {type(mapped).__name__}")
        return mapped
