"""Operators that gather elements into groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent, check_count
from .buffer import Buffer

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)


class Windowing(Fluent[T_co]):
    """Operators that gather elements into groups."""

    __slots__ = ()

    def buffer(self, n: int) -> Flow[list[T_co]]:
        """Emit lists of ``n`` elements; the last one has what is left, if there is any.

        Demand: ``n`` elements are asked for where one list is wanted; fewer than ``n`` are held.
        Errors: when the source fails, what did not make up a list goes to ``hooks.on_discard``, as it does on
        cancel. ``n`` below 1 is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava: ``buffer``; Pekko: ``grouped``; the builtin ``itertools.batched``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).buffer(2).run_sync()
        [[0, 1], [2, 3], [4]]
        """
        check_count("buffer", "n", n, 1)
        return self.then(Buffer[T_co](n))
