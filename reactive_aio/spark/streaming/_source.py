"""The source of a streaming DataFrame: micro-batches, one at a time, each on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen
from pyspark.sql import DataFrame, Row
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from ..._plan import Elsewhere, Inlet, Pushed
from ...errors import SparkJobError, TaskCancelledError, UnsupportedOnSparkError
from ...operators._fluent import check_flag
from ...spec import Subscription, add_demand
from .._job.asking import asking, check_running, check_text, text_of_path
from .._job.local_properties import NO_PROPERTIES, LocalProperties
from .._source.insight import ui_of
from .._task.rows import Reading, reading
from ._microbatch import Handover, MicroBatch
from ._query import Query

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

MODES: Final = ("append", "update", "complete")
TRIGGERS: Final = ("processingTime", "once", "availableNow")


@frozen(eq=False)
class FromSparkStream(Pushed[MicroBatch[Any]]):
    """Source of ``Flow.from_spark`` for a streaming DataFrame."""

    data: DataFrame
    reading: Reading
    checkpoint: str
    output_mode: str
    trigger: Mapping[str, Any]
    rows_prefetch: int
    ordered: bool
    properties: LocalProperties = NO_PROPERTIES
    """The local properties of the query and of the jobs that read its rows."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return "from_spark"

    @property
    def arguments(self) -> str:
        """Return the facts that are known without a call into the JVM."""
        return f"streaming DataFrame, as_={self.reading.kind.__name__}, checkpoint={self.checkpoint!r}"

    @property
    def elsewhere(self) -> Elsewhere:
        """The query on Spark."""
        master = self.data.sparkSession.sparkContext.master
        return Elsewhere(f"Spark {master}", str(self), "micro-batches, each when the one before is acknowledged")

    @property
    def details(self) -> tuple[str, ...]:
        """How the rows of a batch travel, and where to look at the query."""
        rows = "Arrow into the workers, chunks over TCP to this process, when the rows of a batch are asked for"
        return (rows, *ui_of(self.data.sparkSession.sparkContext))

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Start the query."""
        subscription = StreamSubscription(inlet, self)
        subscription.begin()
        return subscription

    def caller(self) -> Any:
        """Return py4j's connection of the thread on which Spark calls back."""
        context: Any = self.data.sparkSession.sparkContext
        return context._gateway._gateway_client.get_thread_connection()

    def start(self, call: Any) -> StreamingQuery:
        """Start the query; on a thread."""
        session = self.data.sparkSession
        check_running("from_spark", session)
        self.properties.enter(session.sparkContext)  # the thread of the query gets a copy
        writer = self.data.writeStream.outputMode(self.output_mode).option("checkpointLocation", self.checkpoint)
        if self.trigger:
            writer = writer.trigger(**self.trigger)
        return writer.foreachBatch(call).start()


