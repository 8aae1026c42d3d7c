"""The function that makes a flow of an element, as the operators of this family call it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from ...notes import add_note
from ...segments import Inlet
from ...segments.plan import FlowLike
from .._fluent import is_flow

FAILURES: Final = (Exception, asyncio.CancelledError)
"""What the function may raise."""


@define(eq=False)
class Mapper:
    """Calls the function, in the subscriber's context, and counts the elements of one subscription for errors."""

    inlet: Inlet[Any]
    method: str
    fn: Callable[[Any], FlowLike]
    _count: int = field(init=False, default=0)

    def __call__(self, item: Any) -> FlowLike:
        """Give the flow of an element; a failure comes out with a note of where it was."""
        self._count += 1
        try:
            return self._flow(item)
        except FAILURES as error:
            add_note(error, f"in {self.inlet.where}, on element #{self._count - 1}")
            raise

    def _flow(self, item: Any) -> FlowLike:
        try:
            flow = self.inlet.context.copy().run(self.fn, item)
        except StopIteration as stop:
            raise RuntimeError(f"the function of {self.method}() raised StopIteration") from stop
        if not is_flow(flow):
            raise TypeError(
                f"{self.method}() takes a function that returns a flow, not {type(flow).__name__}: "
                "flat_map_iterable() takes one that returns an iterable, map_async() one that is to be awaited"
            )
        return flow
