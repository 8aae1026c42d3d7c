"""The coordinator: subscribes to one source after another, each through a subscriber of its own.

concat, repeat, retry, on_error_resume_next and defer are coordinators; they differ only in what they do when a
source ends.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from attrs import define, field

from .._core.guard import FAILURES
from .._plan.nodes import FlowLike
from .._plan.source import Abandonable
from ..hooks import discard, drop_error
from ..spec import Subscription
from .arbiter import SubscriptionArbiter
from .drain import Drain


@define(eq=False)
class Coordinator(Drain):
    """Subscribes to the sources of a combinator in turn; the Subscription of the region.

    However many sources end at once, the stack does not grow: what follows a source that ends while it is being
    subscribed to is noted, and the drain takes it.
    """

    arbiter: SubscriptionArbiter = field(init=False, factory=SubscriptionArbiter)
    emitted: bool = field(init=False, default=False)
    """Whether a source has emitted anything."""
    _next: FlowLike | None = field(init=False, default=None)
    _inner: Inner | None = field(init=False, default=None)
    """The subscriber of the source that is read now."""

    def request(self, n: int) -> None:
        """Pass demand to the arbiter."""
        self.arbiter.request(n)

    def cancel(self) -> None:
        """Cancel by the arbiter, and forget the source to come."""
        self._next = self._inner = None
        self.arbiter.cancel()

    def leave(self) -> None:
        """Cancel the source that is read now, which counts as failed; what may still come of it goes to the hooks."""
        inner, self._inner = self._inner, None
        self._next = None
        if inner is not None:
            inner.leave()
        self.arbiter.leave()

    def ended(self) -> None:
        """Note that the source that was read has ended."""
        self._inner = None
        self.arbiter.ended()

    def advance(self, flow: FlowLike) -> None:
        """Subscribe to ``flow`` next."""
        self._next = flow
        self.go()

    def step(self) -> bool:
        """Subscribe to the flow that is next."""
        flow, self._next = self._next, None
        if flow is None or self.arbiter.cancelled:
            return False
        inner = self._inner = Inner(self)
        try:
            self.inlet.subscribe(flow, inner, at_once=True)
        except FAILURES as error:
            inner.on_error(error)
        return self._next is not None

    def complete(self) -> None:
        """Complete the whole."""
        self.inlet.on_complete()

    def fail(self, error: BaseException) -> None:
        """Fail the whole."""
        self.inlet.on_error(error)

    def on_source_chunk(self, items: list[Any]) -> None:
        """Account for elements, then pass them on."""
        self.emitted = True
        self.arbiter.produced(len(items))
        self.inlet.on_chunk(items)

    @abstractmethod
    def on_source_complete(self) -> None:
        """Decide what follows a source that completed: `advance` or `complete`."""

    def on_source_error(self, error: BaseException) -> None:
        """Decide what follows a source that failed: `advance` or, as here, `fail`."""
        self.fail(error)


@define(eq=False)
class Inner:
    """The subscriber of one source, used for no other (rules 1.10 and 2.12; a Receiver)."""

    _owner: Coordinator | None
    _subscription: Subscription | None = field(init=False, default=None)

    def on_subscribe(self, subscription: Subscription) -> None:
        """Make the source the current one, unless it subscribes twice (rule 2.5)."""
        owner = self._owner
        if owner is None or self._subscription is not None:
            subscription.cancel()
        else:
            self._subscription = subscription
            owner.arbiter.switch_to(subscription)

    def on_chunk(self, items: list[Any]) -> None:
        """Have the owner see to elements."""
        owner = self._owner
        if owner is None or owner.arbiter.cancelled:
            discard(items)
        else:
            owner.on_source_chunk(items)

    def on_error(self, error: BaseException) -> None:
        """End this source, and have the owner decide."""
        owner = self._end()
        if owner is None:
            drop_error(error)
        else:
            owner.on_source_error(error)

    def on_complete(self) -> None:
        """End this source, and have the owner decide."""
        owner = self._end()
        if owner is not None:
            owner.on_source_complete()

    def leave(self) -> None:
        """Hear of nothing any more; the source counts as failed."""
        self._owner = None
        if isinstance(self._subscription, Abandonable):
            self._subscription.abandon()

    def _end(self) -> Coordinator | None:
        owner, self._owner = self._owner, None
        if owner is None or owner.arbiter.cancelled:
            return None
        owner.ended()
        return owner
