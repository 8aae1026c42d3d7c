"""The combinator that holds a flow to the rules of Reactive Streams while it runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

from attrs import frozen

from ..._plan import Inlet, Pushed
from ..._plan.nodes import FlowLike
from ...errors import ProtocolViolation
from ...hooks import discard, drop_error
from ...spec import Subscriber, Subscription
from ..sourcing.publisher import PublisherEdge

T = TypeVar("T")


@frozen
class Strict(Pushed[T]):
    """Source of ``Flow.strict``."""

    flow: FlowLike
    is_transparent = True

    @property
    def arguments(self) -> str:
        """None."""
        return ""

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Subscribe to the flow, which speaks to this region by the contract, in the same subscription."""
        from ...strict import strict  # for the few flows that are judged

        edge = PublisherEdge(inlet)
        inlet.subscribe(self.flow, OneByOne(strict(edge)), at_once=False)
        return edge


@frozen(eq=False)
class OneByOne:
    """Speaks to a subscriber that is judged, an element at a time (a Receiver).

    A violation has been told by on_error when it is raised here.
    """

    subscriber: Subscriber[Any]

    def on_subscribe(self, subscription: Subscription) -> None:
        """Hand over the subscription."""
        self.subscriber.on_subscribe(subscription)

    def on_chunk(self, items: list[Any]) -> None:
        """Hand over the elements, one signal each."""
        for at, item in enumerate(items):
            try:
                self.subscriber.on_next(item)
            except ProtocolViolation:
                discard(items[at:])
                return

    def on_error(self, error: BaseException) -> None:
        """Hand over the failure."""
        try:
            self.subscriber.on_error(error)
        except ProtocolViolation:
            drop_error(error)

    def on_complete(self) -> None:
        """Hand over the end."""
        with suppress(ProtocolViolation):
            self.subscriber.on_complete()
