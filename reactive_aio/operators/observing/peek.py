"""The combinator that shows the signals of a flow, in both directions, to functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._core.guard import Failed, guarded
from ..._core.notes import set_context
from ..._fusion import label
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import drop_error
from ...spec import Subscription
from .._fluent import refuse_coroutine
from .passing import Passing

T = TypeVar("T")


@frozen
class Listener:
    """The function that is called for each kind of signal."""

    on_subscribe: Callable[[], object] | None = None
    on_request: Callable[[int], object] | None = None
    on_cancel: Callable[[], object] | None = None
    on_error: Callable[[BaseException], object] | None = None
    on_complete: Callable[[], object] | None = None
    on_end: Callable[[], object] | None = None
    """Called once, after either end."""


@frozen
class Peek(Pushed[T]):
    """Source of ``Flow.do_on_error`` and its kin."""

    method: str = field(repr=False)
    flow: FlowLike
    listener: Listener = field(repr=False)
    shown: object
    """The arguments of the method, for plans."""
    is_transparent = True
    passes_on = True

    @property
    def name(self) -> str:
        """The method."""
        return self.method

    @property
    def arguments(self) -> str:
        """The functions of the call."""
        return label(self.shown)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Subscribe to the flow."""
        peeking = Peeking(inlet, self.listener)
        if self.listener.on_subscribe is not None:
            inlet.context.copy().run(_call, self.listener.on_subscribe)
        inlet.subscribe(self.flow, peeking, at_once=True)
        return peeking


@define(eq=False)
class Peeking(Passing):
    """Shows what it passes on."""

    listener: Listener

    # -- what comes from downstream

    def request(self, n: int) -> None:
        """Show demand, and pass it on."""
        if self.over:
            return
        failed = self._show(self.listener.on_request, n)
        if failed is None:
            super().request(n)
        else:
            # Posted: a signal never comes inside a request.
            self.inlet.post(self._break_off, failed.take())

    def cancel(self) -> None:
        """Show the cancellation, and pass it on."""
        if not self.over:
            self.over = True
            self._clean_up(self.listener.on_cancel)
            super().cancel()
            self._finally()

    # -- what comes from upstream

    def on_error(self, error: BaseException) -> None:
        """Show the failure, and pass it on."""
        if not self.ends():
            drop_error(error)
            return
        failed = self._show(self.listener.on_error, error)
        if failed is None:
            self._fail(error)
        else:
            if failed.error.__context__ is None and failed.error is not error:
                set_context(failed.error, error)
            self._fail(failed.take())

    def on_complete(self) -> None:
        """Show the end, and pass it on."""
        if not self.ends():
            return
        failed = self._show(self.listener.on_complete)
        if failed is not None:
            self._fail(failed.take())
        else:
            self.inlet.after_end(self._finally)
            self.inlet.on_complete()

    def _break_off(self, failure: BaseException) -> None:
        """Fail in the middle."""
        if self.over:
            self.inlet.cleanup_failed(failure)
        else:
            super().cancel()
            self._fail(failure)

    def _fail(self, error: BaseException) -> None:
        self.inlet.after_end(self._finally)
        self.inlet.on_error(error)

    def _finally(self) -> None:
        self._clean_up(self.listener.on_end)

    def _clean_up(self, fn: Callable[..., object] | None) -> None:
        """Call where the flow has ended."""
        failed = self._show(fn)
        if failed is not None:
            self.inlet.cleanup_failed(failed.take())

    def _show(self, fn: Callable[..., object] | None, *arguments: object) -> Failed | None:
        """Call a function, if there is one; return its failure."""
        outcome = None if fn is None else guarded(self.inlet.context, _call, fn, *arguments)
        return outcome if isinstance(outcome, Failed) else None


def _call(fn: Callable[..., object], *arguments: object) -> None:
    refuse_coroutine(fn, fn(*arguments), "pass a function that does its work when it is called")
