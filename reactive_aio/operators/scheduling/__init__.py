"""Operators that say where regions run: the asynchronous boundaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from ..._fusion import calling_line
from ..._plan import PublishOn, SubscribeOn
from .._fluent import MOST_PARTITIONS, Fluent, check_count, check_function

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from ...schedulers.base import Scheduler, Workers

T_co = TypeVar("T_co", covariant=True)


class Scheduling(Fluent[T_co]):
    """Operators that say where regions run: the asynchronous boundaries."""

    __slots__ = ()

    def publish_on(self, scheduler: Scheduler | Workers, *, prefetch: int | None = None) -> Flow[T_co]:
        """Run the operators that follow on ``scheduler``: an asynchronous boundary, and the start of a new region.

        Operators that read flows, such as ``retry``, ``concat`` and ``map_async``, move too. The flows that you pass to
        them stay where they are. A pool of workers, such as ``schedulers.threads(n)`` or ``schedulers.processes(n)``,
        runs the operators up to the first that depends on an element's place in the stream. The others run on the
        event loop that reads.
        Demand: at most ``prefetch`` elements have been requested and are not consumed yet. When three quarters of them
        have been consumed, the same number is requested again. For workers a quarter is enough, to keep them busy. With
        ``prefetch=1`` an element is requested when the one before has been handed on. By default ``prefetch`` is 256. For
        workers it then grows up to 4,096, while their functions are so quick that larger chunks pay.
        Errors: a failure comes after the elements before it. If the loop, thread or pool ends before the flow, the flow
        fails with SchedulerClosedError. ``prefetch`` below 1 is refused with ValueError when the flow is built.
        Cancel: crosses at once. Elements on their way go to ``hooks.on_discard``.
        (Reactor: ``publishOn``; RxJava: ``observeOn``.)

        >>> from reactive_aio import Flow, schedulers
        >>> flow = Flow.range(3).publish_on(schedulers.thread("squares")).map(lambda n: n * n)
        >>> flow.run_sync()
        [0, 1, 4]
        """
        from .on_workers import AHEAD, OnWorkers

        if prefetch is not None:
            check_count("publish_on", "prefetch", prefetch, 1)
        if _are_workers(scheduler):
            return self._begin(OnWorkers(self._as_flow(), scheduler, prefetch, calling_line()))
        return self._place(PublishOn(_checked("publish_on", scheduler), prefetch or AHEAD))

    def repartition(self, partitions: int, *, key: Callable[[T_co], Any] | None = None) -> Flow[T_co]:
        """Spread the elements over ``partitions`` partitions on Spark. Elsewhere they pass unchanged.

        By default all partitions get about the same number of elements. With ``key`` elements of equal keys are in one
        partition. Keys have the types that `group_by_key` allows.
        Demand: passed on one for one. On Spark the elements are on Spark's disks between the tasks.
        Errors: ``partitions`` below 1 or above 2**31 - 1, and a ``key`` that is an ``async def`` are refused when the flow is built. So is
        a flow on Spark with ``wire="results"``, as with Spark Connect: call ``repartition`` of its frame.
        Spark: the elements are shuffled and come in another order. Each operator that follows runs in the workers, in
        ``partitions`` tasks. After operators that count along the whole stream, such as ``take`` and ``index``,
        elements are not spread.
        (Spark: ``repartition``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).repartition(8).map(str).run_sync()
        ['0', '1', '2']
        """
        from .repartition import Repartition

        check_count("repartition", "partitions", partitions, 1, MOST_PARTITIONS)
        if key is not None:
            check_function("repartition", key, "an ordinary function is needed")
        return self.then(Repartition[T_co](partitions, key))

    def subscribe_on(self, scheduler: Scheduler) -> Flow[T_co]:
        """Run the source, and the steps that are fused with it, on ``scheduler``.

        An operator that reads flows or awaits, such as `flat_map` or `map_async`, moves too if it comes before this one.
        If it comes after, it runs on the subscriber's loop. Of several ``subscribe_on``, the one nearest to the source
        counts.
        Demand: passed on one for one.
        Errors: if the loop or thread ends before the flow, the flow fails with SchedulerClosedError. A pool of workers
        has no event loop to run a source on, and is refused with TypeError when the flow is built.
        (Reactor, RxJava: ``subscribeOn``.)

        >>> from reactive_aio import Flow, schedulers
        >>> Flow.range(3).subscribe_on(schedulers.thread("reader")).run_sync()
        [0, 1, 2]
        """
        if _are_workers(scheduler):
            raise TypeError(
                f"subscribe_on({scheduler.name}): workers apply functions to elements, and can't run a source. "
                "Use publish_on(...) with these workers, or subscribe_on(schedulers.thread('name'))"
            )
        return self._place(SubscribeOn(_checked("subscribe_on", scheduler)))


def _are_workers(scheduler: object) -> TypeGuard[Workers]:
    return callable(getattr(scheduler, "add_region", None))


def _checked(method: str, scheduler: Scheduler | Workers) -> Scheduler:
    if _is_scheduler(scheduler):
        return scheduler
    raise TypeError(f"{method}() takes a scheduler such as schedulers.thread('name'), not {type(scheduler).__name__}")


def _is_scheduler(scheduler: object) -> TypeGuard[Scheduler]:
    return callable(getattr(scheduler, "attach", None))
