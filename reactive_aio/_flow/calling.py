"""The ends that call a function for elements, and know when to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final, TypeVar, overload

from .._fusion import label
from ..operators._fluent import check_count, check_function, check_seconds, is_async, refuse_async_generator
from ..operators.folding.fold import ForEach
from .reductions import Reductions

T_co = TypeVar("T_co", covariant=True)

Condition = asyncio.Event | Callable[[], Awaitable[object]] | Awaitable[object]
"""A signal that the service has to stop: an event that is set, or an awaitable that returns."""

GRACE: Final = 30.0
"""Seconds in which a stopped service may finish: the default of Kubernetes."""


def check_stop(method: str, stop: object, grace: object) -> None:
    """Raise unless ``stop`` is an event or awaitable, and ``grace`` is a number of seconds."""
    if not (stop is None or isinstance(stop, asyncio.Event) or callable(stop) or isawaitable(stop)):
        raise TypeError(
            f"{method}(stop={label(stop)}): stop is an asyncio.Event, an async function or an awaitable, not {type(stop).__name__}"
        )
    check_seconds(method, "grace", grace)


class Calling(Reductions[T_co]):
    """The ends that call a function for elements."""

    __slots__ = ()

    @overload
    async def for_each(
        self,
        fn: Callable[[T_co], Awaitable[object]],
        *,
        max_concurrency: int = 1,
        stop: Condition | None = None,
        grace: float = GRACE,
    ) -> None: ...
    @overload
    async def for_each(
        self,
        fn: Callable[[T_co], object],
        *,
        max_concurrency: int = 1,
        stop: Condition | None = None,
        grace: float = GRACE,
    ) -> None: ...
    async def for_each(
        self,
        fn: Callable[[T_co], Any],
        *,
        max_concurrency: int = 1,
        stop: Condition | None = None,
        grace: float = GRACE,
    ) -> None:
        """Call ``fn`` for each element. Await it if it is an ``async def``, for ``max_concurrency`` elements at a time.

        ``stop`` stops a service: an asyncio.Event that is set, or an ``async def`` or another awaitable that returns.
        Then the sources emit nothing more. The elements that they have emitted are finished: those in buffers and
        boundaries, those that are awaited, and the calls of ``fn`` for all of them. After ``grace`` seconds all that
        still runs is cancelled.

        Demand: unbounded for an ordinary function, which is the last step of its region. For an ``async def``
        one element for each call, which is requested when the call before has ended.
        Errors: a failure of ``fn`` cancels the flow and the other calls. If one of those fails too, that failure goes
        to ``hooks.on_error_dropped``. A CancelledError that ``fn`` raises without a cancel arrives as
        SourceCancelledError. After ``grace`` seconds the call raises TimeoutError. An exception of ``stop`` stops the
        flow too, and the call raises it when the flow has ended. An ordinary function that returns a coroutine, as a
        lambda may, fails with TypeError, because nobody would await it. ``max_concurrency`` below 1, or above 1 with an
        ordinary function, is refused with ValueError.
        Cancel: the running calls are cancelled. With ``max_concurrency`` above 1 their elements go to
        ``hooks.on_discard``.
        (Reactor: ``doOnNext`` with ``then``; RxJava: ``forEach``; Pekko: ``KillSwitch.shutdown`` for ``stop``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.range(2).for_each(print))
        0
        1
        """
        check_function("for_each", fn)
        refuse_async_generator("for_each", fn)
        check_count("for_each", "max_concurrency", max_concurrency, 1)
        check_stop("for_each", stop, grace)
        if stop is not None:
            from .stopping import run_until

            flow = self._as_flow()
            await run_until(
                stop, grace, "for_each", flow, lambda told: told.for_each(fn, max_concurrency=max_concurrency)
            )
        elif max_concurrency == 1:
            if is_async(fn):
                from .._runtime.iterating import for_each_async

                await for_each_async(self._as_flow(), fn, lambda n: f"for_each({label(fn)}), on element #{n}")
            else:
                await self._value(ForEach(fn), None)
        elif is_async(fn):
            from .._plan import Plan
            from .._runtime.ends import only_of
            from ..operators.awaiting.for_each import ForEachAsync

            await only_of(Plan.of(self._begin(ForEachAsync(self._as_flow(), fn, max_concurrency))), None)
        else:
            raise ValueError(
                "for_each(max_concurrency>1) needs an `async def`: an ordinary function runs one at a time"
            )

    @overload
    async def for_each_batch(
        self,
        fn: Callable[[list[T_co]], Awaitable[object]],
        size: int,
        seconds: float | None = None,
        *,
        stop: Condition | None = None,
        grace: float = GRACE,
    ) -> None: ...
    @overload
    async def for_each_batch(
        self,
        fn: Callable[[list[T_co]], object],
        size: int,
        seconds: float | None = None,
        *,
        stop: Condition | None = None,
        grace: float = GRACE,
    ) -> None: ...
    async def for_each_batch(
        self,
        fn: Callable[[list[T_co]], Any],
        size: int,
        seconds: float | None = None,
        *,
        stop: Condition | None = None,
        grace: float = GRACE,
    ) -> None:
        """Call ``fn`` with lists of ``size`` elements, one after another, and await its result if it is awaitable.

        With ``seconds`` ``fn`` gets a list that is not full that long after its first element, as by
        ``buffer_timeout``. The last list may be shorter. ``stop`` and ``grace`` are those of ``for_each``: a service
        that stops still calls ``fn`` with its last list.

        Demand: ``size`` elements, requested when the call before has ended. At most that many are outstanding and held.
        If ``seconds`` end a list early, the other requested elements may arrive meanwhile. They are kept for the next
        list.
        Errors: a failure of ``fn`` cancels the flow and is raised. A note says which list it was, counted from 0. A
        CancelledError that ``fn`` raises without a cancel arrives as SourceCancelledError. When the flow fails, a list
        that is not full goes to ``hooks.on_discard``. A ``size`` below 1 and ``seconds`` that are not above 0 are
        refused with ValueError.
        Cancel: ``fn`` is cancelled, and the kept elements go to ``hooks.on_discard``.
        (Reactor: ``bufferTimeout`` with ``concatMap``; Pekko: ``groupedWithin`` with ``mapAsync(1)``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> async def write(items):
        ...     print("written:", items)
        >>> asyncio.run(Flow.range(5).for_each_batch(write, 2))
        written: [0, 1]
        written: [2, 3]
        written: [4]
        """
        from .._runtime.iterating import for_each_async

        check_function("for_each_batch", fn)
        refuse_async_generator("for_each_batch", fn)
        check_count("for_each_batch", "size", size, 1)
        check_stop("for_each_batch", stop, grace)
        if seconds is not None:
            check_seconds("for_each_batch", "seconds", seconds, above=True)
        flow = self._as_flow()
        if stop is not None:
            from .stopping import run_until

            await run_until(stop, grace, "for_each_batch", flow, lambda told: told.for_each_batch(fn, size, seconds))
            return
        lists = flow.buffer(size) if seconds is None else flow.buffer_timeout(size, seconds)

        async def call(items: list[T_co]) -> None:
            given = fn(items)
            if isawaitable(given):
                await given

        await for_each_async(lists, call, lambda n: f"for_each_batch({label(fn)}, {size}), on batch #{n}")
