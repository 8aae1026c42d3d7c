"""Operators that make other elements of the elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_function
from .flat_map_iterable import FlatMapIterable
from .map import Map

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Transforming(Fluent[T_co]):
    """Operators that make other elements of the elements."""

    __slots__ = ()

    def map(self, fn: Callable[[T_co], R]) -> Flow[R]:
        """Emit ``fn(item)`` for each element.

        Demand: passed on one for one; nothing is buffered.
        Errors: what ``fn`` raises ends the flow, after the elements before it; an ``async def`` is refused
        with TypeError when the flow is built.
        Spark: runs in the workers.
        (Reactor, RxJava: ``map``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).map(lambda n: n * 10).run_sync()
        [0, 10, 20]
        """
        check_function("map", fn, "await in flow.for_each(fn), or map to a value first")
        return self.then(Map(fn))

    def flat_map_iterable(self, fn: Callable[[T_co], Iterable[R]]) -> Flow[R]:
        """Emit the elements of the iterable ``fn(item)``, one after another, for each element.

        Demand: one element is asked for when those of the one before have been emitted; where the demand is
        unbounded it is passed on. An iterable is read as its elements are wanted; nothing is buffered.
        Errors: what ``fn`` or its iterable raises ends the flow, after the elements before it; an ``async def``
        is refused with TypeError when the flow is built.
        Cancel: an iterable that can be closed, such as a generator, is closed.
        Spark: runs in the workers.
        (Reactor, RxJava: ``flatMapIterable``; Pekko: ``mapConcat``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("to be", "or not").flat_map_iterable(str.split).run_sync()
        ['to', 'be', 'or', 'not']
        """
        check_function("flat_map_iterable", fn, "return an iterable from an ordinary function")
        return self.then(FlatMapIterable(fn))

    def through(self, operator: Callable[[Flow[T_co]], R]) -> R:
        """Give ``operator(self)``: the way to chain an operator of one's own.

        (Reactor: ``transform``; RxPY: ``pipe``.)

        >>> from reactive_aio import Flow
        >>> def doubled(flow: Flow[int]) -> Flow[int]:
        ...     return flow.map(lambda n: 2 * n)
        >>> Flow.range(3).through(doubled).run_sync()
        [0, 2, 4]
        """
        check_function("through", operator)
        return operator(self.as_flow())
