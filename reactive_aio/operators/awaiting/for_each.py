"""The base of the end that awaits a function for several elements at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from attrs import field, frozen

from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from ._queues import REJECTED, queue_for
from .in_flight import InFlight


def _nothing(_item: object, _result: object) -> object:
    return REJECTED


@frozen
class ForEachAsync(Pushed[NoReturn]):
    """Source of ``Flow.for_each`` with ``max_concurrency``. It emits nothing, so its demand is never met."""

    flow: FlowLike = field(repr=False)
    fn: Callable[[Any], Awaitable[object]]
    max_concurrency: int

    @property
    def name(self) -> str:
        """The name of the end."""
        return "for_each"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    @property
    def followed(self) -> None:
        """Stay with the subscriber, which awaits."""

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read the flow."""
        in_flight = InFlight(inlet, self.fn, self.max_concurrency, queue_for("completion"), _nothing)
        in_flight.begin(self.flow)
        return in_flight
