"""The two ends that the verifications drive: a subscriber for publishers, and a publisher for subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from .._core.containers import new_list
from .._core.guard import FAILURES
from ..spec import Subscription, add_demand, quote, subtract_demand


def nothing(*_: Any) -> None:
    """React to nothing."""


@define(eq=False)
class Probe:
    """A subscriber that is driven by hand. It keeps its signals, and requests and cancels on command."""

    start: Callable[[Probe], object] = nothing
    """Called in on_subscribe."""
    react: Callable[[Probe], object] = nothing
    """Called in on_next."""
    subscription: Subscription | None = field(init=False, default=None)
    items: list[Any] = field(init=False, factory=new_list)
    error: BaseException | None = field(init=False, default=None)
    completed: bool = field(init=False, default=False)

    def on_subscribe(self, subscription: Subscription) -> None:
        """Keep the first subscription."""
        if subscription is None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            raise TypeError(f"on_subscribe(None): {quote('2.13')}")
        if self.subscription is None:
            self.subscription = subscription
            self.start(self)
        else:
            subscription.cancel()

    def on_next(self, item: Any) -> None:
        """Keep the element."""
        if item is None:
            raise TypeError(f"on_next(None): {quote('2.13')}")
        self.items.append(item)
        self.react(self)

    def on_error(self, error: BaseException) -> None:
        """Keep the failure."""
        if error is None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            raise TypeError(f"on_error(None): {quote('2.13')}")
        self.error = error

    def on_complete(self) -> None:
        """Keep the end."""
        self.completed = True

    @property
    def over(self) -> bool:
        """Return whether the stream has ended."""
        return self.completed or self.error is not None

    def request(self, n: Any) -> None:
        """Request, and ignore exceptions, which are in the trace."""
        self._ask(lambda subscription: subscription.request(n))

    def cancel(self) -> None:
        """Cancel, and ignore exceptions, which are in the trace."""
        self._ask(lambda subscription: subscription.cancel())

    def _ask(self, ask: Callable[[Subscription], None]) -> None:
        if self.subscription is not None:
            try:
                ask(self.subscription)
            except FAILURES:
                return


@define(eq=False)
class HandPublisher:
    """A publisher of the verification, which keeps the rules. Elements are sent by hand.

    With ``feed`` it answers each request from inside the call, which rules 3.10 and 3.11 allow.
    """

    elements: list[Any] = field(factory=new_list)
    """Elements sent in answer to demand, before those sent by hand."""
    ends: bool = False
    """Complete after the last of ``elements``."""
    asked: Callable[[HandPublisher], object] = nothing
    """Called in request, after the demand was added."""
    left: Callable[[HandPublisher], object] = nothing
    """Called in cancel."""
    subscriber: Any = field(init=False, default=None)
    demand: int = field(init=False, default=0)
    requested: int = field(init=False, default=0)
    cancelled: bool = field(init=False, default=False)
    _sending: bool = field(init=False, default=False)

    def subscribe(self, subscriber: Any) -> None:
        """Serve one subscriber."""
        self.subscriber = subscriber
        subscriber.on_subscribe(self)
        self._send()

    def request(self, n: int) -> None:
        """Note the demand, and send elements if there are any."""
        self.demand = add_demand(self.demand, n) if n > 0 else self.demand
        self.requested = add_demand(self.requested, max(n, 0))
        self.asked(self)
        self._send()

    def cancel(self) -> None:
        """Note it."""
        if not self.cancelled:
            self.cancelled = True
            self.left(self)

    def send(self, *items: Any) -> None:
        """Send elements, whatever the demand."""
        for item in items:
            self.demand = subtract_demand(self.demand, 1)
            self.subscriber.on_next(item)

    def _send(self) -> None:
        if self._sending:
            return
        self._sending = True
        try:
            while self.elements and self.demand and not self.cancelled:
                self.send(self.elements.pop(0))
            if self.ends and not self.elements and not self.cancelled:
                self.ends = False
                self.subscriber.on_complete()
        finally:
            self._sending = False
