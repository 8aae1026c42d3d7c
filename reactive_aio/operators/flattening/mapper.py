"""The function that makes a flow of an element, as the operators of this family call it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from contextvars import Context
from typing import Any

from attrs import Factory, define, field

from ..._arbiter import Inner
from ..._core.guard import FAILURES, Failed, as_of_a_generator
from ..._core.notes import add_note
from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from .._fluent import is_flow


@define(eq=False)
class Mapper:
    """Calls the function, in the subscriber's context, and counts the elements of one subscription for errors."""

    inlet: Inlet[Any]
    method: str
    fn: Callable[[Any], FlowLike]
    _context: Context = field(init=False, default=Factory(lambda self: self.inlet.context, takes_self=True))
    index: int = field(init=False, default=-1)
    """The number of the latest element."""

    def __call__(self, item: Any) -> FlowLike | Failed:
        """Return the flow of an element, or the failure with a note of its place."""
        self.index += 1
        try:
            flow = self._context.copy().run(self.fn, item)  # as `guarded`, without a call: each element comes by here
        except FAILURES as error:
            return self._failed(as_of_a_generator(error, f"the function of {self.method}()"))
        return flow if is_flow(flow) else self._failed(self._wrong(flow))

    def locate(self, inner: Inner) -> None:
        """Note on the failure of a flow the element that it was made of. The flow's key is the element's number."""
        if inner.error is not None and inner.key is not None:
            add_note(inner.error, f"in the flow that {self.inlet.where}, made of element #{inner.key}")

    def _failed(self, error: BaseException) -> Failed:
        add_note(error, f"in {self.inlet.where}, on element #{self.index}")
        return Failed(error)

    def _wrong(self, flow: object) -> TypeError:
        kind = type(flow).__name__
        advice = (
            "Make a flow of it with Flow.from_async_iterable(...)"
            if isinstance(flow, AsyncIterable)
            else "Use flat_map_iterable() for a function that returns an iterable, and map_async() for an async function"
        )
        return TypeError(f"{self.method}() takes a function that returns a flow, not {kind}. {advice}")
