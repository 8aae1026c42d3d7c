"""Operators that let some of the elements through."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, TypeVar, overload

from ..._fusion import label
from .._fluent import Fluent, check_count, check_flag, check_fraction, check_function, check_whole
from .filter import Filter
from .take import Take

if TYPE_CHECKING:
    import asyncio

    from typing_extensions import TypeIs

    from ..._flow.flow import Flow

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
K = TypeVar("K")


class Filtering(Fluent[T_co]):
    """Operators that let some of the elements through."""

    __slots__ = ()

    @overload
    def filter(self, predicate: Callable[[T_co], TypeGuard[S]]) -> Flow[S]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], TypeIs[S]]) -> Flow[S]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], object]) -> Flow[T_co]: ...
    def filter(self, predicate: Callable[[T_co], object]) -> Flow[Any]:
        """Emit the elements for which ``predicate`` is true.

        Demand: passed on. For each element that it drops, it requests another. Nothing is buffered.
        Errors: an exception of ``predicate`` ends the flow, after the elements before it. An ``async def`` is refused with
        TypeError when the flow is built.
        Spark: runs in the workers.
        (Reactor, RxJava: ``filter``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(6).filter(lambda n: n % 2).run_sync()
        [1, 3, 5]
        """
        check_function("filter", predicate, "use filter_when()")
        return self.then(Filter(predicate))

    def take(self, n: int) -> Flow[T_co]:
        """Emit the first ``n`` elements, then cancel the source and complete, without further demand.

        Demand: passed on, but never more than ``n`` in all. ``take(0)`` completes without opening the source.
        Errors: a negative ``n`` is refused with ValueError when the flow is built.
        Spark: in parts. No task emits more than ``n`` elements, and the elements of all tasks are counted here.
        (Reactor 3.5, RxJava: ``take``; Pekko: ``take``.)

        >>> from reactive_aio import Flow
        >>> Flow.from_iterable(iter(int, 1)).take(2).run_sync()
        [0, 0]
        """
        check_count("take", "n", n, 0)
        return self.then(Take(n))

    def skip(self, n: int) -> Flow[T_co]:
        """Drop the first ``n`` elements and emit the rest.

        Demand: the first request is enlarged by ``n``, once. Nothing is buffered.
        Errors: a negative ``n`` is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava: ``skip``; Pekko: ``drop``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).skip(3).run_sync()
        [3, 4]
        """
        from .skip import Skip

        check_count("skip", "n", n, 0)
        return self.then(Skip(n))

    def take_last(self, n: int) -> Flow[T_co]:
        """Emit the last ``n`` elements, once the source has completed.

        Demand: unbounded as soon as anything is wanted. The latest ``n`` elements are kept.
        Errors: if the source fails, no element is emitted. The kept elements go to ``hooks.on_discard`` then, and on
        cancel. A negative ``n`` is refused with ValueError when the flow is built.
        Spark: in parts; only the last ``n`` elements of each partition leave the workers.
        (Reactor, RxJava, Pekko: ``takeLast``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).take_last(2).run_sync()
        [3, 4]
        """
        from .take_last import TakeLast

        check_count("take_last", "n", n, 0)
        return self.then(TakeLast(n))

    def take_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """Emit elements as long as ``predicate`` is true. At the first other element, cancel the source and complete.

        Demand: passed on one for one. Nothing is buffered. The element that ends it is read and dropped.
        Errors: an exception of ``predicate`` ends the flow, after the elements before it. An ``async def`` is refused with
        TypeError when the flow is built.
        Spark: in parts. A task stops where its partition would end it, and the first such place is the end.
        (Reactor, RxJava, Pekko: ``takeWhile``; the builtin ``itertools.takewhile``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 4, 6, 3, 8).take_while(lambda n: n < 5).run_sync()
        [1, 4]
        """
        from .take_while import TakeWhile

        check_function("take_while", predicate, "an ordinary predicate is needed")
        return self.then(TakeWhile(predicate))

    def take_until(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """Emit elements up to and including the first for which ``predicate`` is true, then cancel and complete.

        Demand: passed on one for one. The end follows the last element without further demand. Nothing is buffered, and
        nothing is read beyond that element.
        Errors: an exception of ``predicate`` ends the flow, after the elements before it. An ``async def`` is refused with
        TypeError when the flow is built.
        Spark: in parts. A task stops where its partition would end it, and the first such place is the end.
        (Reactor, RxJava: ``takeUntil``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 4, 6, 3, 8).take_until(lambda n: n > 5).run_sync()
        [1, 4, 6]
        """
        from .take_while import TakeUntil

        check_function("take_until", predicate, "an ordinary predicate is needed")
        return self.then(TakeUntil(predicate))

    def take_until_other(
        self, other: Flow[object] | asyncio.Event | Callable[[], Awaitable[object]] | Awaitable[object]
    ) -> Flow[T_co]:
        """Emit elements until ``other`` emits or completes, then cancel and complete, without further demand.

        ``other`` is a flow, an event or a function. An event ends this flow when it is set. A function, such as an
        ``async def``, is called for each subscription, and its result is awaited. A coroutine, a task or a future serves
        one subscription only.

        Demand: passed on one for one. One element of ``other`` is requested before this flow is subscribed to. Nothing is
        buffered. If this flow ends first, ``other`` is cancelled, or the awaitable that the function has returned.
        Errors: a failure of either ends the flow. The element of ``other`` goes to ``hooks.on_discard``. The result of a
        function is ignored. SourceConsumedError for the second subscription to an awaitable. An argument of another type
        is refused with TypeError when the flow is built.
        (Reactor: ``takeUntilOther``; RxJava, RxPY: ``takeUntil``; Pekko: ``KillSwitches``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).concat(Flow.never()).take_until_other(Flow.interval(0.01)).run_sync()
        [0, 1, 2]
        >>> import asyncio
        >>> Flow.range(3).concat(Flow.never()).take_until_other(lambda: asyncio.sleep(0.01)).run_sync()
        [0, 1, 2]
        """
        from .take_until_other import TakeUntilOther, ending

        flow = self._as_flow()
        return self._begin(TakeUntilOther[T_co](flow, ending(flow, other)))

    def skip_last(self, n: int) -> Flow[T_co]:
        """Emit all but the last ``n`` elements, each as soon as ``n`` others have come after it.

        Demand: the first request is enlarged by ``n``, once. ``n`` elements are held back.
        Errors: elements that are held back at the end, at a failure or on cancel go to ``hooks.on_discard``. A negative
        ``n`` is refused with ValueError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava: ``skipLast``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(5).skip_last(2).run_sync()
        [0, 1, 2]
        """
        from .skip_last import SkipLast

        check_count("skip_last", "n", n, 0)
        return self.then(SkipLast(n))

    def skip_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """Drop elements as long as ``predicate`` is true for them. Emit the first other element and all that follow.

        Demand: passed on. For each element that it drops, it requests another. Nothing is buffered.
        Errors: an exception of ``predicate`` ends the flow. An ``async def`` is refused with TypeError when the flow is
        built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava: ``skipWhile``; Pekko: ``dropWhile``; the builtin ``itertools.dropwhile``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 4, 6, 3, 8).skip_while(lambda n: n < 5).run_sync()
        [6, 3, 8]
        """
        from .skip_while import SkipWhile

        check_function("skip_while", predicate, "an ordinary predicate is needed")
        return self.then(SkipWhile(predicate))

    def __getitem__(self, at: builtins.slice[Any, Any, Any]) -> Flow[T_co]:
        """Emit the elements of a slice, ``flow[start:stop:step]``, then cancel the source and complete.

        Demand: enlarged by the elements before and between the wanted ones, and never beyond the last of them. Nothing is
        buffered.
        Errors: a negative bound or step is refused with ValueError when the flow is built, and another index with
        TypeError.
        Spark: with a ``stop`` in parts, since no task goes beyond it. Without one, runs after the boundary.
        (aiostream: ``getitem``; RxPY: ``slice``; the builtin ``itertools.islice``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(100)[2:10:3].run_sync()
        [2, 5, 8]
        """
        from .slice import sliced

        return self.then(sliced(at))

    # Without it Python would take what has __getitem__ for a sequence, and call it with 0, 1, 2...
    __iter__ = None

    @overload
    def distinct(
        self: Filtering[Hashable], key: None = None, *, max_keys: int = ..., evict: bool = ...
    ) -> Flow[T_co]: ...
    @overload
    def distinct(self, key: Callable[[T_co], Hashable], *, max_keys: int = ..., evict: bool = ...) -> Flow[T_co]: ...
    def distinct(
        self, key: Callable[[T_co], Hashable] | None = None, *, max_keys: int = 65_536, evict: bool = False
    ) -> Flow[T_co]:
        """Drop elements that equal an earlier one, or whose ``key`` equals an earlier key.

        Demand: passed on. For each element that it drops, it requests another. At most ``max_keys`` keys are
        remembered.
        Errors: LimitExceededError when one more key comes. With ``evict`` the oldest key is forgotten instead, and
        passes when it comes again. An exception of ``key``, and a key that can't be hashed, ends the flow. ``max_keys``
        below 1 and an ``async def`` are refused when the flow is built.
        Spark: in parts. A worker drops the duplicates within its partition. With ``evict`` it runs after the boundary.
        (Reactor, RxJava: ``distinct``, of unbounded memory.)

        >>> from reactive_aio import Flow
        >>> Flow.of("a", "b", "A", "c", "b").distinct(str.lower).run_sync()
        ['a', 'b', 'c']
        """
        from .distinct import Distinct

        if key is not None:
            check_function("distinct", key, "an ordinary function is needed")
        check_count("distinct", "max_keys", max_keys, 1)
        check_flag("distinct", "evict", evict)
        return self.then(Distinct[T_co](key, max_keys, evict))

    @overload
    def distinct_until_changed(
        self, key: None = None, *, comparer: Callable[[T_co, T_co], object] | None = None
    ) -> Flow[T_co]: ...
    @overload
    def distinct_until_changed(
        self, key: Callable[[T_co], K], *, comparer: Callable[[K, K], object] | None = None
    ) -> Flow[T_co]: ...
    def distinct_until_changed(
        self, key: Callable[[T_co], Any] | None = None, *, comparer: Callable[[Any, Any], object] | None = None
    ) -> Flow[T_co]:
        """Drop elements that equal the one before, compared by themselves or by their ``key``, and emit the others.

        ``comparer(before, now)`` returns whether two keys are equal. By default it is ``==``.
        Demand: passed on. For each element that it drops, it requests another. One key is kept.
        Errors: an exception of ``key`` or ``comparer`` ends the flow, after the elements before it. An ``async def`` is
        refused with TypeError when the flow is built.
        Spark: runs after the boundary, since it depends on the order of the whole.
        (Reactor, RxJava: ``distinctUntilChanged``; Pekko: ``dropRepeated``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, 1, 2, 2, 1).distinct_until_changed().run_sync()
        [1, 2, 1]
        >>> Flow.of(10, 11, 15, 16).distinct_until_changed(comparer=lambda a, b: abs(a - b) < 3).run_sync()
        [10, 15]
        """
        from .distinct_until_changed import DistinctUntilChanged

        for function in (key, comparer):
            if function is not None:
                check_function("distinct_until_changed", function, "an ordinary function is needed")
        return self.then(DistinctUntilChanged[T_co](key, comparer))

    def of_type(self, kind: type[S]) -> Flow[S]:
        """Emit the elements that are instances of ``kind``.

        Demand: passed on. For each element that it drops, it requests another. Nothing is buffered.
        Errors: an argument that is not a type is refused with TypeError when the flow is built.
        Spark: runs in the workers.
        (Reactor, RxJava: ``ofType``; Pekko: ``collectType``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, "a", 2.5, "b").of_type(str).run_sync()
        ['a', 'b']
        """
        from .of_type import OfType

        if not isinstance(kind, type):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"of_type() takes a type, not {label(kind)}")
        return self.then(OfType(kind))

    def sample_fraction(
        self, fraction: float, *, seed: int = 0, key: Callable[[T_co], Any] | None = None
    ) -> Flow[T_co]:
        """Emit a random ``fraction`` of the elements, in their order: the same ones each time for the same ``seed``.

        A hash of the ``repr`` of the element, or of its ``key``, and ``seed`` decide whether it is drawn. Its place and
        its partition make no difference. So equal elements are drawn all or not at all. With a key, all elements of a
        user are drawn, say, or none. To draw repeated elements one by one, use a key that differs, or number them
        before.
        Demand: passed on. For each element that it drops, it requests another. Nothing is buffered.
        Errors: TypeError for elements, or keys, whose text differs from process to process: sets, and objects that are
        shown by their address. An exception of ``key`` ends the flow. A ``fraction`` outside of 0 to 1 is refused with
        ValueError when the flow is built.
        Spark: runs in the workers.
        (Spark: ``sample``, which depends on the partitions; Polars, pandas: ``sample(fraction)``; Reactor, RxJava: none.)

        >>> from reactive_aio import Flow
        >>> Flow.range(20).sample_fraction(0.2, seed=1).run_sync() == Flow.range(20).sample_fraction(0.2, seed=1).run_sync()
        True
        >>> 480 < Flow.range(1000).sample_fraction(0.5).run_sync(Flow.count) < 520
        True
        """
        from .sample_fraction import SampleFraction

        check_whole("sample_fraction", "seed", seed)
        check_fraction("sample_fraction", fraction)
        if key is not None:
            check_function("sample_fraction", key, "an ordinary function is needed")
        return self.then(SampleFraction[T_co](fraction, seed, key))

    def ignore_elements(self) -> Flow[NoReturn]:
        """Read all elements and emit none. Only the end or the failure comes through.

        Demand: unbounded as soon as anything is wanted. Nothing is buffered.
        Errors: those of the source.
        Spark: runs in the workers, so that no element leaves them.
        (Reactor, RxJava: ``ignoreElements``; Pekko: ``Sink.ignore``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).ignore_elements().concat(Flow.of("done")).run_sync()
        ['done']
        """
        from .ignore_elements import IgnoreElements

        return self.then(IgnoreElements())
