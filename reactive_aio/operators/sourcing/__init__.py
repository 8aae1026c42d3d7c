"""Where flows begin."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from inspect import isasyncgenfunction
from os import PathLike
from types import AsyncGeneratorType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, overload

from ..._fusion import label
from ...spec import Publisher
from .._fluent import check_count, check_function, check_seconds, is_async
from .computed import Computed
from .iterable import Empty, FromIterable, FromIterator, FromMade, Range, of_async_iterables

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, Row

    from ..._flow.flow import Flow
    from ...spark.streaming import MicroBatch
    from ..overflow.backlog import Overflow
    from .callback import Emitter

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Sourcing(Computed[T_co]):
    """Where flows begin. All sources are cold: each subscription reads them from the start."""

    __slots__ = ()

    @classmethod
    def of(cls, *items: U) -> Flow[U]:
        """Emit the given elements.

        Demand: made on demand; completes with the last element.
        (Reactor, RxJava: ``just``; RxPY: ``of``.)

        >>> from reactive_aio import Flow
        >>> Flow.of(1, None, 3).run_sync()
        [1, None, 3]
        """
        return cls._given(items)

    @classmethod
    def from_iterable(cls, items: Iterable[U] | Callable[[], Iterable[U]]) -> Flow[U]:
        """Emit the elements of an iterable, or of one that a function returns. Each is read when it is requested.

        Pass a generator function, and not a generator, to subscribe to the flow more than once: the function is called
        for each subscription. An iterator, such as a generator, serves one subscription only. An iterable that is also
        callable counts as an iterable.
        Demand: one element is read for each that is requested, and never ahead. A list, tuple, range or str completes
        with its last element. The end of another iterable is known when one more element is requested. A function is
        called at the first request.
        Errors: any exception of the function or the iterable. TypeError if the function does not return an iterable.
        SourceConsumedError for the second subscription to an iterator. An ``async def``, and an argument that is neither
        an iterable nor a function, are refused with TypeError when the flow is built.
        Cancel: an iterator that has ``close()`` is closed, such as a generator or a file; at its end too.
        (Reactor, RxJava: ``fromIterable``.)

        >>> from reactive_aio import Flow
        >>> Flow.from_iterable("abc").run_sync()
        ['a', 'b', 'c']
        >>> def countdown():
        ...     yield from (3, 2, 1)
        >>> Flow.from_iterable(countdown).repeat(2).run_sync()
        [3, 2, 1, 3, 2, 1]
        """
        if isinstance(items, Iterable):
            given = cast("Iterable[Any]", items)
            return cls._begin(FromIterator(given) if isinstance(given, Iterator) else FromIterable(given))
        if not callable(items):
            hint = ". Use Flow.from_async_iterable" if isinstance(items, AsyncIterable) else ""
            raise TypeError(f"from_iterable() takes an iterable or a function, not {type(items).__name__}{hint}")
        if isasyncgenfunction(items):
            raise TypeError(
                f"from_iterable() takes a function, but {label(items)} is async: use Flow.from_async_iterable"
            )
        check_function("from_iterable", items, "use Flow.from_async_iterable with an async generator")
        return cls._begin(FromMade(items))

    @classmethod
    def range(cls, start: int, stop: int | None = None, step: int = 1) -> Flow[int]:
        """Emit whole numbers, with the arguments of the builtin ``range``: ``stop`` is not included.

        Demand: made on demand; completes with the last element.
        (Reactor's and RxJava's ``range`` takes a start and a count instead.)

        >>> from reactive_aio import Flow
        >>> Flow.range(2, 10, 3).run_sync()
        [2, 5, 8]
        """
        try:
            numbers = builtins.range(0, start, step) if stop is None else builtins.range(start, stop, step)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Flow.range(): {error}") from None
        return cls._begin(Range(numbers))

    @classmethod
    def empty(cls) -> Flow[NoReturn]:
        """Complete at once.

        Demand: none is needed.
        (Reactor, RxJava: ``empty``.)

        >>> from reactive_aio import Flow
        >>> Flow.empty().run_sync()
        []
        """
        return cls._begin(Empty[NoReturn]())

    @classmethod
    def never(cls) -> Flow[NoReturn]:
        """Emit nothing and never end; for tests.

        Demand: of no effect.
        (Reactor, RxJava: ``never``.)

        >>> from reactive_aio import Flow
        >>> Flow.never().take(0).run_sync()
        []
        """
        from ..sourcing.error import Never

        return cls._begin(Never[NoReturn]())

    @classmethod
    def error(cls, error: BaseException | Callable[[], BaseException]) -> Flow[NoReturn]:
        """Fail at once with ``error``, or with the error that the given function returns.

        Demand: none is needed.
        (Reactor, RxJava: ``error``; RxPY: ``throw``.)

        >>> from reactive_aio import Flow
        >>> Flow.error(OSError("down")).on_error_resume_next(lambda error: Flow.of(str(error))).run_sync()
        ['down']
        """
        from ..sourcing.error import Error

        if not isinstance(error, BaseException):
            if not callable(error):
                raise TypeError(f"error() takes an exception or a function that makes one, not {type(error).__name__}")
            check_function("error", error, "make the exception in an ordinary function")
        return cls._begin(Error[NoReturn](error))

    @classmethod
    def defer(cls, factory: Callable[[], Flow[U]]) -> Flow[U]:
        """Emit the elements of the flow that ``factory`` returns. It is called for each subscription.

        Demand: passed on one for one.
        Errors: what ``factory`` raises. An ``async def`` is refused with TypeError when the flow is built.
        (Reactor, RxJava: ``defer``.)

        >>> from reactive_aio import Flow
        >>> lines = Flow.defer(lambda: Flow.from_iterable(iter("ab")))
        >>> lines.run_sync(), lines.run_sync()
        (['a', 'b'], ['a', 'b'])
        """
        from .defer import Defer

        check_function("defer", factory, "return the flow from an ordinary function")
        return cls._begin(Defer(factory))

    @classmethod
    def from_async_iterable(cls, items: AsyncIterable[U] | Callable[[], AsyncIterable[U]]) -> Flow[U]:
        """Emit the elements of an async iterable, or of the async iterable that a function returns.

        One task starts, advances and closes it.

        An async iterator, such as an async generator, can be read by one subscription only. A function without
        arguments, such as an async generator function, is called for each subscription. Then the flow can be subscribed
        to again.
        Demand: one element is awaited for each that is requested, and nothing is read ahead. A source that never
        suspends gives the event loop a turn about every millisecond. A function is called when the first element is
        requested.
        Errors: an exception of the function or the iterable. TypeError for a function that does not return an async
        iterable. SourceConsumedError for the next subscription to an async iterator. An argument that is neither an
        async iterable nor a function is refused with TypeError when the flow is built, and so is an ``async def`` that
        yields nothing.
        Cancel: the task is cancelled and the iterator closed in it. A terminal returns after that.
        (Reactor: ``from``; aiostream: ``iterate``.)

        >>> from reactive_aio import Flow
        >>> async def ticks():
        ...     yield "tick"
        ...     yield "tock"
        >>> Flow.from_async_iterable(ticks()).run_sync()
        ['tick', 'tock']
        >>> Flow.from_async_iterable(ticks).repeat(2).run_sync()
        ['tick', 'tock', 'tick', 'tock']
        """
        given, made = of_async_iterables()
        # The classes first, since the ABC takes as long as all the rest.
        if type(items) is not FunctionType and isinstance(items, (AsyncGeneratorType, AsyncIterable)):
            return cls._begin(given(items))
        if not callable(items):
            hint = ". Use Flow.from_iterable" if isinstance(items, Iterable) else ""
            raise TypeError(
                f"from_async_iterable() takes an async iterable or a function, not {type(items).__name__}{hint}"
            )
        if is_async(items):
            hint = "yield the elements, or return the iterable from an ordinary function"
            raise TypeError(f"from_async_iterable(): {label(items)} is async def: {hint}")
        return cls._begin(made(items))

    @classmethod
    def create(cls, producer: Callable[[Callable[[U], Awaitable[None]]], Awaitable[None]]) -> Flow[U]:
        """Emit the elements of a coroutine, in which ``await emit(item)`` waits until the element is requested.

        Demand: ``emit`` returns when its element has been taken. Nothing is buffered. The producer starts with the
        first demand, in a task of its own.
        Errors: any exception of the producer. When it returns, the flow completes. A function that is not an
        ``async def`` is refused with TypeError when the flow is built.
        Cancel: the task is cancelled. A terminal returns when it has ended. Elements that it emits after the cancel go
        to ``hooks.on_discard``, as do those of other tasks when the producer has returned.
        (Reactor, RxJava: ``create``.)

        >>> from reactive_aio import Flow
        >>> async def countdown(emit):
        ...     for n in (3, 2, 1):
        ...         await emit(n)
        >>> Flow.create(countdown).run_sync()
        [3, 2, 1]
        """
        from .task import Create

        check_function("create", producer)
        if not is_async(producer):
            raise TypeError("create() takes an `async def` that awaits emit(item)")
        return cls._begin(Create(producer))

    @classmethod
    def from_callback(
        cls,
        register: Callable[[Emitter[U]], Callable[[], object] | Awaitable[Callable[[], object] | None] | None],
        *,
        max_size: int = 256,
        overflow: Overflow = "error",
    ) -> Flow[U]:
        """Emit the elements that callbacks pass to an `Emitter`, from any thread: a source that can't be slowed.

        ``register(emitter)`` is called for each subscription, in its context. It registers callbacks, which call
        ``emitter.next(item)``, ``emitter.error(error)`` and ``emitter.complete()`` from any thread. These return at
        once. ``register`` may return a function that unregisters the callbacks. That is called when the subscription
        ends. Each of the two may be an ``async def``. Then both are awaited in one task and one context.

        Demand: one for one. At most ``max_size`` elements are buffered. When the buffer is full and one more comes,
        ``overflow`` decides. "error" fails the flow. "drop_latest" drops the new element. "drop_oldest" drops the
        element that has waited longest. ``items.snapshot()`` counts the drops, and ``hooks.on_discard`` gets them on
        the calling thread.
        Errors: any exception of ``register``. BackpressureOverflowError, after the waiting elements. A ``max_size``
        below 1 and another ``overflow`` are refused with ValueError when the flow is built. An error of the function
        that ``register`` returned fails the flow. If the flow has failed already, it becomes a note on the failure.
        Cancel: the function that ``register`` returned is called. Waiting elements go to ``hooks.on_discard``. A
        ``register`` that is still awaited is cancelled instead. A terminal returns when all has been awaited.
        (Reactor, RxJava: ``create``; Kotlin: ``callbackFlow``; Pekko: ``Source.queue``.)

        >>> import threading
        >>> from reactive_aio import Emitter, Flow
        >>> def register(emitter: Emitter[str]):
        ...     def call_back():
        ...         emitter.next("rang")
        ...         emitter.complete()
        ...     timer = threading.Timer(0.01, call_back)
        ...     timer.start()
        ...     return timer.join
        >>> Flow.from_callback(register).run_sync()
        ['rang']
        """
        from ..overflow.backlog import check_overflow
        from .callback import FromCallback

        check_function("from_callback", register)
        check_count("from_callback", "max_size", max_size, 1)
        check_overflow("from_callback", overflow)
        return cls._begin(FromCallback(register, max_size, overflow))

    @classmethod
    def interval(cls, period: float, *, delay: float | None = None) -> Flow[int]:
        """Emit 0, 1, 2 and so on, one every ``period`` seconds: a source that can't be slowed.

        The clock starts with the first demand. The first tick comes after ``delay`` seconds, by default a period. Ticks
        keep to that clock: a tick that is late because the loop was busy does not delay the others.

        Demand: a tick without demand ends the flow, unless an ``on_backpressure_`` operator follows.
        Errors: BackpressureOverflowError for such a tick. A ``period`` that is not above 0, and a ``delay`` below 0,
        are refused with ValueError when the flow is built.
        Cancel: stops the clock.
        Scheduling: by the clock of the event loop of its region. No thread is started.
        (Reactor, RxJava, RxPY: ``interval``.)

        >>> from reactive_aio import Flow
        >>> Flow.interval(0.001).take(3).run_sync()
        [0, 1, 2]
        """
        from .interval import Interval

        check_seconds("interval", "period", period, above=True)
        if delay is not None:
            check_seconds("interval", "delay", delay)
        return cls._begin(Interval(period, period if delay is None else delay))

    @classmethod
    def from_publisher(cls, publisher: Publisher[U]) -> Flow[U]:
        """Emit the elements of any object with ``subscribe(subscriber)``, and check that it keeps the contract.

        Demand: passed on one for one. Signals may come on any thread.
        Errors: those of the publisher; ProtocolViolation when it breaks a rule, TypeError when it emits None
        (rule 2.13).
        Cancel: passed on.
        (Reactor: ``from``; RxJava: ``fromPublisher``.)

        >>> from reactive_aio import Flow
        >>> Flow.from_publisher(Flow.range(3)).run_sync()
        [0, 1, 2]
        """
        from ..sourcing.publisher import FromPublisher

        if not callable(getattr(publisher, "subscribe", None)):
            raise TypeError(f"from_publisher() takes an object with subscribe(), not {type(publisher).__name__}")
        return cls._begin(FromPublisher(publisher))

    @overload
    @classmethod
    def from_spark(
        cls,
        data: RDD[U],
        *,
        ordered: bool = ...,
        prefetch: int = ...,
        wire: str | None = ...,
        context: Iterable[ContextVar[Any]] = ...,
    ) -> Flow[U]: ...
    @overload
    @classmethod
    def from_spark(
        cls,
        data: DataFrame,
        *,
        as_: type[Row] | None = ...,
        ordered: bool = ...,
        prefetch: int = ...,
        wire: str | None = ...,
        context: Iterable[ContextVar[Any]] = ...,
    ) -> Flow[Row]: ...
    @overload
    @classmethod
    def from_spark(
        cls,
        data: DataFrame,
        *,
        as_: type[tuple[Any, ...]],
        ordered: bool = ...,
        prefetch: int = ...,
        wire: str | None = ...,
        context: Iterable[ContextVar[Any]] = ...,
    ) -> Flow[tuple[Any, ...]]: ...
    @overload
    @classmethod
    def from_spark(
        cls,
        data: DataFrame,
        *,
        as_: type[dict[Any, Any]],
        ordered: bool = ...,
        prefetch: int = ...,
        wire: str | None = ...,
        context: Iterable[ContextVar[Any]] = ...,
    ) -> Flow[dict[str, Any]]: ...
    @overload
    @classmethod
    def from_spark(
        cls,
        data: DataFrame,
        *,
        as_: type[U],
        ordered: bool = ...,
        prefetch: int = ...,
        wire: str | None = ...,
        context: Iterable[ContextVar[Any]] = ...,
    ) -> Flow[U]: ...
    @overload
    @classmethod
    def from_spark(
        cls,
        data: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        output_mode: str = ...,
        trigger: Mapping[str, Any] | None = ...,
        as_: type[Row] | None = ...,
        ordered: bool = ...,
        prefetch: int = ...,
    ) -> Flow[MicroBatch[Row]]: ...
    @overload
    @classmethod
    def from_spark(
        cls,
        data: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        as_: type[U],
        output_mode: str = ...,
        trigger: Mapping[str, Any] | None = ...,
        ordered: bool = ...,
        prefetch: int = ...,
    ) -> Flow[MicroBatch[U]]: ...
    @classmethod
    def from_spark(
        cls,
        data: object,
        *,
        as_: type[Any] | None = None,
        ordered: bool = True,
        prefetch: int = 32_768,
        wire: str | None = None,
        context: Iterable[ContextVar[Any]] = (),
        checkpoint: str | PathLike[str] | None = None,
        output_mode: str = "append",
        trigger: Mapping[str, Any] | None = None,
    ) -> Flow[Any]:
        """Emit the elements of a DataFrame or an RDD of PySpark. The operators that follow run where the data is.

        Each subscription starts a Spark job. The operators that treat every element by itself are fused and run in
        Spark's Python workers, up to the first that depends on the whole stream. ``take``, ``count``, folds and the
        like are done in parts: first in each worker, and then here. Results arrive in the order of the partitions.
        ``describe()`` shows which operators run where.

        With ``ordered=False`` elements arrive as they are made. Partitions are computed at the same time, and their
        elements interleave. The order within each partition is kept. With ``ordered=True`` one partition delivers at a
        time, and so computes on one core, because the elements of the others would have to be kept.

        A row of a DataFrame becomes a ``Row``, as in ``collect()``. By ``as_`` it becomes a ``tuple`` (the fastest), a
        ``dict``, or an object of an attrs class. Then only the columns named as its fields are read. Names and types
        are checked against the frame at once, apart from fields with a converter of their own. Times with a time zone
        have the clock of the session's zone and no ``tzinfo``. A struct in a column becomes the same as the row, or a
        ``dict`` if that is an attrs class. With ``as_=pyarrow.RecordBatch`` Spark's batches of rows are the elements:
        demand, ``prefetch`` and operators count batches, and no row is made.

        The elements of a streaming DataFrame are micro-batches (``MicroBatch``). It needs a ``checkpoint``. Spark makes
        a micro-batch when it is requested and the one before has been acknowledged, and delivers it at least once. Its
        ``rows`` are a flow under the same rules, but not batches of Arrow. ``output_mode`` and ``trigger``, such as
        ``{"availableNow": True}``, are those of ``DataStreamWriter``. The flow completes when the query does.

        Demand: at most ``prefetch`` elements are under way, however large a partition is. More are requested when three
        quarters have been used, so a slow subscriber slows the cluster. With ``ordered=True`` up to three partitions
        run ahead of the current one, together for an eighth of the prefetch. Else one fewer runs than the cluster has
        slots, all but one together for a quarter of it, so that none waits for a slow one.
        Errors: an exception of a function in a worker arrives after the elements before it. It has its own type,
        arguments and notes. Notes name the operator and the element, and show the remote traceback. An exception that
        can't be pickled arrives as RemoteError. SparkJobError when the job itself fails. DriverUnreachableError, a
        SparkJobError, when the workers can't connect to this process. UnsupportedOnSparkError when the flow is built,
        for a function that can't be pickled. TypeError for a class that does not fit the columns. It lists every
        misfit.
        Cancel: stops the tasks and the job. A terminal returns when that is done. A streaming query that does not stop
        within 10 seconds is left to Spark.
        Scheduling: the functions see the subscriber's values of the context variables in ``context``. These are globals
        that the workers can import, and their values can be pickled. The jobs have this thread's local properties.
        Spark: by ``wire="tcp"``, the default, the workers connect to this process, on ``spark.driver.host`` (loopback
        for a local master) or ``spark.reactive_aio.host``, on any port or one of ``spark.reactive_aio.ports``. A
        retried task goes on after the elements that have arrived. This is exact if the partition has the same elements
        when it is computed again. If the workers can't connect, and always with Spark Connect, use ``wire="results"``:
        elements then travel by Spark itself. Partitions are computed one after another, each as a whole when its first
        element is requested. The results of one partition have to fit into the memory of the driver's JVM. A flow
        leaves one slot of the cluster free, and one for each other flow that has subscribed. Flows that wait for each
        other need a slot each. Give a local session one slot more than there are cores. A task that waits for demand
        uses none.
        (Spark: ``toLocalIterator``; Reactor, RxJava: none.)

        .. code-block:: python

            from reactive_aio.spark.session import local_session

            spark = local_session("example")
            flow = Flow.from_spark(spark.range(1000), as_=tuple).map(lambda row: row[0] ** 2).filter(lambda n: n % 2)
            print(flow.take(3).run_sync())  # [1, 9, 25]
        """
        from ...spark._source.source import from_spark

        check_count("from_spark", "prefetch", prefetch, 1)
        if checkpoint is not None:
            if context:
                raise ValueError(
                    "from_spark(context=...) is not for streams. Read the rows of a micro-batch with "
                    "Flow.from_spark(batch.frame, context=...)"
                )
            if wire is not None:
                raise ValueError(
                    "from_spark(wire=...) is not for streams. Read the rows of a micro-batch with "
                    "Flow.from_spark(batch.frame, wire=...)"
                )
            from ...spark.streaming._source import from_stream

            return cls._begin(from_stream(data, as_, checkpoint, output_mode, trigger, prefetch, ordered))
        return cls._begin(from_spark(data, as_, prefetch, ordered, wire, context, output_mode, trigger))
