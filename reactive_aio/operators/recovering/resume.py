"""The combinator that goes on with another flow when its own fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Coordinator
from ..._core.guard import Failed, guarded
from ..._core.notes import set_context
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...errors import SharedClosedError, TaskCancelledError
from ...spec import Subscription
from .._fluent import check_flow

T = TypeVar("T")

ENDED: Final = (TaskCancelledError, SharedClosedError)
"""The failures of a flow that the program itself has ended: a new attempt would outlast its place."""

Errors = type[BaseException] | tuple[type[BaseException], ...]
"""The exceptions that an operator is for, as in an ``except`` clause."""


def catches(errors: Errors, error: BaseException) -> bool:
    """Whether an operator for ``errors`` handles this one. ``Exception`` does not include the `ENDED`.

    A loop that ends cancels the tasks of its sources. A source that began then would be cut off in its cleanup. Behind
    the block of a shared flow a new attempt would begin a run of its own, which nobody holds open.
    """
    if isinstance(error, ENDED):
        named = errors if isinstance(errors, tuple) else (errors,)
        return isinstance(error, tuple(each for each in named if each is not Exception))
    return isinstance(error, errors)


@frozen
class Always:
    """The fallback that does not depend on the error."""

    flow: FlowLike

    def __call__(self, error: BaseException) -> FlowLike:
        """Return the flow."""
        return self.flow

    def __repr__(self) -> str:
        return repr(self.flow)


@frozen
class OnErrorResumeNext(Pushed[T]):
    """Source of ``Flow.on_error_resume_next``."""

    flow: FlowLike
    fallback: Callable[[BaseException], FlowLike]
    errors: Errors

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow that may fail, and the one to go on with, if it is known."""
        return (self.flow, self.fallback.flow) if isinstance(self.fallback, Always) else (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow that may fail."""
        resuming = Resumption(inlet, self.fallback, self.errors)
        resuming.advance(self.flow)
        return resuming


@frozen
class OnErrorReturn(OnErrorResumeNext[T]):
    """Source of ``Flow.on_error_return``."""


@frozen
class OnErrorComplete(OnErrorResumeNext[T]):
    """Source of ``Flow.on_error_complete``."""


@define(eq=False)
class Resumption(Coordinator):
    """Goes over to the fallback at the first failure. A failure of the fallback is final."""

    fallback: Callable[[BaseException], FlowLike]
    errors: Errors
    _failure: BaseException | None = field(init=False, default=None)
    """The failure that made it go over; let go of at the end, since its traceback leads back to here."""

    def cancel(self) -> None:
        """Cancel the flow that is read now."""
        self._failure = None
        super().cancel()

    def on_source_complete(self) -> None:
        """Complete."""
        self._failure = None
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        """Ask for the fallback. A second failure carries the first as its context."""
        first, self._failure = self._failure, None
        if first is None and catches(self.errors, error):
            fallback = guarded(self.inlet.context, self._flow_for, error)
            if not isinstance(fallback, Failed):
                self._failure = error
                self.advance(fallback)
                return
            self._give_up(fallback.take(), error)
        else:
            self._give_up(error, first)

    def _give_up(self, error: BaseException, first: BaseException | None) -> None:
        if first is not None:
            set_context(error, first)
        self.fail(error)

    def _flow_for(self, error: BaseException) -> FlowLike:
        fallback = self.fallback(error)
        check_flow("on_error_resume_next", fallback)
        return fallback
