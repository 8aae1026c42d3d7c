"""The scheduler that runs functions on a Spark cluster. PySpark is imported when it is made."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..spark._resident.scheduler import SparkWorkers


def spark(
    session: SparkSession, slots: int | None = None, *, idle: float = 10.0, context: Iterable[ContextVar[Any]] = ()
) -> SparkWorkers:
    """Run the functions that follow in the Python workers of a Spark cluster, in at most ``slots`` resident tasks.

    It is for ``publish_on``. A resident task connects back to the event loop and works on one chunk after another. A
    chunk goes there and back in a fraction of a millisecond, and elements come back in order. The tasks start with the
    first elements, one for each waiting chunk. They take slots of the cluster as ``Flow.from_spark`` does, which leaves
    one free if it can. By default ``slots`` is one less than ``defaultParallelism``. A task that has been idle for
    ``idle`` seconds ends and frees its slot. It starts again with the next elements, in some tenths of a second.

    Operators that depend on an element's place in the stream, such as ``take``, run with what follows them on the event
    loop that reads. The functions travel by value. A value that can't be pickled, or that belongs to this process, is
    refused with UnsupportedOnSparkError when the flow is built. Examples are a lock, an event loop and a Spark session.
    The variables in ``context`` have the subscriber's values in the functions. They are globals of modules that the
    workers can import, and their values can be pickled.

    A task that is lost is replaced, and its work is done again. No element is lost, doubled or out of place, and
    effects of the functions may happen again. A chunk that is lost four times fails the flow with WorkerDiedError, a
    job that can't be run with SparkJobError. Needs a classic session. Spark Connect is refused. (Reactor, RxJava:
    none.)

    >>> from reactive_aio import Flow, schedulers
    >>> def on_spark(session):
    ...     return Flow.range(3).publish_on(schedulers.spark(session, slots=2)).map(str)
    """
    from ..spark._resident.scheduler import workers

    return workers(session, slots, idle, context)
