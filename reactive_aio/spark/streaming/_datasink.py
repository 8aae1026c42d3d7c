"""The writer of the data source ``reactive_aio``: the tasks of a streaming query push rows to the event loop.

A task sends the granted rows, and then waits. So the subscriber sets the pace of the query. The query commits a
micro-batch when the subscriber has acknowledged it.
"""

from __future__ import annotations

import select
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import define, field, frozen
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..._core.containers import new_deque
from ..._remote.frames import BEAT as ALIVE
from ..._remote.frames import CHUNK, CREDIT, FAILED, LAST, PART, READY, STOP, Decoder, Frame
from ...errors import SparkJobError
from ._arrow import to_arrow
from ._hearing import BEAT
from ._inboxwire import ABORT, COMMIT, OPEN, Delivery, frame
from ._line import dial

# `Any` stands for batches of Arrow, whose stubs know it by halves.

QUERY, RUN, BATCH = "sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"
"""The property by which Spark tells its tasks their job. The job group of a streaming query is its run."""
WHOM = "the inbox that the stream is written to"


@frozen
class Written(WriterCommitMessage):
    """The message of a task when its partition has been written."""

    delivery: Delivery
    partition: int
    rows: int | None
    """The number of its rows, or None if the loop needed no more of them."""


class FlowWriter(DataSourceStreamArrowWriter):
    """Writes partitions in the tasks, and commits in the process that plans the query."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> Written:
        """Push a partition."""
        task = TaskContext.get()
        assert task is not None
        delivery = _delivery(task)
        with Conversation(dial(self._options, WHOM, task.partitionId(), task.attemptNumber())) as conversation:
            conversation.say(frame(OPEN, delivery, schema=self._schema.jsonValue()))
            with Pulse(conversation, delivery.batch):
                rows = Push(conversation, delivery.batch).to_end(iterator)
        for _ in iterator:  # what is not computed leaves a gap in the state of a query
            pass
        return Written(delivery, task.partitionId(), rows)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Wait until the subscriber has consumed the micro-batch. There is none if nothing was written."""
        del batchId
        self._tell(COMMIT, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Report that the micro-batch will come again, if it does."""
        del batchId
        self._tell(ABORT, messages)

    def _tell(self, kind: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        written = [message for message in messages if isinstance(message, Written)]
        if not written:
            return
        rows = {str(message.partition): message.rows for message in written}
        with Conversation(dial(self._options, WHOM)) as conversation:
            conversation.say(frame(kind, written[0].delivery, rows=rows))
            conversation.hear()


def _delivery(task: TaskContext) -> Delivery:
    told = [task.getLocalProperty(name) for name in (QUERY, RUN, BATCH)]
    query, run, batch = told
    if query is None or batch is None:
        raise SparkJobError(
            "the tasks can't tell which micro-batch they write, because this version of Spark is not supported"
        )
    return Delivery(query, run or "", int(batch))


@define
class Conversation:
    """A connection to the event loop, after the handshake."""

    _socket: socket.socket
    _decoder: Decoder = field(init=False, factory=Decoder)
    _heard: deque[Frame] = field(init=False, factory=new_deque)
    _saying: threading.Lock = field(init=False, factory=threading.Lock)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, said: Frame) -> None:
        """Send a frame."""
        with self._saying:
            for piece in said.encoded():
                self._socket.sendall(piece)

    @property
    def spoken_to(self) -> bool:
        """Whether there is something to read, without waiting."""
        return bool(self._heard) or bool(select.select([self._socket], [], [], 0)[0])

    def hear(self) -> Frame:
        """Wait for a message of the loop. Raise the error that it reports."""
        while not self._heard:
            data = self._socket.recv(4096)
            if not data:
                raise SparkJobError(f"{WHOM} was closed")
            self._heard.extend(self._decoder.feed(data))
        heard = self._heard.popleft()
        if heard.kind == FAILED:
            raise SparkJobError(bytes(heard.pickled).decode())
        return heard


@define
class Pulse:
    """Signs of life from a thread of its own, because Spark may take long to compute the next rows."""

    conversation: Conversation
    batch: int
    seconds: float = BEAT
    _over: threading.Event = field(init=False, factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="reactive_aio-pulse", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError):  # the loop has hung up, which the task will hear
            while not self._over.wait(self.seconds):
                self.conversation.say(Frame(ALIVE, self.batch))


@define
class Push:
    """A partition on its way."""

    conversation: Conversation
    batch: int
    skip: int = field(init=False, default=0)
    granted: int = field(init=False, default=0)
    stopped: bool = field(init=False, default=False)

    def to_end(self, batches: Iterator[Any]) -> int | None:
        """Push all rows and return their number, or None if no more were needed."""
        self._take()
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            self._push(batch)
            if self.stopped:
                return None
        self._say(LAST)
        while not self.stopped:
            self._take()
        return rows

    def _push(self, batch: Any) -> None:
        at = min(self.skip, batch.num_rows)
        self.skip -= at
        while self.conversation.spoken_to and not self.stopped:
            self._take()
        if at < batch.num_rows and not self.stopped:
            self._say(READY, batch.num_rows - at)
        while at < batch.num_rows and not self.stopped:
            if not self.granted:
                self._take()
                continue
            piece = batch.slice(at, self.granted)
            at += piece.num_rows
            self.granted -= piece.num_rows
            self._say(PART, piece.num_rows, to_arrow([piece]))

    def _take(self) -> None:
        heard = self.conversation.hear()
        if heard.kind == CHUNK:
            self.skip = heard.detail
        elif heard.kind == CREDIT:
            self.granted += heard.count
        elif heard.kind == STOP:
            self.stopped = True

    def _say(self, kind: int, count: int = 0, data: bytes = b"") -> None:
        self.conversation.say(Frame(kind, self.batch, count, pickled=data))
