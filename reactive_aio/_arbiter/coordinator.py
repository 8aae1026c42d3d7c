"""The coordinator: subscribes to one source after another, each through a subscriber of its own.

concat, repeat, retry, on_error_resume_next and defer are coordinators. They differ only in what they do when a source
ends.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from attrs import define, field

from .._core.guard import FAILURES, Failed
from .._plan.nodes import FlowLike
from .arbiter import SubscriptionArbiter
from .drain import Drain
from .inner import Inner


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
    _given: Inner = field(init=False, factory=lambda: Inner(None))
    """Stands for the subscriber of a source that needs none."""

    def request(self, n: int) -> None:
        """Pass demand to the arbiter, or begin with given elements, which have waited for it."""
        self.arbiter.request(n)
        if self._next is not None:
            self.later()

    def cancel(self) -> None:
        """Cancel by the arbiter, and forget the source to come."""
        inner, self._inner = self._inner, None
        self._next = None
        if inner is not None:
            inner.cancel()
        self.arbiter.cancel()

    def leave(self) -> None:
        """Cancel the current source, which counts as failed. Its later signals go to the hooks."""
        inner, self._inner = self._inner, None
        self._next = None
        if inner is not None:
            inner.abandon()
        self.arbiter.leave()

    @property
    def waits(self) -> bool:
        """Whether it waits for time, or for an answer, before it reads a source."""
        return False

    def advance(self, flow: FlowLike) -> None:
        """Subscribe to ``flow`` next."""
        self._next = flow
        if self.busy:
            self._noted = True  # as `go`, without a call: a retry comes by here for each attempt
        else:
            self.go()

    def step(self) -> bool:
        """Subscribe to the flow that is next."""
        flow, self._next = self._next, None
        if flow is None or self.arbiter.cancelled:
            return False
        items = self.inlet.given(flow, self.arbiter.requested)
        if items is not None:
            self._pass_on(items)
            return self._next is not None
        if not self.arbiter.requested and self.inlet.is_given(flow):
            self._next = flow  # with demand nobody has to subscribe
            return False
        inner = self._inner = Inner(self, arbiter=self.arbiter)
        try:
            self.inlet.subscribe(flow, inner, at_once=True)
        except FAILURES as error:
            inner.on_error(error)
        return self._next is not None

    def _pass_on(self, items: list[Any] | Failed) -> None:
        """Pass on the given elements of a source, and its end, unless it has been cancelled by then."""
        inner = self._inner = self._given
        if isinstance(items, Failed):
            self._inner = None
            self._source_failed(items)
            return
        if items:
            self.on_chunk(inner, items)
        if self._inner is inner:
            self.on_end(inner)

    def complete(self) -> None:
        """Complete the whole."""
        self.inlet.on_complete()

    def fail(self, error: BaseException) -> None:
        """Fail the whole."""
        self.inlet.on_error(error)

    # -- the Owner of the source that is read

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Account for elements, then pass them on."""
        self.emitted = True
        self.arbiter.produced(len(items))
        self.inlet.on_chunk(items)

    def on_end(self, inner: Inner) -> None:
        """Note that the source has ended, and decide what follows."""
        self._inner = None
        self.arbiter.ended()
        error, inner.error = inner.error, None  # as take_error, which would be one more call for each source
        if error is None:
            self.on_source_complete()
        else:
            self.on_source_error(error)

    @abstractmethod
    def on_source_complete(self) -> None:
        """Decide what follows a source that completed: `advance` or `complete`."""

    def _source_failed(self, failed: Failed) -> None:
        """Decide what follows given elements that failed. Who takes the failure sees it."""
        self.on_source_error(failed.take())

    def on_source_error(self, error: BaseException) -> None:
        """Decide what follows a source that failed: `advance` or, as here, `fail`."""
        self.fail(error)
