"""The edge towards subscribers of other code, where the contract is kept to the letter.

Inside a flow None is an ordinary element. The contract has no null element, so at the edge it is refused
(rule 2.13), by the name of the operator that made it.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from attrs import define, field

from .._core.guard import FAILURES
from .._core.notes import add_note
from ..hooks import discard, drop_error
from ..spec import Subscriber, Subscription, quote

SIGNALS = ("on_subscribe", "on_next", "on_error", "on_complete")


def check_subscriber(subscriber: object) -> None:
    """Raise unless the argument can receive signals."""
    if subscriber is None:
        raise TypeError(f"subscribe(None): {quote('1.9')}. Pass an object with {', '.join(SIGNALS)}")
    missing = [name for name in SIGNALS if not callable(getattr(subscriber, name, None))]
    if missing:
        raise TypeError(f"{type(subscriber).__name__} is no Subscriber: it lacks {', '.join(missing)}")
    coroutines = [name for name in SIGNALS if iscoroutinefunction(getattr(subscriber, name))]
    if coroutines:
        raise TypeError(
            f"{type(subscriber).__name__}.{coroutines[0]} is async def, but a signal is an ordinary method. "
            "To await for each element, use flow.for_each(fn) or `async for`"
        )


@define(eq=False)
class SubscriberEdge:
    """Signals to a subscriber of other code, one element at a time (a Receiver)."""

    subscriber: Subscriber[Any]
    maker: str
    """The operator that makes the elements, in words."""
    _subscription: Subscription = field(init=False)
    _over: bool = field(init=False, default=False)
    _error: BaseException | None = field(init=False, default=None)
    """The failure that has been handed over."""

    def on_subscribe(self, subscription: Subscription) -> None:
        """Hand over the subscription."""
        self._subscription = subscription
        self._signal(self.subscriber.on_subscribe, subscription)

    def on_chunk(self, items: list[Any]) -> None:
        """Hand over the elements, one signal each."""
        on_next = self.subscriber.on_next
        for at, item in enumerate(items):
            if self._over:
                discard(items[at:])
                return
            if item is None:
                self._cancel()
                error = TypeError(f"None can't leave the flow: {quote('2.13')}. It was made in {self.maker}")
                self._signal(self.subscriber.on_error, error)
                return
            self._signal(on_next, item)

    def on_error(self, error: BaseException) -> None:
        """Hand over the failure."""
        if self._over:
            drop_error(error)
        else:
            self._over, self._error = True, error
            self._signal(self.subscriber.on_error, error)

    def take_error(self) -> BaseException | None:
        """Return the failure that has been handed over, when all has ended."""
        error, self._error = self._error, None
        return error

    def on_complete(self) -> None:
        """Hand over the end."""
        if not self._over:
            self._over = True
            try:
                self.subscriber.on_complete()
            except FAILURES as failure:
                drop_error(failure)

    def _signal(self, method: Callable[[Any], None], value: Any) -> None:
        try:
            method(value)
        except FAILURES as failure:
            # Rule 2.13: a subscriber that raises from a signal counts as having cancelled, and gets no more signals.
            add_note(failure, f"raised by a subscriber: {quote('2.13')}")
            self._cancel()
            drop_error(failure)

    def _cancel(self) -> None:
        self._over = True
        self._subscription.cancel()
