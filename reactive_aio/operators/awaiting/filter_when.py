"""The operator that awaits a predicate for each element."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import Factory, field, frozen

from ..._fusion import Stage
from ..._plan import Capabilities, Inlet, Pushed, reach_of_awaiting
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from ._queues import REJECTED, queue_for
from .in_flight import InFlight
from .in_region import FilterWhenInRegion

T = TypeVar("T")


def _if_true(item: object, result: object) -> object:
    return item if result else REJECTED


@frozen
class FilterWhen(Pushed[T]):
    """Source of ``Flow.filter_when``."""

    flow: FlowLike = field(repr=False)
    predicate: Callable[[Any], Awaitable[object]]
    max_concurrency: int

    capabilities: Capabilities = field(
        init=False,
        repr=False,
        eq=False,
        default=Factory(lambda it: reach_of_awaiting(it.flow, it.as_stage()), takes_self=True),
    )

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def as_stage(self) -> Stage[Any, Any]:
        """The stage."""
        return FilterWhenInRegion(self.predicate, self.max_concurrency)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read the flow."""
        in_flight = InFlight(inlet, self.predicate, self.max_concurrency, queue_for("input"), _if_true)
        in_flight.begin(self.flow)
        return in_flight
