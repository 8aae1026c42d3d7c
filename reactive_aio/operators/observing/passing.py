"""A stand-in between a flow and the region that reads it, which passes all signals on."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from ..._plan import Inlet
from ...hooks import discard, drop_error
from ...spec import Subscription


@define(eq=False)
class Passing:
    """Passes on what comes, until the end (a Receiver to the one, the Subscription of the other)."""

    inlet: Inlet[Any]
    over: bool = field(init=False, default=False)
    """Whether the flow has ended, or been cancelled."""
    _subscription: Subscription | None = field(init=False, default=None)

    # -- what comes from downstream

    def request(self, n: int) -> None:
        """Pass demand on."""
        if self._subscription is not None:
            self._subscription.request(n)

    def cancel(self) -> None:
        """Pass the cancellation on."""
        self.over = True
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()

    # -- what comes from upstream

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the subscription."""
        self._subscription = subscription

    def on_chunk(self, items: list[Any]) -> None:
        """Pass elements on."""
        if self.over:
            discard(items)
        else:
            self.inlet.on_chunk(items)

    def on_error(self, error: BaseException) -> None:
        """Pass the failure on."""
        if self.ends():
            self.inlet.on_error(error)
        else:
            drop_error(error)

    def on_complete(self) -> None:
        """Pass the end on."""
        if self.ends():
            self.inlet.on_complete()

    def ends(self) -> bool:
        """Note the end; False if there was one before."""
        if self.over:
            return False
        self.over = True
        self._subscription = None
        return True
