"""The ends of a flow, which run it. Each imports the asyncio engine only when it is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from .._core.missing import MISSING
from .._fusion import label
from ..operators._fluent import check_count, check_function, check_seconds
from ..operators.filtering.take import Take
from ..operators.folding.fold import Count, Last, Reduce, ToList
from ..spec import Subscriber
from .calling import Calling
from .reductions import itself

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from .._plan import Snapshot
    from .._runtime.iterating import Iteration
    from ..spark.sink import BatchWriter, Committed
    from .flow import Flow

T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
D = TypeVar("D")
R = TypeVar("R")


class FlowIterator(Protocol[T_co]):
    """An AsyncIterator over the elements of one subscription, which can show its progress."""

    def __aiter__(self) -> FlowIterator[T_co]: ...

    def __anext__(self) -> Coroutine[Any, Any, T_co]: ...

    def snapshot(self) -> Snapshot:
        """Return the progress of each region and the elements that wait at each boundary. Call it on any thread."""
        ...

    async def aclose(self) -> None:
        """Cancel, and wait until everything has been cleaned up. Raise the error of the cleanup, if any."""


@cache
def _iteration() -> type[Iteration]:
    """Return the class. It is cached, because the import would cost each `async for` a microsecond."""
    from .._runtime.iterating import Iteration

    return Iteration


class Ends(Calling[T_co]):
    """The methods that run a flow.

    Every end runs on the event loop that awaits it. If the last region runs elsewhere, its elements come back over a
    boundary of 256. An end returns, raises or is cancelled only when everything that was started for it has been
    cleaned up.
    """

    __slots__ = ()

    def subscribe(self, subscriber: Subscriber[T_co]) -> None:
        """Start a stream for ``subscriber``, whose signals come on the event loop of the last region.

        Demand: as the subscriber requests.
        Errors: TypeError for an argument that is not a subscriber, RuntimeError without an event loop. All other errors
        are signalled. A None element can't leave the flow: on_error gets a TypeError that names rule 2.13.
        (Reactive Streams 1.9.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> class Printer:
        ...     def on_subscribe(self, subscription): subscription.request(2)
        ...     def on_next(self, item): print(item)
        ...     def on_error(self, error): print(error)
        ...     def on_complete(self): print("done")
        >>> async def main():
        ...     Flow.range(2).subscribe(Printer())
        ...     await asyncio.sleep(0)
        >>> asyncio.run(main())
        0
        1
        done
        """
        from .._runtime.ends import subscribe

        subscribe(self._as_flow(), subscriber)

    def __aiter__(self) -> FlowIterator[T_co]:
        """Subscribe and iterate over the elements, requesting one at a time.

        Leaving the loop by ``break`` cancels at once. ``async with flow.open()`` also waits for the cleanup.
        """
        return _iteration().over(self._as_flow())

    def open(self) -> AbstractAsyncContextManager[FlowIterator[T_co]]:
        """Subscribe for the length of an ``async with`` block. When the block has ended, all cleanup is done.

        The block gets an iterator over the elements. Its ``snapshot()`` shows the progress of each region and the
        elements that wait at each boundary.

        Demand: one element for each step of the iterator.
        (aiostream: ``stream``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> async def main():
        ...     async with Flow.range(10).open() as items:
        ...         async for item in items:
        ...             if item == 2:
        ...                 return item
        >>> asyncio.run(main())
        2
        """
        from .._runtime.iterating import Opened

        return Opened(self._as_flow())

    async def to_list(self) -> list[T_co]:
        """Return all elements.

        Demand: unbounded. Put ``take`` before it to bound the list.
        Errors: when the flow fails or the wait is cancelled, the collected elements go to ``hooks.on_discard``.
        (Reactor: ``collectList``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a", "b").to_list())
        ['a', 'b']
        """
        return await self._value(ToList(), [], kept=iter)

    @overload
    async def first(self) -> T_co: ...
    @overload
    async def first(self, default: D) -> T_co | D: ...
    async def first(self, default: Any = MISSING) -> Any:
        """Return the first element and cancel the source.

        Demand: one element.
        Errors: EmptyFlowError without an element, unless a default is given.
        Spark: in parts. No task emits more than one.
        (Reactor: ``next``; RxJava: ``first``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.of("a", "b").first()), asyncio.run(Flow.empty().first(default="none"))
        ('a', 'none')
        """
        return self._or_empty("first", await self._value(Take(1), default, kept=itself))

    @overload
    async def last(self) -> T_co: ...
    @overload
    async def last(self, default: D) -> T_co | D: ...
    async def last(self, default: Any = MISSING) -> Any:
        """Return the last element.

        Demand: unbounded. One element is kept.
        Errors: EmptyFlowError without an element, unless a default is given. When the flow fails or the wait is
        cancelled, the kept element goes to ``hooks.on_discard``. Elements before it do not.
        Spark: in parts. Only the last element of each partition leaves the workers.
        (Reactor, RxJava: ``last``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.range(5).last())
        4
        """
        return self._or_empty("last", await self._value(Last[T_co](), default, kept=itself))

    @overload
    async def reduce(
        self, fn: Callable[[T_co, T_co], T_co], *, combine: Callable[[T_co, T_co], T_co] | None = None
    ) -> T_co: ...
    @overload
    async def reduce(
        self, fn: Callable[[A, T_co], A], initial: A, *, combine: Callable[[A, A], A] | None = None
    ) -> A: ...
    async def reduce(
        self, fn: Callable[[Any, Any], Any], initial: Any = MISSING, *, combine: Callable[[Any, Any], Any] | None = None
    ) -> Any:
        """Combine all elements into one value, from the left, as ``functools.reduce`` does.

        The value begins with ``initial``, if given. Then it may be of another type than the elements, and the value of
        an empty flow is ``initial``. Every run begins with the same object. So ``fn`` must return a new value and never
        change its argument. Else use `collect`, which makes a container for each run. ``combine(value, later)``
        combines the values of two neighbouring parts of the stream, which both began with ``initial``. If ``fn(fn(a,
        b), c)`` equals ``fn(a, fn(b, c))`` for all elements, pass ``fn`` itself.
        Demand: unbounded. One value is kept.
        Errors: any exception of a function. EmptyFlowError if there is no element and no ``initial``. An ``async def`` is
        refused with TypeError.
        Spark: with ``combine`` the workers reduce each partition, and their values are combined here. Without it, runs
        after the boundary.
        (Reactor, RxJava: ``reduce``; Pekko, Kotlin: ``reduce``, ``fold``; Spark: ``RDD.aggregate``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.range(5).reduce(lambda a, b: a + b))
        10
        >>> asyncio.run(Flow.range(3).reduce(lambda text, n: text + str(n), "n"))
        'n012'
        """
        for function in (fn,) if combine is None else (fn, combine):
            check_function("reduce", function, "combine with an ordinary function")
        return self._or_empty("reduce", await self._value(Reduce(fn, initial, combine), initial))

    async def collect(
        self,
        factory: Callable[[], A],
        accumulate: Callable[[A, T_co], object],
        *,
        combine: Callable[[A, A], object] | None = None,
    ) -> A:
        """Put all elements into one container, and return it.

        ``factory`` makes the container, anew for each subscription. ``accumulate(container, item)`` puts an element in.
        An empty flow returns the container as ``factory`` made it. ``combine(container, later)``, if given, adds the
        content of ``later`` to the first container. The two hold consecutive parts of the stream. The result must be
        the same as without ``combine``.
        Demand: unbounded. Only the container is kept. Put ``take`` before it to bound it.
        Errors: exceptions of the functions. An ``async def`` is refused with TypeError. Elements in the container go to
        no hook.
        Spark: in parts with ``combine``, a container for each partition. Else it runs after the boundary, because it
        depends on the order of the whole.
        (Reactor, RxJava: ``collect``; Java: ``Stream.collect``, whose third function is ``combine``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> sorted(asyncio.run(Flow.from_iterable("abracadabra").collect(set, set.add)))
        ['a', 'b', 'c', 'd', 'r']
        """
        from ..operators.folding.collect import Collect

        check_function("collect", factory, "make the container in an ordinary function")
        check_function("collect", accumulate, "put elements in by an ordinary function")
        if combine is not None:
            check_function("collect", combine, "put containers together by an ordinary function")
        return await self._value(Collect(factory, accumulate, combine), MISSING)

    async def count(self) -> int:
        """Return the number of elements.

        Demand: unbounded. Nothing is kept.
        Spark: in parts. Each partition is counted in the workers.
        (Reactor, RxJava: ``count``.)

        >>> import asyncio
        >>> from reactive_aio import Flow
        >>> asyncio.run(Flow.from_iterable("abc").count())
        3
        """
        return await self._value(Count(), 0)

    async def to_spark(
        self,
        writer: BatchWriter,
        schema: str | StructType | type[Any],
        *,
        size: int | None = 10_000,
        seconds: float | None = None,
        offset: int = 0,
        max_retries: int = 0,
        progress: Callable[[Committed], object] | None = None,
    ) -> Committed:
        """Write the elements by Spark, in batches of ``size``, and return what is committed.

        ``writer`` is one of ``reactive_aio.spark.sink``: ``Files`` (Parquet and the like), ``Table``, or ``Frames`` for
        a function that gets the DataFrame of each batch. Each batch is written as a whole before the next one is
        requested. With ``seconds`` a batch that is not full is written that long after its first element, as by
        ``buffer_timeout``. Batches are numbered within the ``run`` of the writer. Writing the same elements again under
        the same run goes on after the committed ones. So a run that failed in the middle can be repeated, and doubles
        nothing.
        With ``size=None`` Spark's tasks write a whole flow of ``from_spark`` themselves, as the frame of ``to_frame``.
        No element passes through this process. The run is one batch then, and appears as a whole. The same run again
        writes nothing and returns ``written=False``. ``Files`` have a ``mode`` and ``partition_by`` for it. ``Frames``
        report the ``rows`` of the evaluation of their frame that has read the most. They return ``written=False`` only if
        no Spark job has begun.
        ``offset`` says how many elements of the run come before the first one of this flow. ``max_retries`` is how
        often a failed batch is written again. ``progress`` is called with the ``Committed`` after each batch.

        ``schema`` is an attrs class, and the elements are its objects. Or it is a StructType or a text such as ``"id
        long, name string"``. Then an element is a mapping, a Row, or an object of an attrs class or a dataclass, with
        the values by the names of the columns. Or it is a tuple or list of the values in the order of the columns. A
        NamedTuple goes by name if its fields have the names of all columns. With a single column the element may be the
        value itself. The same holds for structs inside.

        A batch is a job of Spark, for which a slot has to be free. A flow of ``from_spark`` holds slots meanwhile. So
        Spark needs one slot more than all flows hold, or nothing goes on. With ``size=None`` it needs none.
        Demand: ``size`` elements at a time, and none while a batch is written. If ``seconds`` end a batch early, the
        other requested elements may arrive meanwhile. They are kept for the next batch.
        Errors: SchemaMismatchError names the index and the field of an element that does not fit, before anything of
        its batch is written. With ``size=None`` a task of Spark finds it, so it is the text of a SparkJobError. The
        index is that within the task. SparkJobError when Spark fails. An exception of a function of ``Frames`` is raised
        unchanged. A note says what is committed. An argument that is not a schema or not a writer is refused before the
        flow begins. So are ``seconds`` not above 0, an ``offset`` that leaves rows out, and ``max_retries`` for a
        writer that can't be sure of its batches. With ``size=None`` these three are refused, and
        UnsupportedOnSparkError names what ``to_frame`` can't run. FileExistsError if ``mode="error"`` finds data.
        Cancel: stops the Spark job. The current batch is committed as a whole or not at all.
        (Spark: ``DataFrameWriter``; Beam: ``FileIO.write``.)

        .. code-block:: python

            from reactive_aio.spark.sink import Files

            done = await readings.to_spark(Files(session, "out/readings", run="monday"), Reading, size=100_000)
            print(done)  # Committed(run='monday', batches=3, rows=214870, whole=False, written=True)
        """
        if progress is not None:
            check_function("to_spark", progress, "report with an ordinary function")
        if size is None:
            from ..spark.sink._whole import to_spark_whole

            if seconds is not None or offset or max_retries:
                raise ValueError(
                    "to_spark(size=None) is one job without batches: seconds, offset and max_retries need a size"
                )
            return await to_spark_whole(self._as_flow(), writer, schema, progress)
        from ..spark.sink._writing import to_spark

        check_count("to_spark", "size", size, 1)
        if seconds is not None:
            check_seconds("to_spark", "seconds", seconds, above=True)
        check_count("to_spark", "offset", offset, 0)
        check_count("to_spark", "max_retries", max_retries, 0)
        return await to_spark(self._as_flow(), writer, schema, size, seconds, offset, max_retries, progress)

    def to_frame(self, schema: str | StructType | type[Any], *, columns: Sequence[str] | None = None) -> DataFrame:
        """Return a flow on Spark as a lazy DataFrame. Its plan runs the functions of the flow.

        For flows of ``from_spark``. Nothing runs when the frame is made, and no element passes through this process.
        Each task of Spark's runs the operators, fused, over the rows of a partition, and their results are the rows of
        the frame. So joins, windows, SQL, caches and all writers of Spark are a method call away. ``from_spark`` leads
        back. ``schema`` defines the columns, as for ``to_spark``. Batches of Arrow already have their columns.

        **A frame runs the functions once for each evaluation**, and again in a task that Spark repeats:
        ``frame.persist()`` keeps their results. Spark can't see into functions. It reads only the columns that are
        fields of the class given as ``as_=``, and all columns for rows of another kind. With ``columns`` it reads only
        those that are named. The elements are rows of these columns, in the given order. If the flow reads several
        frames, as with ``concat`` and ``join``, each must have all of these columns, and no others of it are read. To
        read fewer rows, filter by columns first: ``from_spark(frame.where(...))``.
        Context variables have their values at the time when the frame is made.
        Demand: that of Spark. Each task works as fast as its results are consumed, in batches of up to 10,000 rows.
        Errors: UnsupportedOnSparkError for a flow that does not begin on Spark, and for operators that its tasks can't
        run, by operator and line. These depend on the order of the whole, on boundaries or on time, or are combinators
        other than ``concat``. An invalid schema is refused with TypeError or ValueError, and a session that has ended
        with SparkJobError. ValueError names ``columns`` that a frame does not have. A class given as ``as_=`` must have
        a field for each name, and no other field without a default. A function that raises later, or an element that
        does not fit the schema, fails the Spark job with an error of Spark. Its text has the exception and the operator
        with its line. A flow that reads the frame fails with the exception itself.
        (Spark: ``DataFrame.mapInArrow``; Beam: ``to_dataframe``.)

        .. code-block:: python

            squares = Flow.from_spark(session.range(6), as_=tuple).map(lambda row: row[0] ** 2).filter(lambda n: n % 2)
            frame = squares.to_frame("square long")
            print(frame.orderBy("square").collect())  # [Row(square=1), Row(square=9), Row(square=25)]

            wide = session.range(6).selectExpr("id", "id * id AS square", "uuid() AS name")
            found = Flow.from_spark(wide, as_=tuple).filter(lambda row: row[0] > 20)
            frame = found.to_frame("square long, id long", columns=["square", "id"])
            print(frame.collect())  # [Row(square=25, id=5)]
        """
        from ..spark._frame.framing import to_frame

        frame: DataFrame = to_frame(self._as_flow(), schema, columns)
        return frame

    def to_rdd(self) -> RDD[T_co]:
        """Return a flow on Spark as a lazy RDD. Its tasks run the functions of the flow.

        As ``to_frame``, for elements that are not rows. An RDD can do less than a frame, because Spark can't see into
        its elements. They are pickled. Objects of the main module are pickled by value. If the plan has a shuffle, as keyed
        work does, Spark's adaptive execution runs the part before it during the call, as for ``DataFrame.rdd``.
        Demand: that of Spark. Each task works as fast as its results are consumed.
        Errors: as ``to_frame``, and UnsupportedOnSparkError for a frame of Spark Connect, which has no RDDs.
        (Spark: ``DataFrame.rdd``.)

        .. code-block:: python

            squares = Flow.from_spark(session.range(6), as_=tuple).map(lambda row: row[0] ** 2).filter(lambda n: n % 2)
            print(squares.to_rdd().collect())  # [1, 9, 25]
        """
        from ..spark._frame.framing import to_rdd

        rdd: RDD[T_co] = to_rdd(self._as_flow())
        return rdd

    @overload
    def run_sync(self) -> list[T_co]: ...
    @overload
    def run_sync(self, end: Callable[[Flow[T_co]], Awaitable[R]]) -> R: ...
    def run_sync(self, end: Callable[[Flow[T_co]], Awaitable[Any]] | None = None) -> Any:
        """Run the flow from ordinary code and return its elements, or the result of ``end``.

        It blocks until all is done, on an event loop of its own. Beside a running loop, as in a notebook, it takes a
        thread of its own.
        Demand: that of ``end``, else unbounded. Put ``take`` before it to bound the list.
        Errors: those of the flow, or of ``end``. An argument that can't be called is refused with TypeError, and a flow
        that is placed on the blocked event loop with RuntimeError.
        (Reactor: ``block``; RxJava: ``blockingIterable``; RxPY: ``run``.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).run_sync()
        [0, 1, 2]
        >>> Flow.range(3).run_sync(Flow.count)
        3
        >>> Flow.range(3).run_sync(lambda flow: flow.reduce(max))
        2
        """
        from .._runtime.ends import run_in_loop

        flow = self._as_flow()
        if end is None:
            return run_in_loop(flow, flow.to_list)
        check_function("run_sync", end)

        def begun() -> Awaitable[Any]:
            given = end(flow)
            if not isawaitable(given):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
                raise TypeError(
                    f"run_sync() takes a function that ends the flow, such as Flow.count or lambda flow: flow.reduce(max), "
                    f"but {label(end)} returned {type(given).__name__}, which can't be awaited"
                )
            return given

        return run_in_loop(flow, begun)
