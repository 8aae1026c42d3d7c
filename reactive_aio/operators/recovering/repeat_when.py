"""The combinator that subscribes again when its flow completes and a coroutine function says so, in its time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .asking import Asking

T = TypeVar("T")


@frozen
class RepeatWhen(Pushed[T]):
    """Source of ``Flow.repeat_when``."""

    flow: FlowLike
    decide: Callable[[int, int], Awaitable[object]]

    passes_on = True

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the first run."""
        runs = RunsWhen(inlet, self.flow, self.decide)
        runs.advance(self.flow)
        return runs


@define(eq=False)
class RunsWhen(Asking):
    """Asks after each run, with the number of its elements."""

    _count: int = field(init=False, default=0)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Count elements, and pass them on."""
        self._count += len(items)
        super().on_chunk(inner, items)

    def on_source_complete(self) -> None:
        """Ask whether to run once more."""
        count, self._count = self._count, 0
        self.ask(count)

    def refused(self, about: int) -> None:
        """Complete."""
        self.complete()
