"""A subscriber that records its signals, in the order and at the times of one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final, Generic, TypeVar

from ..spec import Subscription, add_demand, quote
from .snapshot import Event

T = TypeVar("T")

NEXT: Final = "next"
ERROR: Final = "error"
COMPLETE: Final = "complete"


class Listener(Generic[T]):
    """Records every signal, and the rules that the publisher broke. It requests nothing unless told to.

    Signals of other threads are handled on the loop that the listener was made on.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.requested: int = 0
        self.received: int = 0
        self.events: list[Event] = []
        self.violations: list[str] = []
        self.cancelled: bool = False
        self.subscription: Subscription | None = None
        self._home = get_ident()
        self._waiter: asyncio.Future[None] | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the subscription."""
        self._at_home(self._subscribed, subscription)

    def on_next(self, item: T) -> None:
        """Take an element."""
        self._at_home(self._signal, (NEXT, item))

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        self._at_home(self._signal, (ERROR, error))

    def on_complete(self) -> None:
        """Take the end."""
        self._at_home(self._signal, (COMPLETE, None))

    def _at_home(self, handle: Callable[[Any], None], value: Any) -> None:
        """Handle a signal on the loop of the test: at once if it comes there."""
        if get_ident() == self._home:
            handle(value)
        else:
            self.loop.call_soon_threadsafe(handle, value)

    def _subscribed(self, subscription: Subscription) -> None:
        if self.subscription is not None:
            self.violations.append(f"a second on_subscribe: {quote('2.12')}")
            subscription.cancel()
            return
        self.subscription = subscription
        self.wake()

    def _signal(self, signal: tuple[str, Any]) -> None:
        kind, value = signal
        if self.subscription is None:
            self.violations.append(f"{kind} before on_subscribe: {quote('1.9')}")
        if self.events and self.events[-1].kind != NEXT:
            self.violations.append(f"{kind} after {self.events[-1].kind}: {quote('1.7')}")
        elif value is None and kind != COMPLETE:
            self.violations.append(f"on_{kind}(None): {quote('2.13')}")
        if kind == NEXT:
            self.received += 1
            if self.received > self.requested:
                self.violations.append(f"{self.received} elements for a demand of {self.requested}: {quote('1.1')}")
        if not self.cancelled:
            self.events.append(Event(kind, value, self.loop.time()))
            self.wake()

    def wake(self) -> None:
        """Wake the tasks that wait in ``arrival``."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def arrival(self) -> asyncio.Future[None]:
        """Return a future for the next signal of any kind."""
        self._waiter = self.loop.create_future()
        return self._waiter

    @property
    def ended(self) -> bool:
        """Return whether nothing more may come."""
        return self.cancelled or (bool(self.events) and self.events[-1].kind != NEXT)

    def request(self, n: int) -> None:
        """Ask for more, once there is a subscription."""
        assert self.subscription is not None
        if n > 0:
            self.requested = add_demand(self.requested, n)
        self.subscription.request(n)

    def cancel(self) -> None:
        """Cancel, once there is a subscription. Later signals are ignored (rule 2.8)."""
        assert self.subscription is not None
        self.cancelled = True
        self.subscription.cancel()
