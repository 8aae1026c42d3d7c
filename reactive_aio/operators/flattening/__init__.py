"""Operators that map each element to a flow, and emit the elements of all these flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_count, check_function

if TYPE_CHECKING:
    from ..._flow.flow import Flow

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

INSTEAD = "return a flow from an ordinary function, or use map_async() to await"


class Flattening(Fluent[T_co]):
    """Operators that map each element to a flow, and emit the elements of all these flows."""

    __slots__ = ()

    def flat_map(self, fn: Callable[[T_co], Flow[U]], *, max_concurrency: int = 256, prefetch: int = 32) -> Flow[U]:
        """Read the flow that ``fn`` makes of each element, several at the same time, and emit elements as they arrive.

        It is fair: if several flows have elements waiting, they take turns.

        Demand: this flow is asked for ``max_concurrency`` elements at once, and for one more when one of their flows
        has ended. So no more than that are read at the same time. Each of them is asked for ``prefetch`` elements, and
        for more when three quarters of them have been emitted. At most ``prefetch`` elements of each are buffered.
        When 16 of them have begun, the event loop has a turn before the next.
        Errors: an exception of ``fn``, and TypeError if it does not return a flow. The failure of a flow comes after
        its elements. Each ends the whole flow. The others are cancelled, and the buffered elements go to
        ``hooks.on_discard``. An ``async def`` is refused with TypeError, and a number below 1 with ValueError when the
        flow is built.
        (Reactor, RxJava: ``flatMap``; RxPY: ``flat_map``; kotlinx: ``flatMapMerge``; Pekko: ``flatMapMerge``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("ab", "cd").flat_map(Flow.from_iterable).run_sync()
        ['a', 'b', 'c', 'd']
        >>> from reactive_aio.testing import run_virtual
        >>> ticks = Flow.of(3, 2).flat_map(lambda every: Flow.interval(every).map(lambda _: every))
        >>> run_virtual(ticks.take(4).to_list())
        [2, 3, 2, 3]
        """
        from .flat_map import FlatMap

        check_function("flat_map", fn, INSTEAD)
        check_count("flat_map", "max_concurrency", max_concurrency, 1)
        check_count("flat_map", "prefetch", prefetch, 1)
        return self._begin(FlatMap[U](self._as_flow(), fn, max_concurrency, prefetch))

    def concat_map(self, fn: Callable[[T_co], Flow[U]]) -> Flow[U]:
        """Read the flow that ``fn`` makes of each element to its end, one after another, and emit its elements.

        Demand: the unmet demand of one flow is requested from the next, once. The next element is requested and mapped
        when the flow of the one before has ended and there is demand. Nothing is buffered.
        Errors: an exception of ``fn``, and TypeError if it does not return a flow. The failure of an inner flow ends
        the whole flow. A failure of this flow comes after the flow of its last element. An ``async def`` is refused
        with TypeError when the flow is built.
        (Reactor, RxJava: ``concatMap``; RxPY: ``concat_map``; Pekko, kotlinx: ``flatMapConcat``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(2, 0, 3).concat_map(Flow.range).run_sync()
        [0, 1, 0, 1, 2]
        """
        from .concat_map import ConcatMap

        check_function("concat_map", fn, INSTEAD)
        return self._begin(ConcatMap[U](self._as_flow(), fn))

    def concat_map_eager(
        self, fn: Callable[[T_co], Flow[U]], *, max_concurrency: int = 16, prefetch: int = 32
    ) -> Flow[U]:
        """Read the flow that ``fn`` makes of each element, several at the same time, and emit their elements in order.

        Demand: this flow is asked for ``max_concurrency`` elements at once, and for one more when a flow has been
        emitted to its end. So no more than that are read at the same time. Each of them is asked for ``prefetch``
        elements, and for more when three quarters of them have been emitted. At most ``prefetch`` elements of each are
        buffered.
        Errors: those of ``concat_map``, in the same places. Elements that are buffered after them go to
        ``hooks.on_discard``.
        An ``async def`` is refused with TypeError, and a number below 1 with ValueError when the flow is built.
        (RxJava: ``concatMapEager``; Reactor: ``flatMapSequential``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> def late(n):
        ...     return Flow.interval(n).map(lambda _: n).take(1)
        >>> async def main():
        ...     started = asyncio.get_running_loop().time()
        ...     items = await Flow.of(3, 2, 1).concat_map_eager(late).to_list()
        ...     return items, asyncio.get_running_loop().time() - started
        >>> import asyncio
        >>> run_virtual(main())
        ([3, 2, 1], 3.0)
        """
        from .concat_map_eager import ConcatMapEager

        check_function("concat_map_eager", fn, INSTEAD)
        check_count("concat_map_eager", "max_concurrency", max_concurrency, 1)
        check_count("concat_map_eager", "prefetch", prefetch, 1)
        return self._begin(ConcatMapEager[U](self._as_flow(), fn, max_concurrency, prefetch))

    def switch_map(self, fn: Callable[[T_co], Flow[U]]) -> Flow[U]:
        """Read the flow that ``fn`` makes of the latest element. A new element cancels the flow before.

        Demand: the unmet demand of one flow is requested from the next, once. This flow is asked for all it has, 32
        elements at a time, whatever the demand. Nothing else is buffered. Elements of a cancelled flow that were not
        emitted go to ``hooks.on_discard``.
        Errors: an exception of ``fn``, and TypeError if it does not return a flow. The failure of this flow, or of the
        one that is read, comes at once. The failure of a cancelled flow goes to ``hooks.on_error_dropped``. An ``async
        def`` is refused with TypeError when the flow is built.
        (Reactor, RxJava, Pekko: ``switchMap``; RxPY: ``switch_map``; kotlinx: ``flatMapLatest``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> flow = Flow.interval(5).take(2).switch_map(lambda n: Flow.interval(2).take(4).map(lambda k: (n, k)))
        >>> run_virtual(flow.to_list())
        [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]
        """
        from .switch_map import SwitchMap

        check_function("switch_map", fn, INSTEAD)
        return self._begin(SwitchMap[U](self._as_flow(), fn))

    def exhaust_map(self, fn: Callable[[T_co], Flow[U]]) -> Flow[U]:
        """Read the flow that ``fn`` makes of an element to its end, and drop the elements that come meanwhile.

        Demand: the unmet demand of one flow is requested from the next, once. This flow is asked for all it has, 32
        elements at a time, whatever the demand. Nothing else is buffered. Dropped elements are counted in
        ``items.snapshot()``, and go to ``hooks.on_discard``.
        Errors: an exception of ``fn``, and TypeError if it does not return a flow. The failure of this flow, or of the
        one that is read, comes at once. An ``async def`` is refused with TypeError when the flow is built.
        (RxJS: ``exhaustMap``; RxPY: ``exclusive``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> flow = Flow.interval(2).take(4).exhaust_map(lambda n: Flow.interval(1).take(3).map(lambda k: (n, k)))
        >>> run_virtual(flow.to_list())
        [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)]
        """
        from .exhaust_map import ExhaustMap

        check_function("exhaust_map", fn, INSTEAD)
        return self._begin(ExhaustMap[U](self._as_flow(), fn))
