"""The hub: a source that a program feeds by calls, for several subscribers."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Generic, TypeVar, get_args

from .._core.guard import FAILURES, block_ended
from .._fusion import Placed, calling_line
from .._plan import Nodes, SharedSnapshot
from ..hooks import discard
from ..operators._fluent import check_count, check_flow, check_seconds
from ..operators.sharing.emission import Emission, HubFlow, Idle, Offer
from ..operators.sharing.log import Log
from ..operators.sharing.mutex import Mutex
from ..spec import Subscriber
from .flow import Flow
from .shared import Read

T = TypeVar("T")


class Hub(Generic[T]):
    """A source that a program feeds by calls, for several subscribers.

    The fastest may be ``lag`` elements ahead of the slowest.

    It is a Publisher. A subscriber gets the latest ``replay`` elements, and then all elements that are emitted while it
    is subscribed. Elements may be emitted on any event loop and thread. The elements of each caller keep their order.
    ``idle`` says what happens to an element without a subscriber. With "wait" up to ``lag`` elements are kept for the
    first subscriber. With "drop" only the ``replay`` is kept. An element that no subscriber has had goes to
    ``hooks.on_discard`` as soon as none can get it any more. After an ``async with`` block the hub completes, or fails
    with the exception of the block. If the block is cancelled, it fails with SharedClosedError. An ended hub that nobody refers to
    is freed with the elements that it keeps. No hook hears of these.
    Demand: a subscriber gets no more than it requests, and emitting waits for the slowest. All subscribers together
    keep at most ``lag + replay`` elements. With ``prefetch`` that many are read ahead for each subscriber. For a
    subscriber that must not slow the others, add ``on_backpressure_latest()`` or the like after ``flow``.
    With ``evict_after`` a subscriber has that many seconds to take the elements that others wait for. Then it fails
    alone with SlowSubscriberError, and they go on. Seconds in which it waits for an element, or its event loop is
    blocked, do not count. Without ``evict_after`` one line is logged after five seconds.
    Errors: numbers below 1, a ``replay`` below 0, seconds that are not above 0 and another ``idle`` are refused with ValueError.
    (Reactor: ``Sinks.many()``; RxPY: ``Subject``, ``ReplaySubject``; Kotlin: ``MutableSharedFlow``; Java: ``SubmissionPublisher``.)

    >>> import asyncio
    >>> from reactive_aio import Hub
    >>> async def main():
    ...     async with Hub(idle="wait") as hub, asyncio.TaskGroup() as tasks:
    ...         both = [tasks.create_task(hub.flow.take(2).to_list()) for _ in range(2)]
    ...         await asyncio.sleep(0.01)
    ...         await hub.emit("a")
    ...         await hub.emit("b")
    ...     return [each.result() for each in both]
    >>> asyncio.run(main())
    [['a', 'b'], ['a', 'b']]
    """

    __slots__ = ("_emission", "_prefetch")

    def __init__(
        self,
        *,
        idle: Idle,
        lag: int = 256,
        replay: int = 0,
        evict_after: float | None = None,
        prefetch: int | None = None,
    ) -> None:
        check_count("Hub", "lag", lag, 1)
        check_count("Hub", "replay", replay, 0)
        if idle not in get_args(Idle):
            raise ValueError(f"Hub(idle={idle!r}): choose one of {', '.join(map(repr, get_args(Idle)))}")
        if evict_after is not None:
            check_seconds("Hub", "evict_after", evict_after, above=True)
        if prefetch is not None:
            check_count("Hub", "prefetch", prefetch, 1)
        self._emission = Emission(lag, Log(replay), Mutex(), idle, evict_after)
        self._prefetch = prefetch

    # -- what a program calls

    async def emit(self, item: T) -> None:
        """Emit an element when there is room. Callers that wait are served in turn.

        Raises CancelledError only if the element has not been emitted, and HubClosedError if the hub has ended.
        """
        if not self._emission.takes(item):
            await self._emission.emit(item)

    def offer(self, item: T) -> Offer:
        """Emit an element at once if there is room, from any thread.

        The result is true if the element was taken, else it says why not.

        The result is ``Offer.FULL`` in a finalizer that runs in the middle of another call to the hub.
        """
        return Offer.TAKEN if self._emission.takes(item) else self._emission.offer(item)

    def submit(self, item: T, timeout: float | None = None) -> None:
        """Emit an element from a thread, which waits until there is room.

        Raises TimeoutError after ``timeout`` seconds, HubClosedError if the hub has ended, and RuntimeError on the
        thread of an event loop, because the loop would wait for itself.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError("submit() would block the event loop of this thread. Use `await emit()` here")
        if timeout is not None:
            check_seconds("submit", "timeout", timeout)
        self._emission.submit(item, timeout)

    async def feed(self, flow: Flow[T]) -> None:
        """Emit the elements of a flow, each when there is room. Several flows may be fed at a time. They take turns.

        Raises the failure of the flow, which does not end the hub, and HubClosedError if the hub has ended. An element
        that waits when the call ends goes to ``hooks.on_discard``.
        """
        check_flow("feed", flow)

        async def emit(item: T) -> None:
            if not self._emission.takes(item):  # as `emit`, without another coroutine for each element
                try:
                    await self._emission.emit(item)
                except FAILURES:  # it has been taken from the flow, and goes nowhere
                    discard([item])
                    raise

        await flow.for_each(emit)

    def complete(self) -> None:
        """End the hub, after the kept elements. Call it on any thread. A second call does nothing."""
        self._emission.close(None)

    def error(self, error: BaseException) -> None:
        """End the hub with a failure, after the kept elements; from any thread. Later errors go to the hook."""
        if not isinstance(error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"error() takes an exception, not {type(error).__name__}")
        self._emission.close(error)

    # -- who reads it

    @property
    def flow(self) -> Flow[T]:
        """The flow of the replay and then of the elements that are emitted from now on."""
        source = HubFlow(self._emission, self._emission.lag, self._prefetch)
        return Read(Nodes(Placed(source, calling_line())))

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Subscribe ``subscriber`` to the `flow`."""
        self.flow.subscribe(subscriber)

    @property
    def subscribers(self) -> int:
        """The number of subscribers."""
        return self._emission.log.readers

    def snapshot(self) -> SharedSnapshot:
        """Return how much has been emitted and is kept, and how far behind each subscriber is; from any thread."""
        return self._emission.look()

    async def __aenter__(self) -> Hub[T]:
        """Return the hub. It is ended after the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Complete, or fail with the exception of the block. A hub that has ended before stays as it is.

        If the block is cancelled, or belongs to a generator that is closed, it fails with SharedClosedError.
        """
        if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            error = block_ended("hub", error)
        # The block raises the exception itself, so it need not go to the hook.
        self._emission.close(None if self._emission.log.ended else error)

    def __repr__(self) -> str:
        emission = self._emission
        return f"Hub(lag={emission.lag}, replay={emission.log.replay}, idle={emission.idle!r})"
