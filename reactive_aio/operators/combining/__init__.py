"""Operators that make one flow of several."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_flow
from .concat import Concat, parts

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Combining(Fluent[T_co]):
    """Operators that make one flow of several."""

    __slots__ = ()

    def concat(self, *others: Flow[U]) -> Flow[T_co | U]:
        """Emit this flow to its end, then each of ``others`` in order.

        Demand: what one flow leaves unmet is asked of the next, once; a flow is subscribed to when the one
        before it has completed, also without demand. Nothing is buffered.
        Errors: the failure of a flow ends the whole. What is no flow is refused with TypeError when the flow
        is built.
        (Reactor: ``concatWith``; RxJava: ``concat``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 2).concat(Flow.of(3), Flow.of("four")).run_sync()
        [1, 2, 3, 'four']
        """
        for other in others:
            check_flow("concat", other)
        return self.begin(Concat(tuple(chain.from_iterable(map(parts, (self.as_flow(), *others))))))
