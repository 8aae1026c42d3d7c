"""A chain of operators as a Processor, between a publisher and a subscriber of other libraries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from .._core.guard import FAILURES
from .._core.here import Here
from ..errors import ProtocolViolation, SourceConsumedError
from ..hooks import discard, drop_error
from ..operators._fluent import check_count, check_function, is_flow
from ..operators.sourcing.publisher import let_go
from ..spec import Processor, Subscriber, Subscription, quote
from .flow import Flow
from .shared import Shared

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


def processor(chain: Callable[[Flow[T]], Flow[R]], *, lag: int | None = None) -> Processor[T, R]:
    """Turn a chain of operators into a Processor. It subscribes to a publisher, and publishes the chain's elements.

    It takes one publisher and one subscriber, in either order. Each further subscription is cancelled. Each further
    subscriber is refused with SourceConsumedError. With a ``lag`` it takes any number of subscribers, as `Flow.share`
    does. The fastest may be that many elements ahead of the slowest. A subscriber that comes after the end gets the
    end. None is refused at both edges (rule 2.13).

    Demand: that of the chain. Only operators that say so buffer elements.
    Errors: a failure of upstream goes through the chain, which may recover. An exception of its functions cancels
    upstream. An argument that is not a function from flow to flow is refused with TypeError at once.
    Cancel: the last subscriber cancels upstream, also before upstream has subscribed.
    (Akka Streams: ``toProcessor``.)

    >>> import asyncio
    >>> from reactive_aio import Flow, processor
    >>> async def main():
    ...     doubled = processor(lambda flow: flow.map(lambda n: 2 * n).take(3))
    ...     Flow.range(10).subscribe(doubled)  # any publisher
    ...     return await Flow.from_publisher(doubled).to_list()  # any subscriber
    >>> asyncio.run(main())
    [0, 2, 4]
    """
    check_function("processor", chain, "it builds a flow, and awaits nothing")
    made: FlowProcessor[T, R] = FlowProcessor()
    flow = chain(Flow.from_publisher(Upstream(made)))
    if not is_flow(flow):
        raise TypeError(
            f"processor() takes a function that returns a flow, but this one returned {type(flow).__name__}"
        )
    if lag is not None:
        check_count("processor", "lag", lag, 1)
        flow = flow.share(lag=lag, restart="never")
    made.flow = flow
    return made


@frozen(eq=False)
class Upstream:
    """The input of a processor, as its chain reads it (a Publisher)."""

    processor: FlowProcessor[Any, Any]

    def subscribe(self, listener: Subscriber[Any]) -> None:
        """Subscribe the flow's subscriber."""
        self.processor.listen(listener)


