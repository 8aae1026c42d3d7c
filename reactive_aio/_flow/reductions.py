"""The ends that turn a flow into one value."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Iterable
from functools import cache
from types import ModuleType
from typing import Any, TypeVar, overload

from .._core.missing import MISSING
from .._fusion import Stage
from ..errors import EmptyFlowError
from ..operators._fluent import Fluent, check_count, check_flag, check_function
from ..spec import UNBOUNDED

T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
D = TypeVar("D")
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
V = TypeVar("V")


@cache
def _engine() -> ModuleType:
    """Return the module of the ends on asyncio. It is cached, because an import would cost each end a microsecond."""
    from .._runtime import ends

    return ends


def itself(value: Any) -> tuple[Any]:
    """Return the elements in a value that is an element."""
    return (value,)


class Reductions(Fluent[T_co]):
    """The ends that turn a flow into one value.

    When the flow fails or the wait is cancelled, the elements that an end keeps go to ``hooks.on_discard``. Values that
    functions have made of them, as for `reduce` and `collect`, do not.
    """

    __slots__ = ()

    async def to_set(self) -> set[T_co]:
        """Return the set of the elements.

        Demand: unbounded. Put ``take`` before it to bound the set.
        Errors: TypeError for an element that can't be hashed.
        Spark: in parts; only different elements of each partition leave the workers.
        (Kotlin: ``toSet``; RxPY: ``to_set``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> sorted(asyncio.run(Flow.of("b", "a", "b").to_set()))
        ['a', 'b']
        """
        from ..operators.folding.summing import ToSet

        return await self._value(ToSet[T_co](), set(), kept=iter)

    @overload
    async def to_dict(self: Reductions[tuple[K, V]]) -> dict[K, V]: ...
    @overload
    async def to_dict(self, key: Callable[[T_co], K]) -> dict[K, T_co]: ...
    @overload
    async def to_dict(self, key: Callable[[T_co], K], *, value: Callable[[T_co], V]) -> dict[K, V]: ...
    async def to_dict(
        self, key: Callable[[Any], Any] | None = None, *, value: Callable[[Any], Any] | None = None
    ) -> dict[Any, Any]:
        """Return a dict from ``key(item)`` to ``value(item)`` or the element. Without functions the elements are pairs.

        Of several elements with one key the last counts, as in ``dict``.
        Demand: unbounded. Put ``take`` before it to bound the dict.
        Errors: exceptions of the functions. An ``async def``, and a ``value`` without a ``key``, is refused with
        TypeError.
        Spark: in parts. Only the latest value for each key leaves a partition.
        (Reactor: ``collectMap``; RxJava: ``toMap``; RxPY: ``to_dict``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a", "bb", "cc").to_dict(len))
        {1: 'a', 2: 'cc'}
        >>> asyncio.run(Flow.of("a", "b").index().to_dict())
        {0: 'a', 1: 'b'}
        """
        from ..operators.folding.summing import ToDict

        for function in (key, value):
            if function is not None:
                check_function("to_dict", function, "an ordinary function is needed")
        if key is None and value is not None:
            raise TypeError("to_dict(value=...) needs a key=... too")
        return await self._value(
            ToDict[Any, Any](key, value), {}, kept=None if key is None or value is not None else dict[Any, Any].values
        )

    @overload
    async def single(self) -> T_co: ...
    @overload
    async def single(self, default: D) -> T_co | D: ...
    async def single(self, default: Any = MISSING) -> Any:
        """Return the only element.

        Demand: two elements.
        Errors: LimitExceededError at a second element; EmptyFlowError without an element, unless a default is given.
        Spark: in parts. No task emits more than two elements.
        (Reactor, RxJava, Kotlin: ``single``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a").single())
        'a'
        """
        from ..operators.folding.summing import Single

        return self._or_empty("single", await self._value(Single[T_co](), default, kept=itself))

    @overload
    async def element_at(self, index: int) -> T_co: ...
    @overload
    async def element_at(self, index: int, *, default: D) -> T_co | D: ...
    async def element_at(self, index: int, *, default: Any = MISSING) -> Any:
        """Return the element at a position, counted from 0, and cancel the source.

        Demand: the elements up to and including it.
        Errors: EmptyFlowError if there are fewer, unless a default is given. A negative ``index`` is refused with
        ValueError.
        Spark: in parts. No task reads beyond the position.
        (Reactor, RxJava: ``elementAt``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a", "b").element_at(1)), asyncio.run(Flow.of("a").element_at(1, default=None))
        ('b', None)
        """
        from ..operators.filtering.slice import Slice

        check_count("element_at", "index", index, 0)
        value: Any = await self._value(Slice[T_co](index, index + 1, 1), default, kept=itself)
        if value is MISSING:
            raise EmptyFlowError(f"element_at({index}) of a flow that ended before it: {self!r}")
        return value

    @overload
    async def sum(self: Reductions[int]) -> int: ...
    @overload
    async def sum(self: Reductions[float]) -> float: ...
    @overload
    async def sum(self, start: D) -> D: ...
    async def sum(self, start: Any = 0) -> Any:
        """Return the sum of the elements, added to ``start`` from the left, as the builtin ``sum`` does.

        Demand: unbounded. One value is kept.
        Errors: TypeError for elements that can't be added.
        Spark: in parts, if ``start`` is a number. The sums of the partitions are added in their order. The result must
        not depend on how elements are grouped. Sums of floats may differ in the last digits.
        (RxPY, reactor-extra: ``sum``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.range(5).sum()), asyncio.run(Flow.of([1], [2]).sum([]))
        (10, [1, 2])
        """
        from ..operators.folding.summing import Sum

        return await self._value(Sum(start), start)

    @overload
    async def min(self, *, key: Callable[[T_co], Any] | None = None) -> T_co: ...
    @overload
    async def min(self, *, key: Callable[[T_co], Any] | None = None, default: D) -> T_co | D: ...
    async def min(self, *, key: Callable[[T_co], Any] | None = None, default: Any = MISSING) -> Any:
        """Return the least element, or the one with the least ``key``. Of equal ones it is the first.

        Demand: unbounded. One element is kept.
        Errors: EmptyFlowError without an element, unless a default is given; an exception of ``key``. An ``async def`` is
        refused with TypeError.
        Spark: in parts. The least of each partition leaves it, and ``key`` is called for it here once more.
        (RxPY, reactor-extra: ``min``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of(3, 1, 2).min()), asyncio.run(Flow.of("ccc", "a").min(key=len))
        (1, 'a')
        """
        from ..operators.folding.summing import Min

        if key is not None:
            check_function("min", key, "an ordinary function is needed")
        return self._or_empty("min", await self._value(Min(key), default, kept=itself))

    @overload
    async def max(self, *, key: Callable[[T_co], Any] | None = None) -> T_co: ...
    @overload
    async def max(self, *, key: Callable[[T_co], Any] | None = None, default: D) -> T_co | D: ...
    async def max(self, *, key: Callable[[T_co], Any] | None = None, default: Any = MISSING) -> Any:
        """Return the greatest element, or the one with the greatest ``key``. Of equal ones it is the first.

        Demand: unbounded. One element is kept.
        Errors: EmptyFlowError without an element, unless a default is given; an exception of ``key``. An ``async def`` is
        refused with TypeError.
        Spark: in parts. The greatest of each partition leaves it, and ``key`` is called for it here once more.
        (RxPY, reactor-extra: ``max``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of(3, 1, 2).max()), asyncio.run(Flow.empty().max(default=0))
        (3, 0)
        """
        from ..operators.folding.summing import Max

        if key is not None:
            check_function("max", key, "an ordinary function is needed")
        return self._or_empty("max", await self._value(Max(key), default, kept=itself))

    async def top_k(self, k: int, *, key: Callable[[T_co], Any] | None = None) -> list[T_co]:
        """Return the ``k`` greatest elements, by themselves or by their ``key``, the greatest first.

        It is ``heapq.nlargest``: of equal elements the first counts. With a NaN the result depends on the order of the
        elements.
        Demand: unbounded. About twice ``k`` elements are kept.
        Errors: an exception of ``key`` or of a comparison. A negative ``k`` is refused with ValueError, an ``async
        def`` with TypeError.
        Spark: in parts. Only the greatest of each partition leave the workers. ``key`` is called for those here once
        more.
        (Mutiny: ``TopOperator``; Spark: ``RDD.top``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a", "ccc", "bb").top_k(2, key=len))
        ['ccc', 'bb']
        """
        from ..operators.folding.ranking import TopK

        check_count("top_k", "k", k, 0)
        if key is not None:
            check_function("top_k", key, "an ordinary function is needed")
        return await self._value(TopK(k, key), [], kept=iter)

    async def to_sorted_list(self, *, key: Callable[[T_co], Any] | None = None, reverse: bool = False) -> list[T_co]:
        """Return all elements in order, compared by ``key`` if given, as the builtin ``sorted`` does.

        Demand: unbounded. Put ``take`` before it to bound the list.
        Errors: an exception of ``key`` or of a comparison. An ``async def`` is refused with TypeError.
        Spark: in parts. Each partition is sorted in a worker. The partitions are merged here, and ``key`` is called
        once more.
        (Reactor: ``collectSortedList``; RxJava: ``toSortedList``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of(2, 3, 1).to_sorted_list(reverse=True))
        [3, 2, 1]
        """
        from ..operators.folding.ranking import ToSortedList

        if key is not None:
            check_function("to_sorted_list", key, "an ordinary function is needed")
        check_flag("to_sorted_list", "reverse", reverse)
        return await self._value(ToSortedList[Any](key, reverse, UNBOUNDED), [], kept=iter)

    async def count_by_key(self, key: Callable[[T_co], K]) -> dict[K, int]:
        """Return the number of elements of each key, in the order in which the keys came.

        Demand: unbounded. A number is kept for each key.
        Errors: an exception of ``key``; TypeError for a key that can't be hashed. An ``async def`` is refused with
        TypeError.
        Spark: in parts. Each partition is counted in the workers.
        (Spark: ``countByKey``; Kotlin: ``groupingBy().eachCount()``; the builtin ``collections.Counter``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a", "bb", "c").count_by_key(len))
        {1: 2, 2: 1}
        """
        from ..operators.folding.by_key import CountByKey

        check_function("count_by_key", key, "an ordinary function is needed")
        return await self._value(CountByKey(key), {})

    async def reduce_by_key(
        self,
        key: Callable[[T_co], K],
        fn: Callable[[A, T_co], A],
        initial: A,
        *,
        combine: Callable[[A, A], A] | None = None,
    ) -> dict[K, A]:
        """Combine the elements of each key into one value, from the left, beginning with ``initial``.

        All keys begin with the same ``initial``, so ``fn`` must return a new value and not change it. ``combine``, if
        given, combines the values of two consecutive parts of the stream. Each part began with ``initial``.
        Demand: unbounded. A value is kept for each key.
        Errors: exceptions of the functions; TypeError for a key that can't be hashed. An ``async def`` is refused with
        TypeError.
        Spark: in parts with ``combine``, which combines the values of the partitions. Else it runs after the boundary.
        (Spark: ``aggregateByKey``, ``reduceByKey``; Kotlin: ``groupingBy().fold``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.range(5).reduce_by_key(lambda n: n % 2, lambda total, n: total + n, 0))
        {0: 6, 1: 4}
        """
        from ..operators.folding.by_key import ReduceByKey

        for function in (key, fn) if combine is None else (key, fn, combine):
            check_function("reduce_by_key", function, "an ordinary function is needed")
        return await self._value(ReduceByKey(key, fn, initial, combine), {})

    async def all(self, predicate: Callable[[T_co], object]) -> bool:
        """Return whether ``predicate`` is true for every element. Cancel the source at the first for which it is not.

        Demand: one element after another. The result for an empty flow is True.
        Errors: an exception of ``predicate``. An ``async def`` is refused with TypeError.
        Spark: in parts. Each task answers for its partition.
        (Reactor, RxJava: ``all``; Pekko: ``forall``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of(1, 2, 0, 3).all(bool))
        False
        """
        from ..operators.folding.deciding import All

        check_function("all", predicate, "an ordinary predicate is needed")
        return await self._value(All(predicate), True)

    async def any(self, predicate: Callable[[T_co], object]) -> bool:
        """Return whether ``predicate`` is true for some element. Cancel the source at the first for which it is.

        Demand: one element after another. The result for an empty flow is False.
        Errors: an exception of ``predicate``. An ``async def`` is refused with TypeError.
        Spark: in parts. Each task answers for its partition.
        (Reactor, RxJava: ``any``; Pekko: ``exists``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of(0, 2, 3).any(bool))
        True
        """
        from ..operators.folding.deciding import AnyOf

        check_function("any", predicate, "an ordinary predicate is needed")
        return await self._value(AnyOf(predicate), False)

    async def contains(self, value: object) -> bool:
        """Return whether an element equals ``value``. Cancel the source at the first that does.

        Demand: one element after another.
        Errors: an exception of a comparison.
        Spark: in parts. Each task answers for its partition.
        (RxJava, RxPY: ``contains``; Reactor: ``hasElement``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.range(10).contains(3))
        True
        """
        from ..operators.folding.deciding import Contains

        return await self._value(Contains(value), False)

    async def is_empty(self) -> bool:
        """Return whether the flow is empty. Cancel the source at the first element.

        Demand: one element.
        Errors: those of the flow.
        Spark: in parts. Each task answers for its partition.
        (RxJava, RxPY: ``isEmpty``; Reactor: ``hasElements``, the other way round.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.range(10).filter(lambda n: n > 9).is_empty())
        True
        """
        from ..operators.folding.deciding import IsEmpty

        return await self._value(IsEmpty(), True)

    async def drain(self) -> None:
        """Run the flow to its end for its effects, and return nothing.

        Demand: unbounded.
        Errors: those of the flow.
        Spark: in parts. No element leaves the workers.
        (Reactor: ``then``; Pekko: ``Sink.ignore``; Kotlin: ``collect`` without a function.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a").do_on_next(print).drain())
        a
        """
        from ..operators.folding.summing import Drain

        await self._value(Drain(), None)

    def _value(
        self, stage: Stage[T_co, R], default: Any, *, kept: Callable[[Any], Iterable[Any]] | None = None
    ) -> Coroutine[Any, Any, R]:
        """Return the value of a stage. ``kept`` gives the elements in it, which the hook gets where nobody gets the value."""
        flow: Any = self  # as `_as_flow`, without a call
        value: Coroutine[Any, Any, R] = _engine().value_of(flow, stage, default, kept=kept)
        return value

    def _or_empty(self, method: str, value: Any) -> Any:
        if value is MISSING:
            raise EmptyFlowError(f"{method}() of a flow that ended without an element: {self!r}")
        return value
