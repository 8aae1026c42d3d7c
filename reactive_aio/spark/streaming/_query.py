"""The streaming query behind a flow: every call into the JVM, on threads, and the callback in which Spark waits."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import define, field

from ..._core.containers import new_list
from ...errors import SparkJobError
from .._job.told import text_of, told
from .._task.connecting import unreachable
from ._microbatch import Handover

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

STOP: Final = 10.0
"""Seconds for a query to stop. Spark itself would wait for ever."""
TERMINATED: Final = 2.0
"""Seconds for a query to notice its stop, before the callback returns."""


CLAIMED: Final[dict[str, Query]] = {}
"""The queries of this process that run, by the folders of their checkpoints."""


class Events(Protocol):
    """The receiver of the query's events, on the event loop."""

    def started(self, query_id: str) -> None:
        """The query runs."""

    def offered(self, offer: tuple[DataFrame, int, Handover]) -> None:
        """Spark has made a micro-batch, and waits."""

    def broken(self, error: BaseException) -> None:
        """The subscriber has failed to consume a micro-batch."""

    def ended(self, error: SparkJobError | None) -> None:
        """The query has ended, and nothing of it is left."""


class Withheld(Exception):  # noqa: N818 - no error of anybody's
    """Keeps Spark from committing a micro-batch that has not been consumed.

    This is the text of an interrupted call. By it Spark knows that a query was stopped and has not failed.
    """

    def __init__(self) -> None:
        super().__init__(
            "the flow has ended: py4j.protocol.Py4JJavaError: An error occurred while calling the subscriber: "
            "java.lang.InterruptedException"
        )


def _not_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], Withheld)


def hush() -> None:
    """Make py4j not report the intended exception of a callback."""
    for name in ("py4j.clientserver", "py4j.java_gateway"):
        logger = logging.getLogger(name)
        if _not_ours not in logger.filters:
            logger.addFilter(_not_ours)


def folder_of(checkpoint: str) -> str:
    """Return one name for the folder of a checkpoint, however it is written: as a URI, or by a link."""
    local = re.sub("^file:(//(?=/))?", "", checkpoint)
    return local if "://" in local else os.path.realpath(local)


@contextmanager
def claimed(checkpoint: str, query: Query) -> Generator[None]:
    """Keep a checkpoint for one query. The next one waits if this one is stopping, and is refused otherwise.

    Spark alone would stop the first for the second, and wait until the subscriber has consumed the current micro-batch.
    The subscriber would then see the end of the stream.
    """
    folder = folder_of(checkpoint)
    while (other := CLAIMED.setdefault(folder, query)) is not query:
        if not (other.stopping and other.wait(STOP)):
            raise SparkJobError(
                f"{query.name}: {other.name} uses this checkpoint now, and a checkpoint serves one query at a time. "
                "Use another checkpoint for each subscription"
            )
    try:
        yield
    finally:
        del CLAIMED[folder]


