"""Operators that await a function of the user for each element."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_count, check_function

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from ._queues import Order

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Awaiting(Fluent[T_co]):
    """Operators that await a function of the user for each element."""

    __slots__ = ()

    def map_async(
        self,
        fn: Callable[[T_co], Awaitable[U]],
        *,
        max_concurrency: int = 16,
        order: Order | Callable[[T_co], Hashable] = "input",
    ) -> Flow[U]:
        """Emit the result of ``await fn(item)`` for each element, with up to ``max_concurrency`` calls at a time.

        With ``order="input"`` results come in the order of the elements, so a slow one holds up the ones after it. With
        ``"completion"`` a result comes as soon as it is there. With a function ``order=key`` the elements of one key,
        such as the events of an account, are awaited one after another. Elements of different keys are awaited at the
        same time. Results come as soon as they are there, in order for each key.

        Demand: passed on, but at least ``max_concurrency`` and at most four times that. This also bounds the buffer,
        from the request for an element to the delivery of its result. With ``max_concurrency=1`` no element is
        requested before there is demand for it.
        Errors: an exception of ``fn`` or ``order``, with a note that names the element. It comes after the results that
        could be delivered before it. The other calls are cancelled, and have ended before the error is signalled. An
        error that they raise by then goes to ``hooks.on_error_dropped``. A failure of this flow comes after all
        results. A ``max_concurrency`` below 1 and another ``order`` are refused with ValueError when the flow is built.
        Cancel: cancels the running calls, in the same turn. A terminal returns when they have ended. Unfinished
        elements, and results that were not delivered, go to ``hooks.on_discard``.
        Scheduling: on the loop where the flow ends that it is called on, in tasks that have a copy of its context
        variables.
        Spark: with ``order="input"`` in the workers. Each Python worker keeps an event loop, and a task awaits up to
        ``max_concurrency`` calls. It takes no more elements than that before it hands results on. Other orders depend
        on time, so a task could not be repeated. They run after the boundary.
        (Reactor: ``flatMapSequential``, ``flatMap``; Pekko: ``mapAsync``, ``mapAsyncUnordered``,
        ``mapAsyncPartitioned``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> async def fetch(name: str) -> str:
        ...     await asyncio.sleep(0.01 / len(name))
        ...     return name.upper()
        >>> names = Flow.of("a", "bbb", "cc")
        >>> names.map_async(fetch).run_sync()
        ['A', 'BBB', 'CC']
        >>> names.map_async(fetch, order="completion").run_sync()
        ['BBB', 'CC', 'A']
        """
        from ._queues import check_order
        from .map_async import MapAsync

        check_function("map_async", fn)
        check_count("map_async", "max_concurrency", max_concurrency, 1)
        check_order("map_async", order)
        return self._begin(MapAsync(self._as_flow(), fn, max_concurrency, order))

    def filter_when(self, predicate: Callable[[T_co], Awaitable[object]], *, max_concurrency: int = 1) -> Flow[T_co]:
        """Emit the elements for which ``await predicate(item)`` is true, in their order.

        Demand: as of `map_async`. With ``max_concurrency=1`` one element is requested for each that is wanted, and
        another in place of each that is dropped. No more than four times ``max_concurrency`` are buffered.
        Errors: what ``predicate`` raises, with a note that names the element; see `map_async`. A ``max_concurrency``
        below 1 is refused with ValueError when the flow is built.
        Cancel: cancels the running calls. A terminal returns when they have ended.
        Scheduling: on the loop where the flow ends that it is called on, in tasks that have a copy of its context variables.
        Spark: in the workers, as `map_async` does.
        (Reactor: ``filterWhen``.)

        >>> from reactive_aio import Flow
        >>> async def is_free(name: str) -> bool:
        ...     return name != "taken"
        >>> Flow.of("new", "taken", "newer").filter_when(is_free).run_sync()
        ['new', 'newer']
        """
        from .filter_when import FilterWhen

        check_function("filter_when", predicate)
        check_count("filter_when", "max_concurrency", max_concurrency, 1)
        return self._begin(FilterWhen[T_co](self._as_flow(), predicate, max_concurrency))