@define(eq=False)
class FlowProcessor(Processor[T_contra, R_co], Here):
    """Connects a publisher and a flow, in either order.

    The publisher may signal on any thread. ``_listener``, the flow's own subscriber, posts all signals to its region
    . So it may be called with the lock held, which keeps what came before it in front of what comes after.
    The lock is reentrant because a region whose loop has ended is over at once.
    """

    STAYS: ClassVar[str] = (
        "a processor can't be pickled: its publisher and its subscribers are in this process. Send the function that makes its flow"
    )

    flow: Flow[R_co] | None = field(init=False, default=None)
    """The chain; None once it has its one subscriber, for then it holds the processor."""
    _lock: threading.RLock = field(init=False, factory=threading.RLock)
    _subscription: Subscription | None = field(init=False, default=None)
    _ended: bool = field(init=False, default=False)
    """Whether the publisher has ended before the flow subscribed."""
    _error: BaseException | None = field(init=False, default=None)
    _listener: Subscriber[T_contra] | None = field(init=False, default=None)
    _read: bool = field(init=False, default=False)
    """Whether the flow has subscribed."""
    _subscribed: bool = field(init=False, default=False)
    _left: bool = field(init=False, default=False)
    """Whether the stream downstream is over."""
    _subscribers: int = field(init=False, default=0)
    """The number of subscribers of a shared chain, with those whose regions have not begun yet."""

    # -- the Subscriber of the publisher

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the first subscription, and cancel any other (rule 2.5)."""
        if subscription is None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            raise TypeError(f"on_subscribe(None): {quote('2.13')}")
        with self._lock:
            first, self._subscribed = not self._subscribed, True
            if first:
                self._subscription = subscription
                if self._listener is not None:
                    self._listener.on_subscribe(subscription)
        if self._left or not first:
            let_go(subscription)

    def on_next(self, item: T_contra) -> None:
        """Pass an element on. Without a subscriber none was requested."""
        listener = self._listener
        if listener is not None:
            listener.on_next(item)
        elif item is None:
            raise TypeError(f"on_next(None) from a publisher: {quote('2.13')}")
        else:
            discard([item])
            subscription = self._subscription
            if not self._left:
                self.on_error(ProtocolViolation(f"an element that was not requested: {quote('1.1')}"))
            if subscription is not None:
                let_go(subscription)

    def on_error(self, error: BaseException) -> None:
        """Pass the failure on, or keep it for the subscriber."""
        if error is None:  # pyright: ignore[reportUnnecessaryComparison] - the other side may break it
            raise TypeError(f"on_error(None) from a publisher: {quote('2.13')}")
        self._over(error)

    def on_complete(self) -> None:
        """Pass the end on, or keep it for the subscriber."""
        self._over(None)

    def _over(self, error: BaseException | None) -> None:
        with self._lock:
            self._subscription = None
            unheard = self._listener is None and (self._left or self._ended)
            if self._listener is not None:
                _end(self._listener, error)
            elif not unheard:
                self._ended, self._error = True, error
        if unheard and error is not None:
            drop_error(error)

    # -- the Publisher of the subscriber

    def subscribe(self, subscriber: Subscriber[R_co]) -> None:
        """Serve one subscriber. It gets its signals on the loop of the chain's last region."""
        from .._runtime.ends import subscribe

        if self.flow is None:
            Flow.error(SourceConsumedError("a processor serves one subscriber: make one for each")).subscribe(
                subscriber
            )
        elif isinstance(self.flow, Shared):
            with self._lock:
                self._subscribers += 1
            try:
                subscribe(self.flow, subscriber, ended=self._left_by_one)
            except FAILURES:
                with self._lock:
                    self._subscribers -= 1
                raise
        else:
            subscribe(self.flow, subscriber, ended=self.leave)
            self.flow = None

    def _left_by_one(self) -> None:
        with self._lock:
            self._subscribers -= 1
            last = not self._subscribers
        if last:
            self.leave()

    # -- the ends of the chain

    def listen(self, listener: Subscriber[T_contra]) -> None:
        """Take the flow's subscriber, and pass it the earlier signals."""
        with self._lock:
            if self._left and self._subscribers:
                raise SourceConsumedError("all subscribers of the processor have left, and its publisher was cancelled")
            if self._read:
                raise SourceConsumedError(
                    "the chain of a processor subscribed to its input a second time, but the input can be read only once"
                )
            self._read = True
            if self._left:
                # A flow that the chain has only come to now was cancelled already: it gets nothing but an end.
                listener.on_complete()
                return
            if self._ended:
                _end(listener, self._error)  # it needs no subscription to hear of an end
            elif self._subscription is not None:
                listener.on_subscribe(self._subscription)
            self._listener = listener

    def leave(self) -> None:
        """Note, on any thread, that the stream downstream is over. Without a subscriber, cancel and report."""
        with self._lock:
            self._left = True
            unheard = self._listener is None
            subscription, self._subscription = self._subscription, None
            self._listener = None
        if unheard and self._error is not None:
            drop_error(self._error)
        if unheard and subscription is not None:
            let_go(subscription)


def _end(listener: Subscriber[Any], error: BaseException | None) -> None:
    if error is None:
        listener.on_complete()
    else:
        listener.on_error(error)
