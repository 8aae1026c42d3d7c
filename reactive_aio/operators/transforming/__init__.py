"""Operators that turn elements into other elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..._core.missing import MISSING
from ..._fusion import label
from .._fluent import Fluent, check_count, check_flag, check_function, check_whole
from ._room import ROOM
from .map import Map

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from .handle import SynchronousSink
    from .signal import Signal

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")


class Transforming(Fluent[T_co]):
    """Operators that turn elements into other elements."""

    __slots__ = ()

    def map(self, fn: Callable[[T_co], R]) -> Flow[R]:
        """Emit ``fn(item)`` for each element.

        Demand: passed on one for one. Nothing is buffered.
        Errors: an exception of ``fn`` ends the flow, after the elements before it. An ``async def`` is refused with
        TypeError when the flow is built.
        Spark: runs in the workers.
        (Reactor, RxJava: ``map``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).map(lambda n: n * 10).run_sync()
        [0, 10, 20]
        """
        check_function("map", fn, "use map_async()")
        return self.then(Map(fn))

    def flat_map_iterable(self, fn: Callable[[T_co], Iterable[R]]) -> Flow[R]:
        """Emit the elements of the iterable ``fn(item)``, one after another, for each element.

        Demand: one element is requested when the iterable of the one before has been emitted. Unbounded demand is passed
        on. An iterable is read as its elements are requested. Nothing is buffered.
        Errors: an exception of ``fn`` or of its iterable ends the flow, after the elements before it. An ``async def`` is
        refused with TypeError when the flow is built.
        Cancel: an iterable that can be closed, such as a generator, is closed.
        Spark: runs in the workers.
        (Reactor, RxJava: ``flatMapIterable``; Pekko: ``mapConcat``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("to be", "or not").flat_map_iterable(str.split).run_sync()
        ['to', 'be', 'or', 'not']
        """
        from .flat_map_iterable import FlatMapIterable

        check_function("flat_map_iterable", fn, "await in map_async(), and give the iterables here")
        return self.then(FlatMapIterable(fn))

    @overload
    def map_batches(self, fn: Callable[[list[T_co]], Iterable[R]], *, size: int = ...) -> Flow[R]: ...
    @overload
    def map_batches(self, fn: Callable[[B], Iterable[R]], *, size: int = ..., as_: type[B]) -> Flow[R]: ...
    def map_batches(self, fn: Callable[[Any], Iterable[R]], *, size: int = 1024, as_: type[Any] = list) -> Flow[R]:
        """Call ``fn`` with batches of up to ``size`` elements, and emit the elements of the iterables that it returns.

        Use it for functions that are faster on many elements at once, such as those of numpy, of a model, or of a
        service that takes lists. A batch is a ``list``, or by ``as_`` a ``pandas.DataFrame``, a ``pyarrow.Table`` or a
        ``pyarrow.RecordBatch``. Their columns are the fields of the elements, which are dicts, tuples, or objects of
        attrs classes and dataclasses. Tuples without names have the columns ``_1``, ``_2`` and so on, and any other
        element is in
        the column ``value``. The last batch may be smaller than ``size``, on workers the last of each partition or chunk.
        So the results of ``fn`` must not depend on where a batch ends.

        Demand: ``size`` elements are requested when the results of the batch before have been emitted. Unbounded demand is
        passed on. Fewer than ``size`` elements are kept, and the iterable that is being read.
        Errors: an exception of ``fn`` or of its iterable ends the flow, after the elements before it. The kept elements
        go to ``hooks.on_discard``. TypeError if ``fn`` returns a table, because iterating over it yields columns.
        Another ``as_``, a ``size`` below 1 and an ``async def`` are refused when the flow is built.
        Spark: runs in the workers.
        (Spark: ``mapInPandas``, ``mapInArrow``; Ray, Polars: ``map_batches``; Reactor: ``buffer(n).concatMapIterable``.)

        >>> from reactive_aio import Flow
        >>> def shares(amounts: list[int]) -> list[float]:
        ...     print(amounts)
        ...     return [amount / 10 for amount in amounts]
        >>> Flow.of(1, 2, 3).map_batches(shares, size=2).run_sync()
        [1, 2]
        [3]
        [0.1, 0.2, 0.3]
        """
        from .map_batches import MapBatches, check_kind

        check_function("map_batches", fn, "return an iterable from an ordinary function")
        check_count("map_batches", "size", size, 1)
        check_kind(as_)
        return self.then(MapBatches[T_co, R](fn, size, as_))

    def map_not_none(self, fn: Callable[[T_co], R | None]) -> Flow[R]:
        """Emit ``fn(item)`` for each element for which it is not None.

        Demand: passed on. For each element that it drops, it requests another. Nothing is buffered.
        Errors: an exception of ``fn`` ends the flow, after the elements before it. An ``async def`` is refused with
        TypeError when the flow is built.
        Spark: runs in the workers.
        (Reactor: ``mapNotNull``; RxJava: ``mapOptional``; Kotlin: ``mapNotNull``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a", "b", "c").map_not_none({"a": 1, "c": 3}.get).run_sync()
        [1, 3]
        """
        from .map_not_none import MapNotNone

        check_function("map_not_none", fn, "return a value from an ordinary function")
        return self.then(MapNotNone(fn))

    @overload
    def scan(self, fn: Callable[[T_co, T_co], T_co]) -> Flow[T_co]: ...
    @overload
    def scan(self, fn: Callable[[A, T_co], A], initial: A) -> Flow[A]: ...
    def scan(self, fn: Callable[[Any, T_co], Any], initial: Any = MISSING) -> Flow[Any]:
        """Emit each intermediate value of a reduction from the left: ``initial``, ``fn(initial, first)``, and so on.

        Without ``initial`` the first element is the first value. ``initial`` is emitted before any element is
        requested, and also for an empty source.
        Demand: passed on one for one, less ``initial``, which needs no element. One value is kept.
        Errors: an exception of ``fn`` ends the flow, after the values before it. An ``async def`` is refused with TypeError
        when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava, Pekko: ``scan``; the builtin ``itertools.accumulate``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(1, 5).scan(lambda a, b: a * b).run_sync()
        [1, 2, 6, 24]
        >>> Flow.of("a", "b").scan(lambda text, letter: text + letter, "").run_sync()
        ['', 'a', 'ab']
        """
        from .scan import Scan

        check_function("scan", fn, "combine with an ordinary function")
        return self.then(Scan(fn, initial))

    def index(self, start: int = 0) -> Flow[tuple[int, T_co]]:
        """Emit pairs ``(number, element)``, counted from ``start``, as the builtin ``enumerate`` does.

        Demand: passed on one for one. Nothing is buffered.
        Errors: a ``start`` that is not a whole number is refused with TypeError when the flow is built.
        Spark: runs in the workers with the operators that follow, one partition after another. Each partition begins with
        the number of elements before it.
        (Reactor: ``index``; Pekko: ``zipWithIndex``; Kotlin: ``withIndex``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a", "b").index().run_sync()
        [(0, 'a'), (1, 'b')]
        """
        from .index import Index

        check_whole("index", "start", start)
        return self.then(Index[T_co](start))

    def sort_by(
        self, key: Callable[[T_co], Any] | None = None, *, reverse: bool = False, max_size: int = ROOM
    ) -> Flow[T_co]:
        """Emit all elements in ascending order, by themselves or by their ``key``, when the source has completed.

        Equal elements keep their order, also with ``reverse``. ``key`` is called once for each element, on arrival.
        Demand: unbounded as soon as anything is wanted. At most ``max_size`` elements are kept. They are sorted in steps
        of some thousand elements, and the event loop has its turns in between.
        Errors: LimitExceededError when one more element comes. An exception of ``key`` ends the flow, and so does an
        element that can't be compared. A ``max_size`` below 1 and an ``async def`` are refused when the flow is built.
        Spark: in parts. Each partition is sorted in its worker, and the partitions are merged here. With a ``max_size``
        above the default 1,000,000 the workers merge them too, after one shuffle. Each worker merges a range of the
        keys.
        (Reactor: ``sort``; RxJava: ``sorted``; Spark: ``sortBy``; the builtin ``sorted``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("bb", "ccc", "a", "dd").sort_by(len).run_sync()
        ['a', 'bb', 'dd', 'ccc']
        """
        from .sort_by import SortBy

        if key is not None:
            check_function("sort_by", key, "an ordinary function is needed")
        check_count("sort_by", "max_size", max_size, 1)
        check_flag("sort_by", "reverse", reverse)
        return self.then(SortBy[T_co](key, reverse, max_size))

    def handle(self, fn: Callable[[T_co, SynchronousSink[R]], object]) -> Flow[R]:
        """Call ``fn(item, sink)`` for each element, and emit the element that it passes to ``sink.next``, if any.

        It does the work of ``map`` and ``filter`` in one function. ``sink.complete()`` completes the flow at once, after
        the element that was passed.
        Demand: passed on. For each element that emits nothing, it requests another. Nothing is buffered.
        Errors: an exception of ``fn`` ends the flow, after the elements before it; RuntimeError for a second ``sink.next``.
        An ``async def`` is refused with TypeError when the flow is built.
        Spark: runs after the boundary, since it may end the whole.
        (Reactor: ``handle``.)

        >>> from reactive_aio import Flow, SynchronousSink
        >>> def parse(line: str, sink: SynchronousSink[int]) -> None:
        ...     if line == "end":
        ...         sink.complete()
        ...     elif line.isdigit():
        ...         sink.next(int(line))
        >>> Flow.of("1", "one", "2", "end", "3").handle(parse).run_sync()
        [1, 2]
        """
        from .handle import Handle

        check_function("handle", fn, "give to the sink from an ordinary function")
        return self.then(Handle(fn))

    def pairwise(self) -> Flow[tuple[T_co, T_co]]:
        """Emit each element with the one before it: the first and the second, the second and the third, and so on.

        Demand: the first request is enlarged by one, once. One element is kept.
        Errors: those of the source. A flow of one element emits no pair.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (RxPY: ``pairwise``; the builtin ``itertools.pairwise``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(4).pairwise().run_sync()
        [(0, 1), (1, 2), (2, 3)]
        """
        from .pairwise import Pairwise

        return self.then(Pairwise[T_co]())

    def materialize(self) -> Flow[Signal[T_co]]:
        """Emit each signal as an element: ``Next(item)``, and last ``Completed()`` or ``Failed(error)``.

        Demand: passed on one for one. The last signal takes one too. Nothing is buffered.
        Errors: none, since a failure is an element.
        Runs: in a region of its own, where this flow ends.
        (Reactor, RxJava, RxPY: ``materialize``.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a").materialize().run_sync()
        [Next(item='a'), Completed()]
        >>> Flow.error(OSError("down")).materialize().run_sync()
        [Failed(error=OSError('down'))]
        """
        from ..sourcing.iterable import Of
        from .materialize import AsNext, Materialize

        last: Callable[[Any], Flow[Any]] = lambda signal: self._begin(Of((signal,)))  # noqa: E731 - a typed field
        return self._begin(Materialize[T_co](self.then(AsNext()), last))

    def dematerialize(self: Transforming[Signal[R]]) -> Flow[R]:
        """Turn elements into signals again, up to the first ``Completed()`` or ``Failed(error)``.

        Demand: passed on one for one, and one more for the last signal. Nothing is buffered.
        Errors: the error of ``Failed``; TypeError for an element that is not a signal.
        Spark: runs after the boundary, since it may end the whole flow.
        (Reactor, RxJava, RxPY: ``dematerialize``.)

        >>> from reactive_aio import Completed, Flow, Next
        >>> Flow.of(Next(1), Completed(), Next(2)).dematerialize().run_sync()
        [1]
        """
        from .materialize import Dematerialize

        return self.then(Dematerialize[R]())

    def through(self, operator: Callable[[Flow[T_co]], R]) -> R:
        """Return ``operator(self)``: the way to chain your own operator.

        Demand: that of the operator's result.
        Errors: the exceptions of ``operator``, at once. An argument that can't be called is refused with TypeError, and
        so is an operator that returns None.
        (Reactor: ``transform``; RxPY: ``pipe``.)

        >>> from reactive_aio import Flow
        >>> def doubled(flow: Flow[int]) -> Flow[int]:
        ...     return flow.map(lambda n: 2 * n)
        >>> Flow.range(3).through(doubled).run_sync()
        [0, 2, 4]
        """
        check_function("through", operator)
        made = operator(self._as_flow())
        if made is None:
            raise TypeError(f"through({label(operator)}): the operator returned None. Return the new flow")
        return made
