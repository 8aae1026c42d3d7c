"""The source that is made anew for each subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, frozen

from ..._arbiter import Coordinator
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .._fluent import check_flow

T = TypeVar("T")


@frozen
class Defer(Pushed[T]):
    """Source of ``Flow.defer``."""

    factory: Callable[[], FlowLike]

    passes_on = True

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Make the flow, in the subscriber's context, and begin it."""
        flow = inlet.context.copy().run(self.factory)
        check_flow("defer", flow)
        deferred = self._reading(inlet)
        deferred.advance(flow)
        return deferred

    def _reading(self, inlet: Inlet[Any]) -> Deferred:
        return Deferred(inlet)


@define(eq=False)
class Deferred(Coordinator):
    """Passes one flow through."""

    def on_source_complete(self) -> None:
        """Complete with it."""
        self.complete()
