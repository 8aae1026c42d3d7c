"""Operators for sources that can't be slowed: they say what to do with elements for which there is no demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_count, check_function

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from .backlog import Overflow

T_co = TypeVar("T_co", covariant=True)


class Overflowing(Fluent[T_co]):
    """Operators for sources that can't be slowed: they say what to do with elements for which there is no demand.

    Each requests everything from the flow before it, and emits what is requested. Dropped elements are counted in
    ``items.snapshot()``, and go to ``hooks.on_discard``.
    """

    __slots__ = ()

    def on_backpressure_buffer(
        self, max_size: int, *, overflow: Overflow = "error", on_drop: Callable[[T_co], object] | None = None
    ) -> Flow[T_co]:
        """Keep up to ``max_size`` elements until they are requested.

        When the buffer is full and one more comes, ``overflow`` decides. "error" fails the flow. "drop_latest" drops
        the new element. "drop_oldest" drops the element that has waited longest.

        Demand: upstream unbounded and at once; downstream one for one. At most ``max_size`` elements are buffered.
        Errors: BackpressureOverflowError, after the waiting elements. An exception of ``on_drop``, which is called with
        each dropped element. ``max_size`` below 1, another ``overflow``, and an ``on_drop`` with "error", which drops
        nothing, are refused with ValueError when the flow is built.
        Cancel: the waiting elements go to ``hooks.on_discard``.
        (Reactor, RxJava: ``onBackpressureBuffer``; Pekko: ``buffer``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> async def main():
        ...     async with Flow.range(1000).on_backpressure_buffer(3, overflow="drop_oldest").open() as items:
        ...         await asyncio.sleep(1)
        ...         return [n async for n in items], items.snapshot().dropped
        >>> run_virtual(main())
        ([997, 998, 999], 997)
        """
        from .backlog import check_overflow
        from .buffer import OnBackpressureBuffer

        check_count("on_backpressure_buffer", "max_size", max_size, 1)
        check_overflow("on_backpressure_buffer", overflow)
        _check_on_drop("on_backpressure_buffer", on_drop)
        if on_drop is not None and overflow == "error":
            raise ValueError(
                "on_backpressure_buffer(on_drop=...) needs overflow='drop_latest' or 'drop_oldest': 'error' drops nothing"
            )
        return self._begin(OnBackpressureBuffer[T_co](self._as_flow(), max_size, overflow, on_drop))

    def on_backpressure_drop(self, on_drop: Callable[[T_co], object] | None = None) -> Flow[T_co]:
        """Drop elements for which there is no demand when they come.

        Demand: upstream unbounded, from the first demand on; downstream one for one. Nothing is buffered.
        ``on_drop`` is called with each element that is dropped.
        Errors: an exception of ``on_drop``. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor, RxJava: ``onBackpressureDrop``.)

        >>> from reactive_aio import Flow, schedulers
        >>> dropped = []
        >>> flow = Flow.range(1000).on_backpressure_drop(dropped.append)
        >>> kept = flow.publish_on(schedulers.current(), prefetch=4).run_sync()
        >>> kept[:4], len(kept) + len(dropped)
        ([0, 1, 2, 3], 1000)
        """
        from .drop import OnBackpressureDrop

        _check_on_drop("on_backpressure_drop", on_drop)
        return self._begin(OnBackpressureDrop[T_co](self._as_flow(), on_drop))

    def on_backpressure_latest(self, on_drop: Callable[[T_co], object] | None = None) -> Flow[T_co]:
        """Keep the latest element until it is requested, and drop the one before it.

        Demand: upstream unbounded and at once; downstream one for one. One element is buffered.
        ``on_drop`` is called with each element that is dropped.
        Errors: an exception of ``on_drop``. An ``async def`` is refused with TypeError when the flow is built.
        Cancel: the element that waits goes to ``hooks.on_discard``.
        (Reactor, RxJava: ``onBackpressureLatest``; Kotlin: ``conflate``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> async def main():
        ...     async with Flow.range(1000).on_backpressure_latest().open() as items:
        ...         await asyncio.sleep(1)
        ...         return await anext(items)
        >>> run_virtual(main())
        999
        """
        from .latest import OnBackpressureLatest

        _check_on_drop("on_backpressure_latest", on_drop)
        return self._begin(OnBackpressureLatest[T_co](self._as_flow(), on_drop))

    def on_backpressure_error(self) -> Flow[T_co]:
        """Fail when an element comes for which there is no demand.

        Demand: upstream unbounded, from the first demand on; downstream one for one. Nothing is buffered.
        Errors: BackpressureOverflowError.
        (Reactor: ``onBackpressureError``.)

        >>> from reactive_aio import Flow, schedulers
        >>> flow = Flow.range(1000).on_backpressure_error()
        >>> len(flow.run_sync())
        1000
        >>> flow.publish_on(schedulers.current(), prefetch=4).run_sync()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        reactive_aio.errors.BackpressureOverflowError: an element came without demand...
        """
        from .error import OnBackpressureError

        return self._begin(OnBackpressureError[T_co](self._as_flow()))


def _check_on_drop(method: str, on_drop: Callable[..., object] | None) -> None:
    if on_drop is not None:
        check_function(method, on_drop, "the operator calls on_drop and does not await it")
