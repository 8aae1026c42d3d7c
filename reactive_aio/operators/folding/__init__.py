"""Operators that make one value of a whole stream, and the stages of the ends that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_function
from .collect import Collect
from .fold import Count as Count
from .fold import Fold as Fold
from .fold import ForEach as ForEach
from .fold import Last as Last
from .fold import Reduce as Reduce
from .fold import ToList as ToList

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")


class Folding(Fluent[T_co]):
    """Operators that make one value of a whole stream."""

    __slots__ = ()

    def collect(
        self,
        factory: Callable[[], A],
        accumulate: Callable[[A, T_co], object],
        combine: Callable[[A, A], object] | None = None,
    ) -> Flow[A]:
        """Emit, when the source has completed, one container into which every element was put.

        ``factory`` makes the container, anew for each subscription, and ``accumulate(container, item)`` puts an
        element in. The container of an empty source is emitted too. ``combine(container, later)``, if it is given, puts
        what another container has into the first; the two hold stretches of the stream that follow each other, and
        both orders of doing things come to the same.
        Demand: unbounded as soon as the container is wanted; nothing but the container is kept.
        Errors: what either function raises ends the flow, and nothing is emitted; an ``async def`` is refused
        with TypeError when the flow is built.
        Spark: in parts with ``combine``, a container for each partition; else runs after the boundary, since it depends on
        the order of the whole.
        (Reactor, RxJava: ``collect``; Java: ``Stream.collect``, whose third function is ``combine``.)

        >>> from reactive_aio import Flow
        >>> Flow.from_iterable("abracadabra").collect(set, set.add).map(sorted).run_sync()
        [['a', 'b', 'c', 'd', 'r']]
        """
        check_function("collect", factory, "make the container in an ordinary function")
        check_function("collect", accumulate, "put elements in by an ordinary function")
        if combine is not None:
            check_function("collect", combine, "put containers together by an ordinary function")
        return self.then(Collect(factory, accumulate, combine))
