"""Operators that have one subscription serve several subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_count, check_function, check_seconds

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from ..._flow.shared import Shared
    from .shared import Restart

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Sharing(Fluent[T_co]):
    """Operators that have one subscription serve several subscribers."""

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
        prefetch: int | None = None,
    ) -> Shared[T_co]:
        """Run this flow once for all who subscribe meanwhile; the slowest of them lets the others be ``lag`` elements ahead.

        The run begins with the first subscriber, and is cancelled when the last has left. `async with` holds it open, whoever comes
        and goes. One who comes later begins with the latest ``replay`` elements, none of them older than ``replay_for`` seconds.
        Behind the end of the run one who comes begins it anew, with ``restart="always"``; else, or behind a completion with
        "after_error", is given the replay and that end again. Subscribers may be on any event loops and threads. The flow runs where it is
        placed, else where it is held open, else on the loop of the first subscriber; never in the context of a subscriber, but in that
        in which this is called, or in that of the block.
        Demand: what the subscriber wants who wants most, and no more than the slowest lets it have; nothing before there are ``start``
        subscribers. No more than ``lag + replay`` elements are kept for all together. With ``prefetch`` so many are read ahead for each
        subscriber. To have one not slow the others, put ``on_backpressure_latest()`` or its like behind this.
        Errors: the failure of this flow is that of all who are there, behind the elements. A subscriber with a ``linger``, for which
        a run goes on when nobody is there, is refused with RuntimeError where no block holds the flow open. Numbers below 1, a ``replay`` below 0
        and seconds that are not above 0 are refused with ValueError when the flow is built.
        Cancel: one who leaves is not missed by the others; with the last what nobody has had goes to ``hooks.on_discard``.
        Spark: one job for all; what follows runs after the boundary.
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
        if linger is not None:
            check_seconds("share", "linger", linger, above=True)
        if prefetch is not None:
            check_count("share", "prefetch", prefetch, 1)
        check_restart(restart)
        flow = self._as_flow()
        return shared_by(Runs(flow, lag, replay, replay_for, start, restart, linger), flow, prefetch)

    def multicast(self, fn: Callable[[Flow[T_co]], Flow[U]], *, lag: int = 256) -> Flow[U]:
        """Emit what ``fn`` makes of this flow, which it may read several times: each subscription runs this flow once.

        ``fn(flow)`` is called for each subscription, in the subscriber's context. What reads this flow when it has ended is
        given its end.
        Demand: as for `share`, within one subscription: the slowest reader lets the others be ``lag`` elements ahead. A flow that waits for
        one reader before it reads the other, such as ``concat``, waits for ever where there is more than that.
        Errors: what ``fn`` raises, and TypeError if it gives no flow. An ``async def`` and a ``lag`` below 1 are refused when the flow is built.
        Cancel: this flow is cancelled when all that read it have left.
        Spark: runs after the boundary.
        (Reactor, RxJava: ``publish`` with a function; RxPY: ``publish`` with a mapper; RxJS: ``connect``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).multicast(lambda numbers: numbers.zip(numbers.skip(1))).run_sync()
        [(0, 1), (1, 2), (2, 3), (3, 4)]
        """
        from .multicast import Multicast

        check_function("multicast", fn, "an ordinary function is needed")
        check_count("multicast", "lag", lag, 1)
        source: Multicast[U] = Multicast(self._as_flow(), fn, lag)
        return self._begin(source)