@define(eq=False)
class StreamSubscription:
    """The Subscription of the region; hands over a micro-batch for each that is requested."""

    inlet: Inlet[Any]
    source: FromSparkStream
    _query: Query = field(init=False)
    _query_id: str | None = field(init=False, default=None)
    _demand: int = field(init=False, default=0)
    _offer: tuple[Any, int, Handover] | None = field(init=False, default=None)
    """The micro-batch without demand yet, or whose query has yet to report its id."""
    _failure: BaseException | None = field(init=False, default=None)
    """The failure of the subscriber.

    The subscriber knows it, and most likely cancels. So it gets the failure only with the next request.
    """
    _over: bool = field(init=False, default=False)
    _left: asyncio.Event = field(init=False, factory=asyncio.Event)
    _task: asyncio.Task[None] | None = field(init=False, default=None)
    _release: Callable[[], None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        source = self.source
        self._query = Query(str(source), source.checkpoint, source.start, self, self.inlet.post, source.caller)

    def begin(self) -> None:
        """Start the query. Nothing here waits for it."""
        self._release = self.inlet.hold()
        self._query.start()
        self._begin_task()

    def _begin_task(self) -> None:
        self._task = self.inlet.start(self._live())
        self._task.add_done_callback(self._task_ended)

    def _task_ended(self, _: asyncio.Task[None]) -> None:
        if self._left.is_set():
            self._release()
        else:
            # Cancelled before it had begun; what it is to wait for is still there.
            self._cancelled(None)
            self._begin_task()

    # -- the Subscription of the region

    def request(self, n: int) -> None:
        """Let Spark hand over more.

        A region that requests is in the middle of its turn, so a waiting batch comes in an event.
        """
        self._demand = add_demand(self._demand, n)
        if self._offer is not None or self._failure is not None:
            self.inlet.post(self._asked, None)

    def _asked(self, _: None) -> None:
        self._hand_over()
        self._fail()

    def cancel(self) -> None:
        """Stop the query. A batch that has not been acknowledged is not committed."""
        self._over = True
        self._query.stop()

    # -- what the query tells

    def started(self, query_id: str) -> None:
        """Note the id of the query."""
        self._query_id = query_id
        self._hand_over()

    def offered(self, offer: tuple[Any, int, Handover]) -> None:
        """Take a micro-batch, and hand it over when it is requested."""
        if self._over:
            offer[2].settle(accepted=False)
        else:
            self._offer = offer
            self._hand_over()

    def _hand_over(self) -> None:
        if self._over or self._offer is None or not self._demand or self._query_id is None:
            return
        (frame, batch_id, handover), self._offer = self._offer, None
        self._demand -= 1
        source = self.source
        batch: MicroBatch[Any] = MicroBatch(
            batch_id,
            self._query_id,
            handover,
            frame,
            source.reading,
            source.rows_prefetch,
            source.ordered,
            source.properties,
        )
        self.inlet.on_chunk([batch])

    def broken(self, error: BaseException) -> None:
        """Stop the query, because a micro-batch was not consumed."""
        if self._failure is None:
            self._failure = error
        self._query.stop()

    def ended(self, error: SparkJobError | None) -> None:
        """Signal the end, if that has not been done, and let the rest be cleaned up."""
        self._left.set()
        if not self._over and self._failure is None:
            self._finish(error)
            return
        if error is not None:
            self.inlet.cleanup_failed(error)
        self._fail()

    def _fail(self) -> None:
        """Fail as the subscriber did, when the query has ended, so that it may begin again."""
        if self._failure is not None and self._demand and self._left.is_set() and not self._over:
            self._finish(self._failure)

    def _finish(self, error: BaseException | None) -> None:
        self._over = True
        self._query.stop()
        if error is None:
            self.inlet.on_complete()
        else:
            self.inlet.on_error(error)

    # -- life

    async def _live(self) -> None:
        interrupted: asyncio.CancelledError | None = None
        while not self._left.is_set():
            try:
                await self._left.wait()
            except asyncio.CancelledError as error:
                interrupted = error
                self._cancelled(error)
        self._query.join()
        if interrupted is not None:
            raise interrupted

    def _cancelled(self, error: asyncio.CancelledError | None) -> None:
        cancelled = TaskCancelledError("the task of a source was cancelled by somebody else")
        cancelled.__cause__ = error
        if not self._over:
            self._finish(cancelled)


def check_query(method: str, checkpoint: object, output_mode: str, trigger: Any) -> tuple[str, dict[str, Any]]:
    """Check the arguments of a query. Return the folder of its checkpoint and its trigger."""
    folder = text_of_path(checkpoint)
    if folder is None:
        raise TypeError(f"{method}(checkpoint={checkpoint!r}): checkpoint must be the path of a folder, as text")
    if not folder.strip():
        raise ValueError(
            f"{method}(checkpoint={folder!r}): checkpoint must be a folder, which records the progress of the stream"
        )
    check_text(method, "checkpoint", folder)
    if output_mode not in MODES:
        raise ValueError(f"{method}(output_mode={output_mode!r}): choose one of {', '.join(MODES)}")
    checked: object = trigger  # its declared type, which the test narrows
    if not isinstance(checked, (Mapping, NoneType)):
        raise TypeError(
            f"{method}(trigger={trigger!r}): trigger must be a mapping, such as {{'availableNow': True}} or "
            "{'processingTime': '1 second'}"
        )
    given: dict[str, Any] = {} if trigger is None else dict(trigger)
    if len(given) > 1 or not given.keys() <= set(TRIGGERS):
        raise UnsupportedOnSparkError(
            f"{method}(trigger={given!r}): choose one of {', '.join(TRIGGERS)}, such as "
            "{'processingTime': '1 second'}. Continuous and real-time mode have no micro-batches"
        )
    for name, value in given.items():
        fits = isinstance(value, str) and value.strip() if name == "processingTime" else value is True
        if not fits:
            wanted = "a text, such as '1 second'" if name == "processingTime" else "True"
            raise ValueError(f"{method}(trigger={given!r}): the value of {name} must be {wanted}")
    return folder, given


def from_stream(
    data: Any, as_: type[Any] | None, checkpoint: object, output_mode: str, trigger: Any, prefetch: int, ordered: bool
) -> FromSparkStream:
    """Check the arguments of ``Flow.from_spark`` for a streaming DataFrame."""
    if type(data).__module__.startswith("pyspark.sql.connect."):
        raise UnsupportedOnSparkError(
            "from_spark(checkpoint=...) needs a classic session: with Spark Connect micro-batches can't reach "
            "this process. Build the session with .master(...), not with .remote(...)"
        )
    ends = TypeError(
        f"from_spark(checkpoint=...) takes a streaming DataFrame, made with spark.readStream, not a {type(data).__name__} "
        "of a batch. Leave checkpoint out"
    )
    if not isinstance(data, ClassicDataFrame):
        raise ends
    check_flag("from_spark", "ordered", ordered)
    folder, given = check_query("from_spark", checkpoint, output_mode, trigger)
    with asking("from_spark", data.sparkSession):
        if not data.isStreaming:
            raise ends
        kinds = reading(Row if as_ is None else as_, data.schema)
        properties = LocalProperties.here(data.sparkSession.sparkContext)
    return FromSparkStream(data, kinds, folder, output_mode, given, prefetch, ordered, properties)
