"""Operators that say where regions run: the asynchronous boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ...segments import PublishOn, SubscribeOn
from .._fluent import Fluent, check_count

if TYPE_CHECKING:
    from ...flow import Flow
    from ...schedulers.base import Scheduler

T_co = TypeVar("T_co", covariant=True)


class Scheduling(Fluent[T_co]):
    """Operators that say where regions run: the asynchronous boundaries."""

    __slots__ = ()

    def publish_on(self, scheduler: Scheduler, prefetch: int = 256) -> Flow[T_co]:
        """Run what follows on ``scheduler``: an asynchronous boundary, and the start of a new region.

        Demand: at most ``prefetch`` elements are requested ahead of what follows and not yet consumed by it;
        more is requested when three quarters of them have been. ``prefetch=1`` is stop-and-wait.
        Errors: a failure stays behind the elements before it. When the loop or thread ends in the middle the
        flow fails with SchedulerClosedError. ``prefetch`` below 1 is refused with ValueError when the flow is
        built.
        Cancel: crosses at once; elements on their way go to ``hooks.on_discard``.
        (Reactor: ``publishOn``; RxJava: ``observeOn``.)

        >>> from reactive_aio import Flow, schedulers
        >>> flow = Flow.range(3).publish_on(schedulers.thread("squares")).map(lambda n: n * n)
        >>> flow.run_sync()
        [0, 1, 4]
        """
        _check_scheduler("publish_on", scheduler)
        check_count("publish_on", "prefetch", prefetch, 1)
        return self.place(PublishOn(scheduler, prefetch))

    def subscribe_on(self, scheduler: Scheduler) -> Flow[T_co]:
        """Run the source, and what follows it up to the next boundary, on ``scheduler``.

        Wherever it stands in the chain it speaks of the source; of several the one nearest to the source counts.
        Demand: passed on one for one.
        Errors: when the loop or thread ends in the middle the flow fails with SchedulerClosedError.
        (Reactor, RxJava: ``subscribeOn``.)

        >>> from reactive_aio import Flow, schedulers
        >>> Flow.range(3).subscribe_on(schedulers.thread("reader")).run_sync()
        [0, 1, 2]
        """
        _check_scheduler("subscribe_on", scheduler)
        return self.place(SubscribeOn(scheduler))


def _check_scheduler(method: str, scheduler: object) -> None:
    if not callable(getattr(scheduler, "attach", None)):
        raise TypeError(
            f"{method}() takes a scheduler such as schedulers.thread('name'), not {type(scheduler).__name__}"
        )
