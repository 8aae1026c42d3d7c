"""Operators that gather elements into groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .._fluent import Fluent, check_count, check_function
from .buffer import Buffer
from .buffer_until_changed import BufferUntilChanged
from .sliding import Sliding

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

    def sliding(self, size: int, step: int = 1) -> Flow[list[T_co]]:
        """Emit lists of ``size`` elements, each beginning ``step`` elements after the one before.

        With a ``step`` below ``size`` they overlap, with one above it elements are left out between them. A list is
        emitted when it is full; elements that fill none are dropped.
        Demand: enough for the wanted lists, and what lies between them; the latest ``size`` elements are kept.
        Errors: elements that have been in no list when the flow ends, fails or is cancelled go to
        ``hooks.on_discard``. A ``size`` or ``step`` below 1 is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Pekko: ``sliding``; Reactor, RxJava: ``buffer(maxSize, skip)``, which also emit what is left.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).sliding(3).run_sync()
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        >>> Flow.range(5).sliding(1, 2).run_sync()
        [[0], [2], [4]]
        """
        check_count("sliding", "size", size, 1)
        check_count("sliding", "step", step, 1)
        return self.then(Sliding[T_co](size, step))

    def buffer_until_changed(
        self, key: Callable[[T_co], Any] | None = None, *, max_size: int = 65_536
    ) -> Flow[list[T_co]]:
        """Emit lists of elements that follow each other and are equal, by themselves or by their ``key``.

        Demand: one element for each list that is wanted, and on until one differs, which is kept for the next. One
        list of at most ``max_size`` elements is held.
        Errors: LimitExceededError when more elements than that belong together; what ``key`` raises. What is held
        when the flow fails or is cancelled goes to ``hooks.on_discard``. A ``max_size`` below 1 and an
        ``async def`` are refused when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor: ``bufferUntilChanged``; the builtin ``itertools.groupby``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 3, 4, 6, 7).buffer_until_changed(lambda n: n % 2).run_sync()
        [[1, 3], [4, 6], [7]]
        """
        if key is not None:
            check_function("buffer_until_changed", key, "an ordinary function is needed")
        check_count("buffer_until_changed", "max_size", max_size, 1)
        return self.then(BufferUntilChanged[T_co](key, max_size))