@define(eq=False)
class Query:
    """The threads of one subscription."""

    name: str
    checkpoint: str
    start_query: Callable[[Callable[[Any, int], None]], StreamingQuery]
    events: Events
    post: Callable[[Callable[[Any], None], Any], None]
    caller: Callable[[], Any] | None = None
    """Returns the connection of the thread on which Spark calls back."""
    _query: StreamingQuery | None = field(init=False, default=None)
    _stopping: Event = field(init=False, factory=Event)
    _over: Event = field(init=False, factory=Event)
    pending: Handover | None = field(init=False, default=None)
    """The batch that Spark waits for. Spark makes one at a time. It is refused when the query has to stop."""
    _line: Any = field(init=False, default=None)
    """The connection by which Spark calls. A thread of py4j waits there for more, and would wait for ever."""
    _threads: list[Thread] = field(init=False, factory=new_list)
    _told: Lock = field(init=False, factory=Lock)
    """Taken by the thread that reports the end: an abandoned query may still end."""

    # -- on the loop

    @property
    def running(self) -> StreamingQuery | None:
        """Spark's query, once it has started."""
        return self._query

    @property
    def stopping(self) -> bool:
        """Whether it is stopping."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Start the query, and wait for its end, on a thread."""
        hush()
        self._thread(self._lead)

    def stop(self) -> None:
        """Stop, in bounded time. The micro-batch that has not been acknowledged is not committed."""
        if not self._stopping.is_set() and not self._over.is_set():
            self._stopping.set()
            self._thread(self._stop)

    def join(self) -> None:
        """Wait for the threads, which have nothing left to do, to end. Leave those that a dead JVM holds."""
        for thread in self._threads:
            thread.join(None if self._over.is_set() else 0)

    def wait(self, seconds: float) -> bool:
        """Wait on a thread for the end, and return whether it has come."""
        return self._over.wait(seconds)

    def _thread(self, work: Callable[[], None]) -> None:
        thread = Thread(target=work, name=f"reactive_aio-stream-{len(self._threads)}", daemon=True)
        thread.start()
        self._threads.append(thread)  # behind the start: the leading thread joins the others when the query ends

    # -- on the threads

    def _lead(self) -> None:
        error: SparkJobError | None = None
        try:
            with claimed(self.checkpoint, self):
                self._query = query = self.start_query(self._called)
                self.post(self.events.started, str(query.id))
                query.awaitTermination()
        except Exception as failure:
            error = self._failure(failure)
        self._over.set()
        self._give_way()
        self._hang_up()
        for stopper in self._threads[1:]:
            stopper.join(STOP)
        self._end(error)

    def _end(self, error: SparkJobError | None) -> None:
        if self._told.acquire(blocking=False):
            self.post(self.events.ended, error)

    def _called(self, frame: Any, batch_id: int) -> None:
        """Take a micro-batch. Spark waits in here."""
        if self.caller is not None:
            self._line = self.caller()
        handover = Handover(lambda error: self.post(self.events.broken, error))
        self.pending = handover
        if self._stopping.is_set():
            handover.settle(accepted=False)
        else:
            self.post(self.events.offered, (frame, batch_id, handover))
        if not handover.wait():
            raise Withheld

    def _hang_up(self) -> None:
        line = None if self._line is None else self._line.socket
        if line is not None:
            with suppress(OSError):  # the JVM has hung up itself
                line.shutdown(socket.SHUT_RDWR)

    def _stop(self) -> None:
        stopper = Thread(target=self._stop_query, name="reactive_aio-stream-stop", daemon=True)
        stopper.start()
        self._await_note()
        self._give_way()
        if self._over.wait(STOP):
            stopper.join(STOP)
        else:
            self._end(SparkJobError(f"{self.name}: the query did not stop within {STOP:g} s"))

    def _stop_query(self) -> None:
        while self._query is None and not self._over.wait(0.01):
            pass  # it is just being started
        if self._query is not None:
            with suppress(Exception):  # it has ended, or the JVM is gone, and the leading thread will say so
                self._query.stop()

    def _await_note(self) -> None:
        """Wait until Spark knows that it was stopped, so that it does not count the end as a failure."""
        for _ in range(int(TERMINATED / 0.01)):
            query = self._query
            if self._over.wait(0.01):
                return
            with suppress(Exception):
                if query is not None and not query.isActive:
                    return

    def _give_way(self) -> None:
        if self.pending is not None:
            self.pending.settle(accepted=False)

    def _failure(self, error: Exception) -> SparkJobError | None:
        if self._stopping.is_set():
            return None  # nobody will hear of it
        if isinstance(error, SparkJobError):
            return error
        cut_off = unreachable(text_of(error))
        failure = cut_off or SparkJobError(f"the streaming query of {self.name} failed: {told(error)}")
        failure.__cause__ = error
        return failure
