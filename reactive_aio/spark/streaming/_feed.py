"""From asyncio to Structured Streaming: a flow as a source of Spark.

The processes of the streaming query ask the event loop for rows (see `feedwire`). The flow is asked for at most
``ahead`` elements beyond the place of Spark. Rows that Spark has not committed are kept, because it may request them
again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from ..._core.guard import FAILURES, as_failure, brief, is_closed_with
from ..._core.notes import set_cause
from ..._core.tasks import begin_task
from ..._remote.handshake import Guard
from ...errors import SparkJobError
from ...hooks import also_failed, drop_error
from ...operators._fluent import check_count, check_function
from .._job.asking import asking, check_text
from .._job.told import told
from .._task.connecting import listen
from .._task.zones import zone_of
from ..sink._columns import Columns
from ..sink._schema import Schema, check_schema, struct_of
from ._arrow import in_arrow
from ._backlog import Backlog
from ._block import Block
from ._feedwire import ANSWER, BEGIN, COMMIT, DONE, FETCH, LATEST, OFFSET, QUESTION, REFUSED
from ._line import check_classic, register
from ._reception import Reception

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..._flow.flow import Flow

WAIT: Final = 0.05
"""Seconds that a query waits for the first row of a batch.

Then it asks again, or stops.
"""
SENT: Final = 1 << 18
"""Bytes of rows that are sent at a time: a transport copies what the socket does not take, on the event loop."""
LOOK: Final = 0.2
"""Seconds after which `Feed.drain` checks whether the query is still running."""


def feed(
    flow: Flow[Any] | Callable[[int], Flow[Any]],
    session: SparkSession,
    schema: Schema,
    *,
    ahead: int = 20_000,
    batch: int = 10_000,
    partitions: int = 1,
    name: str | None = None,
) -> AbstractAsyncContextManager[Feed]:
    """Let Spark read a flow as a stream, for the length of an ``async with`` block.

    ``await feed.frame()`` is the streaming DataFrame, for one query. ``schema`` is one of ``Flow.to_spark``. The feed
    subscribes to the flow when the query asks for its first row. A query that begins again from its checkpoint gets the
    rows that it has not committed once more.

    When this process restarts, so does the flow, and the feed has to find its rows by their offset. For this, pass a
    function from an offset to the flow of the elements from there on. Also pass a ``name``, and never change it,
    because the checkpoint refers to it.

    Demand: at most ``ahead`` elements beyond those that Spark has admitted into its batches. A batch has up to ``batch``
    rows. The feed keeps admitted rows until Spark commits them, when it plans the next batch. So it keeps at most
    ``ahead`` rows and two batches.
    Errors: when the flow fails, or an element does not fit, the rows before it are delivered, and the query fails.
    ``feed.drain(query)`` raises the error.
    Trigger: with ``availableNow=True`` the query runs to the end of the flow.
    (Spark: a streaming ``DataSource``; Kafka: ``maxOffsetsPerTrigger``.)
    """
    _check_source(flow)
    _check_name(name)
    if callable(flow) and name is None:
        raise ValueError(
            "feed() needs name=... with a function from the offset to the flow: checkpoints refer to the feed by this name"
        )
    if not callable(flow) and name is not None:
        raise ValueError(
            "feed(name=...) needs a function from the offset to the flow, so that the feed can continue after a restart"
        )
    for label, count in (("ahead", ahead), ("batch", batch), ("partitions", partitions)):
        check_count("feed", label, count, 1)
    _check_session(session)
    check_schema("feed", schema)

    async def opened() -> Feed:
        struct, zone = await asyncio.to_thread(_asked, session, schema)
        columns = Columns(struct, schema if isinstance(schema, type) else None, zone_of(zone))
        own = Feed(flow, session, columns, ahead, batch, partitions, secrets.token_hex(8) if name is None else name)
        await own.open()
        return own

    return Block(opened)


def _check_flow(given: object, told: str) -> None:
    from ..._flow.flow import Flow

    if not isinstance(given, Flow):
        raise TypeError(told)


def _check_source(source: object) -> None:
    """Raise unless the value is a flow or a function that returns one."""
    if callable(source):
        check_function("feed", source, "return the flow from an ordinary function")
    else:
        _check_flow(source, f"feed() takes a flow, or a function from an offset to one, not {type(source).__name__}")


def _check_name(name: object) -> None:
    if name is None:
        return
    if not isinstance(name, str):
        raise TypeError(f"feed(name={name!r}): name is a text, not {type(name).__name__}")
    if not name:
        raise ValueError("feed(name=''): name must not be empty, because checkpoints refer to the feed by it")
    check_text("feed", "name", name)


def _check_session(session: object) -> None:
    from pyspark.sql import SparkSession

    check_classic("feed", session)
    if not isinstance(session, SparkSession):
        raise TypeError(f"feed(session={session!r}): session must be a SparkSession")


def _active(query: StreamingQuery) -> bool:
    """Return whether the query goes on."""
    try:
        return query.isActive
    except Exception:
        return False  # the JVM is gone, and the next call says so


def _processed(query: StreamingQuery) -> SparkJobError | None:
    """Wait until the query has processed all rows, or has failed."""
    try:
        query.processAllAvailable()
    except Exception as error:
        failure = SparkJobError(f"the streaming query failed: {told(error)}")
        failure.__cause__ = error
        return failure
    return None


def _asked(session: SparkSession, schema: Schema) -> tuple[Any, str]:
    with asking("feed", session):
        return struct_of("feed", schema), str(session.conf.get("spark.sql.session.timeZone"))


@define(eq=False)
class Feed:
    """A flow that Spark reads as a stream; made by `feed`."""

    _source: Flow[Any] | Callable[[int], Flow[Any]]
    _session: SparkSession
    _columns: Columns
    _ahead: int
    _batch: int
    _partitions: int
    _name: str
    _loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.get_running_loop)
    _reception: Reception = field(init=False)
    _backlog: Backlog = field(init=False)
    _pump: asyncio.Task[BaseException | None] | None = field(init=False, default=None)
    _admitted: int = field(init=False, default=0)
    """The place up to which elements may be taken from the flow."""
    _complete: bool = field(init=False, default=False)
    error: BaseException | None = field(init=False, default=None)
    """The failure of the flow."""
    _came: asyncio.Event = field(init=False, factory=asyncio.Event)
    """Set when something has come. The waiting task clears it."""
    _room: asyncio.Event = field(init=False, factory=asyncio.Event)

    def __attrs_post_init__(self) -> None:
        self._backlog = Backlog(self._columns.table)

    # -- for users

    @property
    def options(self) -> dict[str, str]:
        """The options for ``session.readStream.format("reactive_aio")``."""
        return {
            **self._reception.options,
            "feed": self._name,
            "rows": str(self._batch),
            "partitions": str(self._partitions),
            "schema": self._columns.struct.json(),
        }

    async def frame(self) -> DataFrame:
        """Return the streaming DataFrame. It is for one query."""
        return await asyncio.to_thread(self._load)

    def _load(self) -> DataFrame:
        register(self._session)
        return self._session.readStream.format("reactive_aio").options(**self.options).load()

    async def drain(self, query: StreamingQuery) -> None:
        """Wait until the flow has ended and the query has processed all rows. Raise the failure of either."""
        while not self._complete and await asyncio.to_thread(_active, query):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._until(lambda: self._complete), LOOK)
        failure = await asyncio.to_thread(_processed, query)
        if self.error is not None:
            if failure is not None:
                set_cause(self.error, failure)
            raise self.error
        if failure is not None:
            raise failure

    # -- life

    async def open(self) -> None:
        """Listen, until `close`."""
        listening, host = await asyncio.to_thread(listen, self._session.sparkContext)
        self._reception = Reception(listening, host, self._serve)
        await self._reception.open()

    async def close(self) -> BaseException | None:
        """Close everything. Return the errors of the flow's cleanup."""
        try:
            await self._reception.close()
        finally:
            failure = await self._end()
        return failure

    async def _end(self) -> BaseException | None:
        pump, self._pump = self._pump, None
        if pump is None:
            return None
        pump.cancel()
        (outcome,) = await asyncio.gather(pump, return_exceptions=True)
        return None if isinstance(outcome, asyncio.CancelledError) else outcome

    # -- the flow

    async def _begin_at(self, offset: int) -> None:
        """Begin the flow at an offset, unless it has already come there and the rows are kept."""
        if self._pump is not None:
            if offset >= self._backlog.first or not callable(self._source):
                return
            if (late := await self._end()) is not None:
                drop_error(late)  # the flow begins again, and nobody waits for the one before
        if offset and not callable(self._source):
            raise SparkJobError(
                f"another process has read the stream up to row {offset}, but a flow begins with its first element. "
                "Make the feed with a name and a function from the offset to the flow"
            )
        flow = self._flow_from(offset)
        self._backlog = Backlog(self._columns.table, offset)
        self._admitted = offset
        self._complete, self.error = False, None
        self._pump = begin_task(self._run(flow))

    def _flow_from(self, offset: int) -> Flow[Any]:
        if not callable(self._source):
            return self._source
        try:
            flow = self._source(offset)
            _check_flow(
                flow,
                f"the function of feed(name={self._name!r}) must return a flow, but returned {type(flow).__name__}",
            )
        except FAILURES as error:
            self.error = as_failure(error)
            raise SparkJobError(f"the flow of the stream could not begin at row {offset}: {brief(error)}") from error
        return flow

    async def _run(self, flow: Flow[Any]) -> BaseException | None:
        """Take the elements of the flow. Return the error of its cleanup when it is left."""
        left, failure = False, None
        try:
            async with flow.open() as items:
                try:
                    await self._take(items)
                except asyncio.CancelledError:  # it is left in peace, and so says what its cleanup has failed with
                    left = True
        except FAILURES as error:
            if isinstance(error, asyncio.CancelledError) or is_closed_with(error, self._loop):
                raise
            if left:
                return error
            failure = error
        if not left:
            self._ended(failure)
        return None

    def _ended(self, failure: BaseException | None) -> None:
        """Note how the flow has ended. An element that is not a row came before the failure."""
        self._backlog.settle()
        wrong = self._backlog.error
        if wrong is not None and failure is not None:
            also_failed(wrong, failure)
        self.error = failure if wrong is None else wrong
        self._complete = True
        self._came.set()

    async def _take(self, items: Any) -> None:
        backlog = self._backlog
        while backlog.error is None:
            while backlog.end >= self._admitted:
                self._room.clear()
                await self._room.wait()
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            backlog.add(item)
            self._came.set()

    def _admit(self, end: int) -> None:
        if end > self._admitted:
            self._admitted = end
            self._room.set()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._came.clear()
            await self._came.wait()

    # -- the query

    async def _serve(self, _: Guard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._answer(QUESTION.unpack(await reader.readexactly(QUESTION.size)), writer)

    async def _answer(self, question: tuple[int, int, int, int], writer: asyncio.StreamWriter) -> None:
        try:
            kind, data = DONE, await self._answered(*question)
        except Exception as error:
            kind, data = REFUSED, str(error).encode()
        writer.write(ANSWER.pack(kind, len(data)))
        for at in range(0, len(data), SENT):
            await writer.drain()
            writer.write(data[at : at + SENT])
        await writer.drain()

    async def _answered(self, kind: int, first: int, second: int, third: int) -> bytes | memoryview:
        if kind == BEGIN:
            if not callable(self._source):
                self._backlog.check(0)  # this query is a new one, and would miss what another one has had
            return OFFSET.pack(0)
        if kind == LATEST:
            return OFFSET.pack(await self._latest(first, second, wait=bool(third)))
        if kind == FETCH:
            return await self._fetched(first, second)
        if kind == COMMIT:
            self._backlog.drop(first)
            return b""
        raise SparkJobError(
            f"the feed does not know the request {kind}. Install the same version of reactive_aio on both sides"
        )

    async def _latest(self, start: int, limit: int, *, wait: bool) -> int:
        """Return how far a batch may go. The end of the flow, or its failure, comes after the earlier rows."""
        await self._begin_at(start)
        self._admit(start + self._ahead)
        backlog = self._backlog
        with suppress(TimeoutError):
            await asyncio.wait_for(self._until(lambda: backlog.end > start or self._complete), None if wait else WAIT)
        backlog.settle()
        if self.error is not None and backlog.end <= start:
            raise SparkJobError(f"the flow of the stream failed: {brief(self.error)}")
        return min(backlog.end, start + limit)

    async def _fetched(self, start: int, end: int) -> memoryview:
        """Return the fetched rows.

        After a restart they have to come from the flow first. A hundred thousand are too many for a turn of the loop.
        """
        self._admit(end)
        backlog = self._backlog
        await self._until(lambda: backlog.end >= end or self._complete)
        return await asyncio.to_thread(in_arrow, backlog.between(start, end))
