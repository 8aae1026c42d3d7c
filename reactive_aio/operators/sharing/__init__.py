"""Operators that serve several subscribers with one subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..._fusion import calling_line
from .._fluent import Fluent, check_count, check_function, check_seconds

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from ..._flow.shared import Shared
    from .shared import Restart

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Sharing(Fluent[T_co]):
    """Operators that serve several subscribers with one subscription."""

    __slots__ = ()

    def share(
        self,
        *,
        lag: int = 256,
        replay: int = 0,
        replay_for: float | None = None,
        start: int = 1,
        restart: Restart = "always",
        linger: float | None = None,
        evict_after: float | None = None,
        prefetch: int | None = None,
    ) -> Shared[T_co]:
        """Run this flow once for all its subscribers. The fastest may be ``lag`` elements ahead of the slowest.

        The run begins with the first subscriber, and is cancelled when the last one leaves. `async with` holds it open
        while subscribers come and go. A later subscriber first gets the latest ``replay`` elements that are less than
        ``replay_for`` seconds old. After the end of the run, ``restart`` decides what a subscriber gets. With "always"
        it begins a new run. With "after_error" it does so only after a failure. Otherwise it gets the replay and the
        same end. Subscribers may be on any event loops and threads. The flow runs where it is placed, else on the loop
        that holds it open, else on the loop of the first subscriber. Its context is the context of this call, or of the
        block, and never that of a subscriber.
        Demand: the largest demand of a subscriber, up to ``lag`` elements ahead of the slowest. No element is requested
        before there are ``start`` subscribers. All subscribers together keep at most ``lag + replay`` elements. With
        ``prefetch`` that many are read ahead for each subscriber. For a subscriber that must not slow the others, add
        ``on_backpressure_latest()`` or the like after this. With ``evict_after`` a subscriber has that many seconds to
        take the elements that others wait for. Then it fails alone with SlowSubscriberError, and they go on. Seconds in
        which it waits for an element, or its event loop is blocked, do not count. Without ``evict_after`` one line is
        logged after five seconds.
        Errors: a failure of this flow goes to all subscribers, after the elements. With ``linger`` a run stays open
        without subscribers for that many seconds, and requests nothing in them. This needs a block that holds the flow
        open, else a subscriber is refused with RuntimeError. Numbers below 1, a ``replay`` below 0, seconds that are
        not above 0, and ``replay_for`` without ``replay`` are refused with ValueError when the flow is built.
        Cancel: a subscriber that leaves does not disturb the others. An element that no subscriber has had goes to
        ``hooks.on_discard`` as soon as none can get it any more.
        Spark: one job for all. The operators that follow run after the boundary.
        (Reactor, RxJava, RxPY: ``share``, ``replay``, ``ref_count``; Pekko: ``BroadcastHub``; Kotlin: ``shareIn``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> async def main():
        ...     numbers = Flow.range(3).do_on_next(print).share(start=2)
        ...     return await asyncio.gather(numbers.sum(), numbers.map(str).to_list())
        >>> asyncio.run(main())
        0
        1
        2
        [3, ['0', '1', '2']]
        """
        from .shared import Sharing as Runs
        from .shared import check_restart, shared_by

        check_count("share", "lag", lag, 1)
        check_count("share", "replay", replay, 0)
        check_count("share", "start", start, 1)
        if replay_for is not None:
            check_seconds("share", "replay_for", replay_for, above=True)
            if not replay:
                raise ValueError(
                    f"share(replay_for={replay_for!r}) keeps nothing without replay=, the most elements that are replayed. Set it too"
                )
        if linger is not None:
            check_seconds("share", "linger", linger, above=True)
        if evict_after is not None:
            check_seconds("share", "evict_after", evict_after, above=True)
        if prefetch is not None:
            check_count("share", "prefetch", prefetch, 1)
        check_restart(restart)
        flow = self._as_flow()
        return shared_by(Runs(flow, lag, replay, replay_for, start, restart, linger, evict_after), flow, prefetch)

    def multicast(
        self, fn: Callable[[Flow[T_co]], Flow[U]], *, lag: int = 256, stall_after: float | None = None
    ) -> Flow[U]:
        """Emit the elements of ``fn(flow)``, which can use this flow several times with one subscription for all uses.

        ``fn`` is called for each subscriber, with a flow that only that subscription can read. The fastest use may be
        ``lag`` elements ahead of the slowest. Uses that begin together get all elements. A use that begins later, after
        another one or from another thread, gets the elements that are made from then on. If there is no other use, it
        gets the elements that have not been requested. All uses are read on the event loop on which this flow ends. A
        ``publish_on`` after a use moves its elements elsewhere. With ``stall_after`` the flow fails when a use has
        waited that many seconds for another one without demand, while nothing has moved. Make it longer than anything
        that a use awaits.
        Demand: the largest demand of a use, up to ``lag`` elements ahead of the slowest. At most ``lag`` elements are
        kept.
        Completion: with the flow that ``fn`` returns. This cancels this flow, and so does a cancel of the result.
        Errors: an exception of ``fn``, and TypeError if it does not return a flow. The failure of its flow.
        StalledError, which names the use that waits and the use that it waits for. The failure of this flow goes to all
        uses, after the elements. An ``async def``, a ``lag`` below 1 and a ``stall_after`` that is not above 0 are
        refused when the flow is built.
        (Reactor, RxJava: ``publish(fn)``; RxJS: ``connect``.)

        >>> from reactive_aio import Flow
        >>> def lengths_and_words(words):
        ...     return Flow.zip(words.map(len), words.map(str.upper))
        >>> Flow.of("a", "bcd").multicast(lengths_and_words).run_sync()
        [(1, 'A'), (3, 'BCD')]
        """
        from .multicast import Multicast

        check_function("multicast", fn, "it builds a flow, and awaits nothing")
        check_count("multicast", "lag", lag, 1)
        if stall_after is not None:
            check_seconds("multicast", "stall_after", stall_after, above=True)
        return self._begin(Multicast[U](self._as_flow(), fn, lag, stall_after, calling_line()))
