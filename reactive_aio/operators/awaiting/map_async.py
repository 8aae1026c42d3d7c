"""The operator that awaits a function for each element."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from attrs import Factory, field, frozen

from ..._fusion import Stage, label
from ..._plan import Capabilities, Inlet, Pushed, reach_of_awaiting
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from ._queues import Order, queue_for
from .in_flight import InFlight
from .in_region import MapAsyncInRegion

T = TypeVar("T")


@frozen
class MapAsync(Pushed[T]):
    """Source of ``Flow.map_async``."""

    flow: FlowLike = field(repr=False)
    fn: Callable[[Any], Awaitable[T]]
    max_concurrency: int
    order: Order | Callable[[Any], Hashable]

    capabilities: Capabilities = field(
        init=False,
        repr=False,
        eq=False,
        default=Factory(lambda it: reach_of_awaiting(it.flow, it.as_stage()), takes_self=True),
    )

    @property
    def arguments(self) -> str:
        """The arguments, the order only where it is another than that of the elements."""
        order = "" if self.order == "input" else f", order={label(self.order)}"
        return f"{label(self.fn)}, {self.max_concurrency}{order}"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def as_stage(self) -> Stage[Any, Any] | None:
        """The stage, for the order of the elements.

        Other orders depend on time, so that a task could not be done again.
        """
        return MapAsyncInRegion(self.fn, self.max_concurrency) if self.order == "input" else None

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read the flow."""
        in_flight = InFlight(inlet, self.fn, self.max_concurrency, queue_for(self.order))
        in_flight.begin(self.flow)
        return in_flight
