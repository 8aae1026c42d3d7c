"""Operators that combine several flows into one."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..._fusion import Stage
from .._fluent import Fluent, check_count, check_flag, check_flows

if TYPE_CHECKING:
    from ..._flow.flow import Flow

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Combining(Fluent[T_co]):
    """Operators that combine several flows into one."""

    __slots__ = ()

    def concat(self, *others: Flow[U]) -> Flow[T_co | U]:
        """Emit this flow to its end, then each of ``others`` in order.

        Demand: the unmet demand of one flow is requested from the next, once. A flow is subscribed to when the one
        before it has completed, also without demand. Nothing is buffered.
        Errors: the failure of a flow ends the whole flow. An argument that is not a flow is refused with TypeError when
        the flow is built.
        Spark: flows that run entirely in the workers, in order, are one job. Its partitions are those of the flows, one
        after another. So a partition of the next flow may start early, as the next partition of one flow does.
        (Reactor: ``concatWith``; RxJava: ``concat``; Spark: ``union``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 2).concat(Flow.of(3), Flow.of("four")).run_sync()
        [1, 2, 3, 'four']
        """
        from .concat import Concat, parts

        check_flows("concat", self, *others)
        flows = tuple(chain.from_iterable(map(parts, (self._as_flow(), *others))))
        return self._begin(Concat(flows))

    def concat_eager(self, *others: Flow[U], prefetch: int = 32) -> Flow[T_co | U]:
        """Read this flow and ``others`` at the same time, and emit this flow to its end, then each of ``others`` in order.

        Demand: each flow is asked for ``prefetch`` elements at once, and for more when three quarters of them have been
        emitted. At most ``prefetch`` elements of each are buffered until it is their turn and they are requested.
        Errors: the failure of a flow comes at its place and ends the whole flow. The others are cancelled, and the
        buffered elements go to ``hooks.on_discard``. An argument that is not a flow is refused with TypeError and a
        ``prefetch`` below 1 with ValueError when the flow is built.
        (RxJava: ``concatEager``; Reactor: ``mergeSequential``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> async def main():
        ...     slow, slower = Flow.interval(1).take(2), Flow.interval(2).take(1)
        ...     items = await slow.concat_eager(slower).to_list()
        ...     return items, asyncio.get_running_loop().time()
        >>> run_virtual(main())
        ([0, 1, 0], 2.0)
        """
        from .concat_eager import ConcatEager

        check_flows("concat_eager", self, *others)
        check_count("concat_eager", "prefetch", prefetch, 1)
        return self._begin(ConcatEager[T_co | U]((self._as_flow(), *others), prefetch))

    def merge(self, *others: Flow[U], prefetch: int = 128, delay_errors: bool = False) -> Flow[T_co | U]:
        """Read this flow and ``others`` at the same time, and emit elements as they arrive.

        It is fair: if several flows have elements waiting, they take turns, and each emits all that it has in its turn.
        The elements of one flow keep their order.

        Demand: each flow is asked for ``prefetch`` elements at once, and for more when three quarters of them have
        been emitted. At most ``prefetch`` elements of each are buffered until they are wanted.
        Errors: the failure of a flow ends the whole flow, after the elements that it emitted. The others are cancelled,
        and the buffered elements go to ``hooks.on_discard``. With ``delay_errors`` the others are read to their ends
        first. Several failures are an ExceptionGroup then. An argument that is not a flow is refused with TypeError and
        a ``prefetch`` below 1 with ValueError when the flow is built.
        (Reactor, RxJava: ``merge``, ``mergeWith``; Pekko, RxPY, aiostream: ``merge``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> fast, slow = Flow.interval(1).map("fast {}".format), Flow.interval(2.5).map("slow {}".format)
        >>> run_virtual(fast.merge(slow).take(4).to_list())
        ['fast 0', 'fast 1', 'slow 0', 'fast 2']
        """
        from .merge import Merge

        check_flows("merge", self, *others)
        check_count("merge", "prefetch", prefetch, 1)
        check_flag("merge", "delay_errors", delay_errors)
        return self._begin(Merge[T_co | U]((self._as_flow(), *others), prefetch, delay_errors))

    def start_with(self, *items: U) -> Flow[T_co | U]:
        """Emit ``items``, then the elements of this flow.

        Demand: passed on one for one. This flow is asked for nothing before ``items`` have been emitted.
        Errors: those of this flow, after ``items``.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava, RxPY: ``startWith``; Pekko: ``prepend``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("b", "c").start_with("a").run_sync()
        ['a', 'b', 'c']
        """
        from .start_with import StartWith

        stage: Stage[Any, T_co | U] = StartWith(items)
        return self.then(stage)

    def default_if_empty(self, default: U) -> Flow[T_co | U]:
        """Emit the elements of this flow, or ``default`` if it completes without an element.

        Demand: passed on one for one. ``default`` takes one too. Nothing is buffered.
        Errors: those of this flow.
        Spark: runs after the boundary, since it depends on the whole.
        (Reactor, RxJava, RxPY: ``defaultIfEmpty``; Pekko: ``orElse``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).filter(lambda n: n > 5).default_if_empty(-1).run_sync()
        [-1]
        """
        from .default_if_empty import DefaultIfEmpty

        stage: Stage[Any, T_co | U] = DefaultIfEmpty(default)
        return self.then(stage)

    def switch_if_empty(self, other: Flow[U]) -> Flow[T_co | U]:
        """Emit the elements of this flow, or those of ``other`` if it completes without an element.

        Demand: the demand on this flow is requested from ``other``, once. ``other`` is not subscribed to unless it is
        needed. Nothing is buffered.
        Errors: those of the flow that is read. An argument that is not a flow is refused with TypeError when the flow
        is built.
        (Reactor, RxJava: ``switchIfEmpty``; Pekko: ``orElse``.)

        >>> from reactive_aio import Flow
        >>> Flow.empty().switch_if_empty(Flow.of("other")).run_sync()
        ['other']
        """
        from .switch_if_empty import SwitchIfEmpty

        check_flows("switch_if_empty", self, other)
        return self._begin(SwitchIfEmpty[T_co | U](self._as_flow(), other))

    def race(self, *others: Flow[U]) -> Flow[T_co | U]:
        """Emit the elements of the flow that signals first: an element, a failure or its end.

        Demand: every flow gets the whole demand until one has signalled, and from then on that flow alone. The others
        are cancelled. Nothing is buffered. Elements that they have made by then go to ``hooks.on_discard``. The flows
        are subscribed to in order, up to one that ends at once.
        Errors: the failure of the first flow. A flow that fails before any has signalled is the first. An argument that
        is not a flow is refused with TypeError when the flow is built.
        (Reactor: ``firstWithSignal``; RxJava, RxPY: ``amb``.)

        >>> from reactive_aio import Flow
        >>> Flow.never().race(Flow.of("first", "of all")).run_sync()
        ['first', 'of all']
        """
        from .race import Race

        check_flows("race", self, *others)
        return self._begin(Race[T_co | U]((self._as_flow(), *others)))

    @overload
    def zip(self, a: Flow[A], /, *, prefetch: int = ...) -> Flow[tuple[T_co, A]]: ...
    @overload
    def zip(self, a: Flow[A], b: Flow[B], /, *, prefetch: int = ...) -> Flow[tuple[T_co, A, B]]: ...
    @overload
    def zip(self, a: Flow[A], b: Flow[B], c: Flow[C], /, *, prefetch: int = ...) -> Flow[tuple[T_co, A, B, C]]: ...
    @overload
    def zip(
        self, a: Flow[A], b: Flow[B], c: Flow[C], d: Flow[D], /, *, prefetch: int = ...
    ) -> Flow[tuple[T_co, A, B, C, D]]: ...
    @overload
    def zip(self, *others: Flow[U], prefetch: int = ...) -> Flow[tuple[T_co | U, ...]]: ...
    def zip(self, *others: Flow[Any], prefetch: int = 256) -> Flow[Any]:
        """Emit tuples of one element of this flow and one of each of ``others``, in order.

        It completes as soon as there can be no further tuple: when a flow has ended and all its elements have been
        used, also without demand. The others are cancelled then.
        Demand: each flow is asked for ``prefetch`` elements at once, and for more when three quarters of them have been
        used. At most ``prefetch`` elements of each are buffered until there is one of each and a tuple is requested.
        Errors: the failure of a flow comes after its elements, and ends the whole flow when they have been used. If
        several have ended, the first in order decides, as in the builtin. Elements left over go to
        ``hooks.on_discard``, and a failure that was not reached goes to ``hooks.on_error_dropped``. An argument that is
        not a flow is refused with TypeError and a ``prefetch`` below 1 with ValueError when the flow is built.
        (Reactor, RxJava, Pekko, RxPY: ``zip``; the builtin ``zip``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a", "b").zip(Flow.range(1, 4)).run_sync()
        [('a', 1), ('b', 2)]
        """
        from .zip import Zip

        check_flows("zip", self, *others)
        check_count("zip", "prefetch", prefetch, 1)
        return self._begin(Zip[Any]((self._as_flow(), *others), prefetch))

    @overload
    def combine_latest(self, a: Flow[A], /, *, prefetch: int = ...) -> Flow[tuple[T_co, A]]: ...
    @overload
    def combine_latest(self, a: Flow[A], b: Flow[B], /, *, prefetch: int = ...) -> Flow[tuple[T_co, A, B]]: ...
    @overload
    def combine_latest(
        self, a: Flow[A], b: Flow[B], c: Flow[C], /, *, prefetch: int = ...
    ) -> Flow[tuple[T_co, A, B, C]]: ...
    @overload
    def combine_latest(
        self, a: Flow[A], b: Flow[B], c: Flow[C], d: Flow[D], /, *, prefetch: int = ...
    ) -> Flow[tuple[T_co, A, B, C, D]]: ...
    @overload
    def combine_latest(self, *others: Flow[U], prefetch: int = ...) -> Flow[tuple[T_co | U, ...]]: ...
    def combine_latest(self, *others: Flow[Any], prefetch: int = 32) -> Flow[Any]:
        """For each element of any flow, emit a tuple of the latest elements of all.

        The first tuple comes when all have emitted. Elements make tuples in the order in which they arrive, and none is
        left out after the first tuple. A flow that is faster than the subscriber is slowed, not sampled. It completes
        when all flows have completed, or one that has emitted nothing.
        Demand: each flow is asked for ``prefetch`` elements at once, and for more when three quarters of them have been
        used. At most ``prefetch`` elements of each are buffered until they are requested.
        Errors: the failure of a flow ends the whole flow, after the elements that it emitted. The others are cancelled.
        Elements that are buffered, and elements that were replaced before they were in a tuple, go to
        ``hooks.on_discard``. An argument that is not a flow is refused with TypeError and a ``prefetch`` below 1 with
        ValueError when the flow is built.
        (Reactor, RxJava: ``combineLatest``; RxPY, aioreactive: ``combine_latest``; kotlinx: ``combine``.)

        >>> from reactive_aio import Flow
        >>> from reactive_aio.testing import run_virtual
        >>> fast, slow = Flow.interval(1).take(4), Flow.interval(1.6).map("abc".__getitem__).take(2)
        >>> run_virtual(fast.combine_latest(slow).to_list())
        [(0, 'a'), (1, 'a'), (2, 'a'), (2, 'b'), (3, 'b')]
        """
        from .combine_latest import CombineLatest

        check_flows("combine_latest", self, *others)
        check_count("combine_latest", "prefetch", prefetch, 1)
        return self._begin(CombineLatest[Any]((self._as_flow(), *others), prefetch))

    def with_latest_from(self, other: Flow[U]) -> Flow[tuple[T_co, U]]:
        """Emit pairs ``(element, latest)``: each element of this flow with the latest one of ``other``.

        This flow is asked for elements only when ``other`` has emitted, so that none is left out. It completes when
        this flow completes, or when ``other`` completes without an element.
        Demand: passed to this flow one for one. A source that can't be slowed needs an ``on_backpressure_`` operator
        before this one. ``other`` is asked for all it has, whatever the demand. The latest element is kept.
        Errors: the failure of either flow ends the whole flow at once. An element of ``other`` that was in no pair goes
        to ``hooks.on_discard``. An argument that is not a flow is refused with TypeError when the flow is built.
        (Reactor, RxJava: ``withLatestFrom``, which leave out earlier elements; RxPY: ``with_latest_from``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).with_latest_from(Flow.of("old", "new")).run_sync()
        [(0, 'new'), (1, 'new'), (2, 'new')]
        """
        from .with_latest_from import WithLatestFrom

        check_flows("with_latest_from", self, other)
        return self._begin(WithLatestFrom[tuple[T_co, U]](self._as_flow(), other))
