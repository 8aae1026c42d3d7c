"""Operators that let some of the elements through."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, overload

from .._fluent import Fluent, check_count, check_function
from .filter import Filter
from .skip import Skip
from .take import Take

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")


class Filtering(Fluent[T_co]):
    """Operators that let some of the elements through."""

    __slots__ = ()

    @overload
    def filter(self, predicate: Callable[[T_co], TypeGuard[S]]) -> Flow[S]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], object]) -> Flow[T_co]: ...
    def filter(self, predicate: Callable[[T_co], object]) -> Flow[Any]:
        """Emit the elements for which ``predicate`` is true.

        Demand: passed on; a dropped element is replaced by asking on. Nothing is buffered.
        Errors: what ``predicate`` raises ends the flow, after the elements before it; an ``async def`` is
        refused with TypeError when the flow is built.
        Spark: runs in the workers.
        (Reactor, RxJava: ``filter``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(6).filter(lambda n: n % 2).run_sync()
        [1, 3, 5]
        """
        check_function("filter", predicate, "an ordinary predicate is needed")
        return self.then(Filter(predicate))

    def take(self, n: int) -> Flow[T_co]:
        """Emit the first ``n`` elements, cancel the source and complete, all without further demand.

        Demand: passed on, but never more than ``n`` in all; ``take(0)`` completes without opening the source.
        Errors: a negative ``n`` is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor 3.5, RxJava: ``take``; Pekko: ``take``.)

        >>> from reactive_aio import Flow
        >>> Flow.from_iterable(iter(int, 1)).take(2).run_sync()
        [0, 0]
        """
        check_count("take", "n", n, 0)
        return self.then(Take(n))

    def skip(self, n: int) -> Flow[T_co]:
        """Drop the first ``n`` elements and emit the rest.

        Demand: the first request is enlarged by ``n``, once; nothing is buffered.
        Errors: a negative ``n`` is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava: ``skip``; Pekko: ``drop``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).skip(3).run_sync()
        [3, 4]
        """
        check_count("skip", "n", n, 0)
        return self.then(Skip(n))
