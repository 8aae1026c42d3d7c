"""The subscriber of one inner flow: one automaton for all that read flows, one at a time or several."""

from __future__ import annotations

from collections import deque
from collections.abc import MutableSequence
from typing import Any, Protocol

from attrs import define, field

from .._core.containers import new_deque
from .._core.missing import NOTHING
from .._plan.source import Abandonable, AtHand, Feed
from ..hooks import discard, drop_error
from ..spec import UNBOUNDED, Subscription, add_demand, refill_after
from .arbiter import SubscriptionArbiter


class Owner(Protocol):
    """Receives the signals of inner flows."""

    @property
    def inlet(self) -> Feed[Any]:
        """The place where it delivers the elements of the flows."""
        ...

    def on_chunk(self, inner: Inner, items: list[Any], /) -> None:
        """Handle elements that have arrived: `Inner.keep` them, or pass them on and count them as `Inner.consumed`."""

    def on_end(self, inner: Inner, /) -> None:
        """Handle the end of an inner flow, which comes after the kept elements."""


class Appended(Protocol):
    """A list that flows append elements to."""

    @property
    def elements(self) -> MutableSequence[Any]:
        """The list, the same one for ever."""
        ...

    @property
    def due(self) -> bool:
        """Whether the elements are going to be handled, so that `arrived` need not be called again."""
        ...

    def arrived(self) -> None:
        """Handle elements that have just been appended, or see to it that they are."""


@define(eq=False)
class Inner:
    """The subscriber of one inner flow, used for no other (rules 1.10 and 2.12; a Receiver).

    Who asks for elements: With a ``prefetch`` so many are asked for at once, and more when three quarters have been
    consumed. No more than ``prefetch`` are ever outstanding or kept. With an ``arbiter`` that does, from the moment on
    when there is a subscription, and cancels it too. Else what its owner requests is asked for, and no more is kept
    than that.
    """

    _owner: Owner | None
    prefetch: int | None = None
    key: Any = None
    """Which of the flows it is, for its owner."""
    arbiter: SubscriptionArbiter | None = None
    """Carries demand over to this flow from the one before."""
    kept: deque[Any] = field(init=False, factory=new_deque)  # bounded by what was requested
    """Elements that have arrived and have not been taken."""
    ended: bool = field(init=False, default=False)
    """Whether nothing follows the kept elements."""
    error: BaseException | None = field(init=False, default=None)
    """The failure that comes after the kept elements. The caller that signals it takes it by `take_error`."""
    _subscription: Subscription | None = field(init=False, default=None)
    _wanted: int = field(init=False, default=0)
    """The demand to request when there is a subscription."""
    received: int = field(init=False, default=0)
    """Elements that have arrived, in all."""
    consumed: int = field(init=False, default=0)
    """Elements that have been consumed and not been requested again."""
    limit: int = field(init=False, default=UNBOUNDED)
    """With how many consumed it is `hungry`."""

    def __attrs_post_init__(self) -> None:
        if self.prefetch is not None:
            self._wanted = self.prefetch
            self.limit = refill_after(self.prefetch)

    @property
    def spent(self) -> bool:
        """Whether it has ended, and nothing of it is left to take."""
        return self.ended and not self.kept

    @property
    def subscription(self) -> Subscription | None:
        """That of the flow, until it has ended."""
        return self._subscription

    # -- for the owner

    def request(self, n: int) -> None:
        """Request elements, if there is no prefetch."""
        if self.ended:
            return
        if self._subscription is None:
            self._wanted = add_demand(self._wanted, n)
        else:
            self._subscription.request(n)

    def pull(self) -> Any:
        """Return the next of given elements, as if it had been requested, kept and taken. NOTHING for other flows."""
        given = self._subscription
        if not isinstance(given, AtHand):
            return NOTHING
        item = given.pull()
        if item is not NOTHING:
            self.received += 1
            if given.spent:
                self.ended = True
                self._subscription = None
        return item

    def keep(self, items: list[Any]) -> None:
        """Keep elements until they are taken."""
        self.kept.extend(items)

    def take(self, n: int) -> list[Any]:
        """Return the oldest elements, ``n`` at most. Then it may be `hungry`."""
        kept = self.kept
        if len(kept) <= n:
            taken = list(kept)
            kept.clear()
        elif n == 1:
            taken = [kept.popleft()]
        else:
            taken = [kept.popleft() for _ in range(n)]
        self.consumed += len(taken)
        return taken

    @property
    def hungry(self) -> bool:
        """Whether there is a prefetch and enough of it has been consumed to request more."""
        return self.consumed >= self.limit and not self.ended

    def replenish(self) -> None:
        """Ask for as much as has been consumed, if it is hungry; by `Gathering.feed` the others have their turn before."""
        if self.hungry and self._subscription is not None:
            consumed, self.consumed = self.consumed, 0
            self._subscription.request(consumed)

    def take_error(self) -> BaseException | None:
        """Return the failure. The caller signals it."""
        error, self.error = self.error, None
        return error

    def abandon(self) -> None:
        """Hear of nothing any more. The flow counts as failed."""
        subscription = self._subscription
        self.cancel()
        if isinstance(subscription, Abandonable):
            subscription.abandon()

    def cancel(self) -> None:
        """Cancel the flow, or leave that to the arbiter. Kept and later elements go to the hooks."""
        owner, self._owner = self._owner, None
        self.ended = True
        subscription, self._subscription = self._subscription, None
        if subscription is not None and self.arbiter is None:
            subscription.cancel()
        if self.kept:
            kept = list(self.kept)
            self.kept.clear()
            discard(kept)
        error, self.error = self.error, None
        if error is not None and owner is not None:
            owner.inlet.dropped(error)

    # -- for a flow that appends elements itself, one at a time, in place of signals

    def appending(self) -> tuple[Appended, int] | None:
        """Return the list that the flow may append to, and after how many elements it is to call `count`.

        Then it asks again. None: it is to signal its elements.
        """
        return None

    def count(self, n: int) -> None:
        """Count elements that have been appended."""
        self.received += n

    # -- the Receiver of the flow

    def on_subscribe(self, subscription: Subscription) -> None:
        """Request the demand, unless the flow subscribes twice (rule 2.5) or too late."""
        if self._owner is None or self._subscription is not None or self.ended:
            subscription.cancel()
            return
        self._subscription = subscription
        if self.arbiter is not None:
            self.arbiter.switch_to(subscription)
            return
        wanted, self._wanted = self._wanted, 0
        if wanted:
            subscription.request(wanted)

    def on_chunk(self, items: list[Any]) -> None:
        """Pass elements to the owner."""
        owner = self._owner
        if owner is None or self.ended:
            discard(items)
        else:
            self.received += len(items)
            owner.on_chunk(self, items)

    def on_error(self, error: BaseException) -> None:
        """Pass the failure to the owner."""
        if self._owner is None or self.ended:
            drop_error(error)
        else:
            self.error = error
            self.on_complete()

    def on_complete(self) -> None:
        """Pass the end to the owner."""
        owner = self._owner
        if owner is not None and not self.ended:
            self.ended = True
            self._subscription = None
            owner.on_end(self)
