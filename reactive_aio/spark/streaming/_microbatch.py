"""A micro-batch of a streaming query, for the subscriber, who acknowledges it when it has been consumed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Event, Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import define, field

from ...errors import SparkJobError
from .._job.local_properties import LocalProperties
from .._source.source import FromSpark
from .._task.rows import Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..._flow.flow import Flow

T = TypeVar("T")


@define(eq=False)
class Handover:
    """The decision for which the thread of Spark's callback waits. It is settled once, from any thread."""

    failed: Callable[[BaseException], None]
    """Called, on any thread, when the subscriber has refused it."""
    decided: Callable[[bool], None] | None = None
    """Called once, on the thread that decides."""
    accepted: bool = field(init=False, default=False)
    _settled: Event = field(init=False, factory=Event)
    _lock: Lock = field(init=False, factory=Lock)

    @property
    def settled(self) -> bool:
        """Return whether the micro-batch has been decided."""
        return self._settled.is_set()

    def settle(self, *, accepted: bool) -> bool:
        """Decide, and return the decision. Only the first one counts."""
        with self._lock:
            news = not self.settled
            if news:
                self.accepted = accepted
                self._settled.set()
        if news and self.decided is not None:
            self.decided(accepted)
        return self.accepted

    def wait(self) -> bool:
        """Wait for the decision."""
        self._settled.wait()
        return self.accepted


@define(eq=False)
class Consumable(ABC, Generic[T]):
    """A batch that is delivered *at least once*, with the same ``id`` each time, until it is acknowledged."""

    id: int
    """Its number, from 0 for each checkpoint."""
    query: str
    """The id of the query, which is that of its checkpoint. With ``id`` it identifies the batch for ever."""
    _handover: Handover = field(repr=False)

    @property
    @abstractmethod
    def rows(self) -> Flow[T]:
        """The rows as a flow."""

    def acknowledge(self) -> None:
        """Acknowledge that it has been consumed, from any thread. A second call does nothing.

        Errors: SparkJobError if it is too late, because the flow has been cancelled or has ended. Then the batch comes
        again.
        """
        if not self._handover.settle(accepted=True):
            raise SparkJobError(
                f"micro-batch {self.id} can't be acknowledged any more, because the flow has ended. The batch will come again"
            )

    def fail(self, error: BaseException) -> None:
        """Refuse it, from any thread: the batch comes again, some other time.

        The query is stopped, and the flow fails with ``error`` when the next batch is requested.
        """
        if not self._handover.settled:
            self._handover.failed(error)

    async def __aenter__(self) -> Flow[T]:
        return self.rows

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.acknowledge()
        elif not isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            self.fail(error)
        else:
            left = SparkJobError(f"micro-batch {self.id} was left before it was consumed")
            left.__cause__ = error
            self.fail(left)

    def __del__(self) -> None:
        handover: Handover | None = getattr(self, "_handover", None)
        if handover is not None and not handover.settled:
            handover.failed(
                SparkJobError(
                    f"micro-batch {self.id} was dropped without an acknowledgement. Use `async with batch`, or call "
                    "`batch.acknowledge()` when you have consumed it"
                )
            )


@define(eq=False)
class MicroBatch(Consumable[T]):
    """A micro-batch of a Structured Streaming query, delivered *at least once*, with the same ``id`` each time.

    Spark waits until it is acknowledged, records it in the checkpoint, and makes the next one. A batch that has not
    been acknowledged when the flow ends comes again to the next subscriber with this checkpoint. It has the same
    number, and from a replayable source the same rows. ``async with`` acknowledges::

        async for batch in batches:
            async with batch as rows:
                await rows.for_each(store)

    A batch that is dropped unacknowledged fails the flow, which would hang otherwise.
    """

    frame: DataFrame = field(repr=False)
    """The rows as a DataFrame, for work by Spark. Use it on a thread, because it blocks."""
    _reading: Reading = field(repr=False)
    _prefetch: int = field(repr=False)
    _ordered: bool = field(repr=False)
    _properties: LocalProperties = field(repr=False)

    @property
    def rows(self) -> Flow[T]:
        """The rows as a flow, whose operators run in Spark's workers, as in ``Flow.from_spark``.

        Each subscription computes the batch anew. A batch of a stateful query has to be read to its end.
        """
        from ..._flow.flow import flow_of

        frame: Any = self.frame  # a classic one: others are refused when the flow is built
        rows: Flow[T] = flow_of(
            FromSpark(frame, self._reading, self._prefetch, self._ordered, properties=self._properties)
        )
        return rows
