"""The combinator that calls a function for the discarded elements of a flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, frozen

from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...hooks import also_discard, discard, drop_error
from ...spec import Subscription
from .passing import Passing

T = TypeVar("T")


@frozen
class DoOnDiscard(Pushed[T]):
    """Source of ``Flow.do_on_discard``."""

    flow: FlowLike
    fn: Callable[[Any], object]
    is_transparent = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Subscribe to the flow, in a context of its own."""
        context = also_discard(inlet.context, self.fn)
        leaving = Leaving(inlet)
        inlet.discard_by(lambda items: context.copy().run(discard, items))
        inlet.subscribe(self.flow, leaving, at_once=False, context=context)
        return leaving


@define(eq=False)
class Leaving(Passing):
    """Passes elements from the context of the flow to that of the region that reads it, which has other hooks.

    Elements that the region behind does not begin with have been given to nobody, and are the flow's to discard.
    """

    def on_chunk(self, items: list[Any]) -> None:
        """Pass elements on."""
        if self.over:
            discard(items)
        else:
            self._outside(self.inlet.on_chunk, items)

    def on_error(self, error: BaseException) -> None:
        """Pass the failure on."""
        if self.ends():
            self._outside(self.inlet.on_error, error)
        else:
            drop_error(error)

    def on_complete(self) -> None:
        """Pass the end on."""
        if self.ends():
            self._outside(self.inlet.on_complete)

    def _outside(self, call: Callable[..., object], *arguments: object) -> None:
        # A copy, as above: the context itself may have been entered, further down on the stack.
        self.inlet.context.copy().run(call, *arguments)
