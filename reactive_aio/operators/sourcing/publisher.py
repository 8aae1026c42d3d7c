"""The source that reads a publisher of other code."""

from __future__ import annotations

from typing import Any

from attrs import define, field, frozen

from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._plan import Inlet, Pushed
from ...errors import ProtocolViolation
from ...hooks import discard, drop_error
from ...spec import Publisher, Subscription, add_demand, quote, subtract_demand


@frozen
class FromPublisher(Pushed[Any]):
    """Source of ``Flow.from_publisher``."""

    publisher: Publisher[Any]

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Subscribe with a fresh subscriber (rules 1.10 and 2.12)."""
        edge = ForeignEdge(inlet)
        try:
            self.publisher.subscribe(edge)
        except FAILURES as error:
            edge.refuse(error)
        return edge


def let_go(subscription: Subscription) -> None:
    """Cancel a subscription of another library. An exception from it breaks rule 3.15 and goes to the hook."""
    try:
        subscription.cancel()
    except FAILURES as error:
        drop_error(error)


@define(eq=False)
class PublisherEdge:
    """Subscribes to a publisher of other code, which signals on any thread, and checks that it keeps the rules.

    Each signal becomes an event on the loop of the region: wherever the call comes from, what follows runs in the
    subscriber's context and never inside the publisher. A Subscriber on one side; on the other the Subscription of the region, which may request and cancel before
    the publisher has called on_subscribe.
    """

    inlet: Inlet[Any]
    _subscription: Subscription | None = field(init=False, default=None)
    _subscribed: bool = field(init=False, default=False)
    _asked: int = field(init=False, default=0)
    _outstanding: int = field(init=False, default=0)
    _over: bool = field(init=False, default=False)

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the subscription, once."""
        if subscription is None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            raise TypeError(f"on_subscribe(None): {quote('2.13')}")
        if self._over:
            # From here, as there may be no turn any more: rule 3.5 lets cancel come from anywhere.
            let_go(subscription)
        else:
            self.inlet.post(self._subscribe, subscription)

    def on_next(self, item: Any) -> None:
        """Take a requested element."""
        if item is None:
            error = TypeError(f"on_next(None) from a publisher: {quote('2.13')}")
            self.inlet.post(self._break, error)
            raise error
        self.inlet.post(self._next, item)

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        if error is None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            wrong = TypeError(f"on_error(None) from a publisher: {quote('2.13')}")
            self.inlet.post(self._break, wrong)
            raise wrong
        self.inlet.post(self._error, error)

    def on_complete(self) -> None:
        """Take the end."""
        self.inlet.post(self._complete, None)

    def request(self, n: int) -> None:
        """Pass the demand of the region on, or keep it until there is a subscription."""
        if not self._over:
            self._outstanding = add_demand(self._outstanding, n)
            if self._subscription is None:
                self._asked = add_demand(self._asked, n)
            else:
                self._pass_on(self._subscription, n)

    def cancel(self) -> None:
        """Pass the cancellation on, or cancel the subscription when it comes."""
        if not self._over:
            self._over = True
            subscription, self._subscription = self._subscription, None
            if subscription is not None:
                let_go(subscription)

    def _pass_on(self, subscription: Subscription, n: int) -> None:
        try:
            subscription.request(n)
        except FAILURES as error:
            # It breaks rule 3.16; posted, because the region is in the middle of its turn.
            self.inlet.post(self._break, error)

    def refuse(self, error: BaseException) -> None:
        """Signal what ``subscribe`` raised: it should have signalled it itself (rule 1.9)."""
        self._break(error)

    def _subscribe(self, subscription: Subscription) -> None:
        if self._over or self._subscribed:
            let_go(subscription)  # rule 2.5
            return
        self._subscribed = True
        self._subscription = subscription
        asked, self._asked = self._asked, 0
        if asked:
            self._pass_on(subscription, asked)

    def _next(self, item: Any) -> None:
        if self._over:
            discard([item])
        elif not self._subscribed:
            self._break(ProtocolViolation(f"on_next before on_subscribe: {quote('1.9')}"))
        elif not self._outstanding:
            discard([item])
            self._break(ProtocolViolation(f"an element that was not requested: {quote('1.1')}"))
        else:
            self._outstanding = subtract_demand(self._outstanding, 1)
            self.inlet.on_chunk([item])

    def _error(self, error: BaseException) -> None:
        if self._over:
            drop_error(error)
        else:
            self._over = True
            self._subscription = None
            self._fail(error)

    def _complete(self, _: None) -> None:
        if not self._over:
            self._over = True
            self._subscription = None
            self.inlet.on_complete()

    def _break(self, error: BaseException) -> None:
        """End the stream because the publisher broke the contract."""
        if self._over:
            drop_error(error)
        else:
            self.cancel()
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.inlet.on_error(error)


class ForeignEdge(PublisherEdge):
    """Adds to each failure the place where the publisher became a flow."""

    __slots__ = ()

    def _fail(self, error: BaseException) -> None:
        add_note(error, f"in {self.inlet.where}")
        super()._fail(error)
