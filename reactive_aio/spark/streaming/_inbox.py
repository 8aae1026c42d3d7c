"""From Structured Streaming to asyncio by a writer: ``frame.writeStream.format("reactive_aio")`` into a flow.

The tasks of the query connect to the event loop and push their rows, under its credits (see `inboxwire`). The query
commits a micro-batch when the subscriber has acknowledged it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from math import inf
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from attrs import define, field
from pyspark.sql import Row
from pyspark.sql.types import StructType

from ..._core.guard import brief
from ..._remote.frames import FAILED, STOP, Frame
from ..._remote.handshake import Guard
from ...errors import SparkJobError
from ...operators._fluent import check_count, check_whole
from .._job.asking import asking
from .._task.connecting import bare
from .._task.rows import check_kind, reading
from ._arrival import Arrival, Writing, WrittenBatch
from ._block import Block
from ._hearing import hearing
from ._inboxreader import Reader, WrittenBatches
from ._inboxwire import ABORT, COMMIT, OPEN, Delivery, named
from ._line import check_classic, register
from ._query import Query
from ._reception import LOOPBACK, Reception, listen_at
from ._source import check_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from ..._flow.flow import Flow

T = TypeVar("T")
U = TypeVar("U")

PAST: Final = 64
"""The number of ended runs of a query to remember: tasks that Spark has given up do not come later."""


@overload
def inbox(
    as_: type[Row] = ..., *, host: str = ..., port: int = ..., prefetch: int = ..., patience: float = ...
) -> AbstractAsyncContextManager[Inbox[Row]]: ...
@overload
def inbox(
    as_: type[dict[Any, Any]], *, host: str = ..., port: int = ..., prefetch: int = ..., patience: float = ...
) -> AbstractAsyncContextManager[Inbox[dict[str, Any]]]: ...
@overload
def inbox(
    as_: type[tuple[Any, ...]], *, host: str = ..., port: int = ..., prefetch: int = ..., patience: float = ...
) -> AbstractAsyncContextManager[Inbox[tuple[Any, ...]]]: ...
@overload
def inbox(
    as_: type[U], *, host: str = ..., port: int = ..., prefetch: int = ..., patience: float = ...
) -> AbstractAsyncContextManager[Inbox[U]]: ...
def inbox(
    as_: type[Any] = Row, *, host: str = LOOPBACK, port: int = 0, prefetch: int = 8192, patience: float = 300.0
) -> AbstractAsyncContextManager[Inbox[Any]]:
    """Let Spark write a stream to a flow, for the length of an ``async with`` block.

    ``own.batches`` is the flow of micro-batches. Each has its number and its ``rows``, of the class ``as_``, as in
    ``Flow.from_spark``. ``await own.start(frame, checkpoint=...)`` starts a query that writes a streaming DataFrame there.
    Another process may start the query too: after `register`, with
    ``frame.writeStream.format("reactive_aio").options(**own.options)``. It connects to this process at ``host``, by
    default loopback, and ``port``, by default any free one.

    Delivery: at least once, by the same number. `exactly_once` drops repetitions. Rows of different partitions
    interleave. Each partition is in order. A task that Spark retries goes on after the rows that have arrived. This is
    exact if it computes the same rows again. If it computes another number of rows, the query fails.
    Demand: Spark makes a micro-batch when the one before has been acknowledged. Its tasks send only requested rows, at
    most ``prefetch`` ahead, and hold their slots of the cluster meanwhile.
    Errors: when the subscriber fails, so does the query, and the micro-batch is not committed. When a query that was
    started here fails, the flow fails with SparkJobError. A query that was started elsewhere may disappear in the
    middle of a micro-batch. When none of its tasks has been connected for ``patience`` seconds, the rows fail with
    SparkJobError. If the query still goes on, it fails too. With ``math.inf`` the rows wait until the query begins
    again.
    Cancel: refuses the micro-batch that has not been acknowledged, and stops the query that was started here, within
    10 seconds.
    (Spark: a streaming ``DataSource`` with a ``streamWriter``; Kafka: a sink connector.)

    .. code-block:: python

        async with inbox(Reading) as own:
            await own.start(stream, checkpoint="out/checkpoint", trigger={"availableNow": True})
            async for batch in own.batches:
                async with batch as rows:  # acknowledges when the block is left in peace
                    await rows.for_each(print)
    """
    check_kind(as_, "inbox")
    _check_arguments(host, port, prefetch, patience)

    async def opened() -> Inbox[Any]:
        own: Inbox[Any] = Inbox(as_, prefetch, bare(host), port, patience)
        await own.open()
        return own

    return Block(opened)


def _check_arguments(host: object, port: object, prefetch: object, patience: object) -> None:
    if not isinstance(host, str):
        raise TypeError(
            f"inbox(host={host!r}): host is a name or an address of this machine, not {type(host).__name__}"
        )
    if not 0 <= check_whole("inbox", "port", port) < 2**16:
        raise ValueError(f"inbox(port={port}): port is a TCP port, or 0 for any free one")
    check_count("inbox", "prefetch", prefetch, 1)
    if not isinstance(patience, (int, float)) or isinstance(patience, bool):
        raise TypeError(f"inbox(patience={patience!r}): patience is a number of seconds, not {type(patience).__name__}")
    if not patience > 0:
        raise ValueError(f"inbox(patience={patience}): patience must be a number of seconds above 0")


@define(eq=False)
class Inbox(Generic[T]):
    """A target that streaming queries write to; made by `inbox`."""

    _kind: type[T]
    _prefetch: int
    _host: str
    _port: int
    _patience: float
    _loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.get_running_loop)
    _reception: Reception = field(init=False)
    _arrival: Arrival | None = field(init=False, default=None)
    """The micro-batch that is written, or waits for its acknowledgement. Later it is the last one, for late tasks."""
    _past: deque[str] = field(init=False, factory=lambda: deque[str](maxlen=PAST))
    """The runs of the query that have been followed by another."""
    _reader: Reader | None = field(init=False, default=None)
    _query: Query | None = field(init=False, default=None)
    _started: asyncio.Future[None] | None = field(init=False, default=None)
    _over: asyncio.Event = field(init=False, factory=asyncio.Event)
    """Set when the query that was started here has ended."""
    _end: tuple[Exception | None] | None = field(init=False, default=None)
    """The error that ended it, if any."""
    _closed: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._reception = Reception(listen_at(self._host, self._port), self._host, self._serve)

    # -- for users

    @property
    def options(self) -> dict[str, str]:
        """The options for ``frame.writeStream.format("reactive_aio")``."""
        return self._reception.options

    @property
    def batches(self) -> Flow[WrittenBatch[T]]:
        """The micro-batches, for one subscriber at a time. The next subscriber gets those that this one has not had.

        It completes when the query that was started here completes, or when the inbox is closed.
        """
        from ..._flow.flow import flow_of

        batches: Flow[WrittenBatch[T]] = flow_of(WrittenBatches(self))
        return batches

    async def start(
        self,
        frame: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        output_mode: str = "append",
        trigger: Mapping[str, Any] | None = None,
    ) -> StreamingQuery:
        """Let Spark write a streaming DataFrame here, and return the query. It stops with the subscriber or the inbox.

        ``output_mode`` and ``trigger``, such as ``{"availableNow": True}``, are those of ``DataStreamWriter``.
        Errors: TypeError at once for a class that does not fit the columns, SparkJobError if the query can't start.
        """
        check_classic("Inbox.start", frame)
        folder, given = check_query("Inbox.start", checkpoint, output_mode, trigger)
        await asyncio.to_thread(self._check, frame)
        if self._query is not None:
            raise ValueError("Inbox.start(): a query is running already. Stop it first, or open another inbox")

        def begin(_: object) -> StreamingQuery:
            register(frame.sparkSession)
            writer = frame.writeStream.format("reactive_aio").options(**self.options).outputMode(output_mode)
            return (writer.trigger(**given) if given else writer).option("checkpointLocation", folder).start()

        self._end = None
        self._over.clear()
        self._started = self._loop.create_future()
        self._query = query = Query("Inbox.start", folder, begin, self, self.post)
        query.start()
        await self._started
        running = query.running
        assert running is not None
        return running

    def _check(self, frame: DataFrame) -> None:
        """Raise for a frame that can't be written here; with calls into the JVM."""
        with asking("Inbox.start", frame.sparkSession):
            if not frame.isStreaming:
                raise TypeError("Inbox.start() takes a streaming DataFrame, made with spark.readStream")
            master = str(frame.sparkSession.sparkContext.master)
            if self._host == LOOPBACK and not master.startswith("local"):
                raise ValueError(
                    f"inbox(host=...): the workers of {master} can't reach this process on loopback. Set host=... to a name that they can reach"
                )
            reading(self._kind, frame.schema, "inbox")

    # -- life

    async def open(self) -> None:
        """Listen, until `close`."""
        await self._reception.open()

    async def close(self) -> None:
        """Close everything."""
        self._closed = True
        try:
            if self._query is not None:
                self._query.stop()
                await self._over.wait()
            if self._arrival is not None:
                self._arrival.give_up(SparkJobError("the inbox that the stream is written to has been closed"))
            if self._reader is not None:
                self._finish(None)
        finally:
            await self._reception.close()

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Call ``handle(value)`` on the event loop, from any thread."""
        with suppress(RuntimeError):  # the loop has been closed, and nobody is left to hear of it
            self._loop.call_soon_threadsafe(handle, value)

    # -- the subscriber

    def read_by(self, reader: Reader) -> None:
        """Serve a subscriber."""
        if self._reader is not None:
            reader.end(
                SparkJobError("an inbox serves one subscriber at a time, and another one reads its batches already")
            )
            reader.release()
            return
        self._reader = reader
        if self._end is not None or self._closed:
            self._finish(*(self._end or (None,)))
        else:
            self.offer()

    def left_by(self, reader: Reader) -> None:
        """Pass no more to the subscriber that has cancelled."""
        if self._reader is not reader:
            reader.release()
        elif self._query is not None:
            self._query.stop()  # and when it has noted that, what it waits for is refused
        else:
            self._reader = None
            reader.release()
            if self._arrival is not None and self._arrival.offered:
                self._arrival.give_up(SparkJobError("the subscriber has cancelled"))

    def offer(self) -> None:
        """Hand the micro-batch over when it is requested."""
        arrival, reader = self._arrival, self._reader
        if arrival is None or arrival.offered or arrival.handover.settled or reader is None or not reader.demand:
            return
        arrival.offered = True
        reader.demand -= 1
        name = arrival.delivery
        batch: WrittenBatch[Any] = WrittenBatch(name.batch, name.query, arrival.handover, arrival, self._prefetch)
        reader.inlet.post(reader.inlet.on_chunk, [batch])

    def _broken(self, arrival: Arrival, error: BaseException) -> None:
        """Refuse a micro-batch that was not consumed, and with it the subscriber."""
        if arrival.handover.settled:
            return
        arrival.why = f"the subscriber has failed: {brief(error)}"
        if self._reader is not None:
            self._reader.broken(error)
        if self._query is not None:
            self._query.stop()
        else:
            arrival.handover.settle(accepted=False)
            self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.end(error)
            reader.release()

    # -- what the query that was started here tells (Events)

    def started(self, query_id: str) -> None:
        """Let `start` return."""
        del query_id
        if self._started is not None and not self._started.done():
            self._started.set_result(None)

    def offered(self, offer: object) -> None:
        """Nothing: this query makes no callbacks."""

    def broken(self, error: BaseException) -> None:
        """Nothing: its micro-batches report that."""

    def ended(self, error: SparkJobError | None) -> None:
        """Pass the end on to the subscriber."""
        query, self._query = self._query, None
        assert query is not None
        query.join()
        if self._started is not None and not self._started.done():
            over = SparkJobError("the query ended while it started")
            self._started.set_exception(over if error is None else error)
        self._end = (error,)
        self._over.set()
        if self._arrival is not None:
            gone = SparkJobError("the query that wrote the micro-batch has ended")
            self._arrival.give_up(gone if error is None else error)
        self._finish(error)

    # -- the processes of the query

    async def _serve(self, guard: Guard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Writing(guard.partition, writer)
        hear = hearing(reader)
        said = await hear()
        delivery, more = named(said)
        if said.kind == OPEN and self._is_late(delivery):
            line.say(Frame(STOP))
        elif said.kind == OPEN:
            try:
                arrival = self._arriving(delivery, more["schema"])
            except (SparkJobError, TypeError) as error:
                line.say(_failed(str(error)))
            else:
                await arrival.write(line, hear)
        elif said.kind in (COMMIT, ABORT):
            line.say(await self._judged(said.kind, delivery, more["rows"]))
        await writer.drain()

    def _is_late(self, delivery: Delivery) -> bool:
        """Return whether Spark gave up a task before it connected, and the query has gone on or begun again."""
        if delivery.run in self._past:
            return True
        now = None if self._arrival is None else self._arrival.delivery
        return now is not None and (delivery.query, delivery.run) == (now.query, now.run) and delivery.batch < now.batch

    def _arriving(self, delivery: Delivery, schema: dict[str, Any]) -> Arrival:
        """Return the micro-batch that a task writes. It may be the first to do so."""
        arrival = self._arrival
        if arrival is not None and arrival.delivery == delivery:
            return arrival
        if self._closed or (self._query is not None and self._query.stopping):
            raise SparkJobError("the flow that the stream is written to has ended")
        if arrival is not None and arrival.live and arrival.delivery.query != delivery.query:
            raise SparkJobError("another query writes to this inbox. Open an inbox for each query")
        struct = StructType.fromJson(schema)
        if not struct.fields:
            raise SparkJobError("a stream without columns can't be written to an inbox")
        kinds = reading(self._kind, struct, "inbox")
        if arrival is not None:
            if arrival.delivery.query == delivery.query and arrival.delivery.run != delivery.run:
                self._past.append(arrival.delivery.run)
            arrival.give_up(SparkJobError(f"the query has restarted, and micro-batch {delivery.batch} begins again"))
        patience = self._patience if self._query is None else inf  # for that of our own we hear otherwise
        self._arrival = arrival = Arrival(delivery, kinds, self.post, patience)
        handover = arrival.hand_over(lambda error: self.post(lambda _: self._broken(arrival, error), None))
        if self._query is not None:
            self._query.pending = handover
        self.offer()
        return arrival

    async def _judged(self, kind: int, delivery: Delivery, rows: dict[str, int | None]) -> Frame:
        """Report to the driver whether a micro-batch has been consumed, when that is known."""
        arrival = self._arrival
        if arrival is None or arrival.delivery != delivery:
            return _failed(f"micro-batch {delivery.batch} is unknown to this inbox")
        if kind == ABORT:
            arrival.give_up(
                SparkJobError(f"Spark has given up micro-batch {delivery.batch}: a task has failed for good")
            )
        else:
            arrival.confirmed(rows)
        await arrival.decided.wait()
        return Frame(STOP) if arrival.handover.accepted or kind == ABORT else _failed(arrival.why)


def _failed(why: str) -> Frame:
    return Frame(FAILED, pickled=why.encode())
