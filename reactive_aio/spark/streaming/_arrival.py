"""A micro-batch that Spark's tasks are writing to the event loop: their connections, the credits, the flow of the rows.

It runs on the event loop of its inbox, even if the rows are read on another loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attrs import define, field, frozen

from ..._core.containers import new_deque, new_dict, new_set
from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._plan import Inlet, Pushed
from ..._remote.frames import BEAT as ALIVE
from ..._remote.frames import CHUNK, CREDIT, FAILED, LAST, PART, READY, STOP, Frame
from ...errors import SourceConsumedError, SparkJobError
from ...spec import Subscription, add_demand
from .._task.rows import Reading
from ._arrow import from_arrow
from ._hearing import BEAT, Hear
from ._inboxwire import Delivery
from ._microbatch import Consumable, Handover

if TYPE_CHECKING:
    from ..._flow.flow import Flow

T = TypeVar("T")

# `Any` stands for the rows.

PIECE: Final = 1024
"""Rows that are granted to a task at a time. They become elements in one go, which must not hold up the loop."""


@define(eq=False)
class Writing:
    """The connection of a task."""

    partition: int
    writer: asyncio.StreamWriter
    wanted: int = field(init=False, default=0)
    """Rows that it has and may not send yet."""
    granted: int = field(init=False, default=0)

    def say(self, said: Frame) -> None:
        """Send a frame."""
        if not self.writer.is_closing():
            self.writer.writelines(said.encoded())


@define(eq=False)
class Arrival:
    """One delivery of a micro-batch."""

    delivery: Delivery
    reading: Reading
    post: Callable[[Callable[[Any], None], Any], None]
    """Calls something on the event loop of the inbox, from any thread."""
    patience: float = inf
    """Seconds without any task after which the query counts as gone."""
    handover: Handover = field(init=False)
    offered: bool = field(init=False, default=False)
    """Whether the subscriber has got it."""
    decided: asyncio.Event = field(init=False, factory=asyncio.Event)
    why: str = field(init=False, default="the flow that the stream is written to has ended")
    """The text for Spark if it is refused."""
    _arrived: dict[int, int] = field(init=False, factory=new_dict)
    """The rows of each partition that have arrived. A later attempt of its task goes on after them."""
    _turns: dict[int, asyncio.Lock] = field(init=False, factory=new_dict)
    """For each partition the attempts that wait until the one before is lost or not. Spark bounds them."""
    _lines: set[Writing] = field(init=False, factory=new_set)
    _alone: asyncio.TimerHandle | None = field(init=False, default=None)
    """The timer for the time without any task."""
    _waiting: deque[Writing] = field(init=False, factory=new_deque)
    """Tasks that have rows to send, in the order of their turns."""
    _free: int = field(init=False, default=0)
    """Rows that were requested and not granted to a task."""
    _inlet: Inlet[Any] | None = field(init=False, default=None)
    _opened: bool = field(init=False, default=False)
    _end: tuple[BaseException | None] | None = field(init=False, default=None)
    """The end of the rows."""

    def hand_over(self, failed: Callable[[BaseException], None]) -> Handover:
        """Return the handover, which is settled when the subscriber has decided."""
        self.handover = Handover(failed, lambda accepted: self.post(self._told, accepted))
        return self.handover

    @property
    def live(self) -> bool:
        """Whether a task writes it now."""
        return bool(self._lines) and not self.decided.is_set()

    # -- the flow of its rows; on the loop of the reader

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read, for the first time and the last."""
        if self._opened:
            raise SourceConsumedError(
                f"the rows of micro-batch {self.delivery.batch} were subscribed to a second time, but an inbox receives "
                "them only once. Collect them in a list, or read the batches with Flow.from_spark(frame, checkpoint=...)"
            )
        self._opened = True
        self.post(self._read_by, inlet)
        return RowsSubscription(self)

    # -- on the loop of the inbox

    def _read_by(self, inlet: Inlet[Any]) -> None:
        self._inlet = inlet
        if self._end is not None:
            self._signal_end(*self._end)

    def requested(self, n: int) -> None:
        """Let the tasks send more."""
        self._free = add_demand(self._free, n)
        self._grant()

    def cancelled(self, _: None) -> None:
        """Deliver no more. The tasks wait for the end of the batch."""
        self._inlet = None
        self._free = 0
        self._waiting.clear()

    def _grant(self) -> None:
        while self._free and self._waiting:
            line = self._waiting.popleft()
            count = min(self._free, line.wanted, PIECE)
            self._free -= count
            line.wanted -= count
            line.granted += count
            line.say(Frame(CREDIT, self.delivery.batch, count))
            if line.wanted:
                self._waiting.append(line)

    # -- the tasks

    async def write(self, line: Writing, hear: Hear) -> None:
        """Talk to a task, when no earlier attempt is running. A lost connection raises an exception."""
        if self.decided.is_set():
            line.say(self._word)
            return
        self._lines.add(line)
        self._be_patient_no_more()
        try:
            async with self._turns.setdefault(line.partition, asyncio.Lock()):
                if self.decided.is_set():
                    return  # it has been told
                line.say(Frame(CHUNK, self.delivery.batch, detail=self._arrived.setdefault(line.partition, 0)))
                while self._heard(line, await hear()):
                    pass
        finally:
            self._forget(line)

    def _heard(self, line: Writing, said: Frame) -> bool:
        """Handle a message of a task. Return False at its end, which counts when Spark has confirmed it."""
        if said.kind == ALIVE:
            return True
        if said.kind == READY:
            line.wanted += said.count
            self._waiting.append(line)
            self._grant()
        elif said.kind == PART and said.count <= line.granted:
            line.granted -= said.count
            self._arrived[line.partition] += said.count
            self._deliver(said.pickled)
        elif said.kind == LAST:
            line.say(Frame(STOP, self.delivery.batch))
            return False
        else:
            raise ConnectionError("a task has sent a frame that nobody requested")
        return True

    def _deliver(self, data: bytes | bytearray) -> None:
        if self._inlet is None:
            return
        items: list[Any] = []
        error: BaseException | None = None
        try:
            for batch in from_arrow(data):
                columns = self.reading.columns
                items.extend(self.reading.elements(batch if columns is None else batch.select(columns)))
        except FAILURES as failure:  # a class of the user's makes the elements
            add_note(failure, f"while a row of micro-batch {self.delivery.batch} was converted to an element")
            error = failure
        if items:
            self._inlet.post(self._inlet.on_chunk, items)
        if error is not None:
            self._finish(error)

    def _forget(self, line: Writing) -> None:
        """Grant the unused credits of a task to others."""
        self._lines.discard(line)
        with suppress(ValueError):
            self._waiting.remove(line)
        self._free += line.granted
        self._grant()
        if not self._lines and self.patience < inf and not self.decided.is_set():
            self._wait_for_a_task(0.0)

    def _wait_for_a_task(self, waited: float) -> None:
        """Give up on the query in time, counted in turns of this loop, which may have been held up itself."""
        if self._end is not None:
            return
        if waited >= self.patience:
            self.give_up(
                SparkJobError(
                    f"no task of query {self.delivery.query} has been connected for {self.patience:g} seconds, in "
                    f"micro-batch {self.delivery.batch}. The query has ended or can't be reached. To wait longer, raise inbox(patience=...)"
                )
            )
        else:
            step = min(BEAT, self.patience - waited)
            self._alone = asyncio.get_running_loop().call_later(step, self._wait_for_a_task, waited + step)

    def _be_patient_no_more(self) -> None:
        if self._alone is not None:
            self._alone.cancel()
            self._alone = None

    # -- the end

    def confirmed(self, rows: dict[str, int | None]) -> None:
        """Note that all tasks have succeeded: these were all rows, if none was lost or made twice."""
        for partition, count in rows.items():
            arrived = self._arrived.get(int(partition), 0)
            if count is not None and count != arrived:
                self.give_up(
                    SparkJobError(
                        f"partition {partition} of micro-batch {self.delivery.batch} was computed again, with {count} rows, "
                        f"after {arrived} had arrived. A query that writes to an inbox must give the same rows each time"
                    )
                )
                return
        self._finish(None)

    def give_up(self, error: Exception) -> None:
        """End it by an error, and refuse it."""
        self.why = str(error)
        self.handover.settle(accepted=False)
        self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        if self._end is None:
            self._end = (error,)
            if self._inlet is not None:
                self._signal_end(error)

    def _signal_end(self, error: BaseException | None) -> None:
        inlet, self._inlet = self._inlet, None
        if inlet is None:
            return
        if error is None:
            inlet.post(lambda _: inlet.on_complete(), None)
        else:
            inlet.post(inlet.on_error, error)

    @property
    def _word(self) -> Frame:
        """The answer to tasks after the decision: unread rows are not needed, or the task fails."""
        if self.handover.accepted:
            return Frame(STOP, self.delivery.batch)
        return Frame(FAILED, self.delivery.batch, pickled=self.why.encode())

    def _told(self, _: bool) -> None:
        self.decided.set()
        self._be_patient_no_more()
        for line in self._lines:
            line.say(self._word)


@frozen(eq=False)
class RowsSubscription:
    """The Subscription of the region that reads the rows."""

    arrival: Arrival

    def request(self, n: int) -> None:
        """Let the tasks send more."""
        self.arrival.post(self.arrival.requested, n)

    def cancel(self) -> None:
        """Take no more rows. The batch waits for its acknowledgement all the same."""
        self.arrival.post(self.arrival.cancelled, None)


@frozen(eq=False)
class WrittenRows(Pushed[Any]):
    """The source of the rows."""

    arrival: Arrival
    prefetch: int | None

    def __str__(self) -> str:
        return f"the rows of micro-batch {self.arrival.delivery.batch}, written by Spark"

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read."""
        return self.arrival.open(inlet)


@define(eq=False)
class WrittenBatch(Consumable[T]):
    """A micro-batch that Spark writes, delivered *at least once*, with the same ``id`` each time.

    Its tasks push the rows as they are requested. Spark records it in the checkpoint when they have ended and it has
    been acknowledged, as by ``async with``. Then Spark makes the next one. If it is acknowledged before its rows have
    been read, the tasks compute the other rows without sending them.
    """

    _arrival: Arrival = field(repr=False)
    _prefetch: int = field(repr=False)

    @property
    def rows(self) -> Flow[T]:
        """The rows as a flow, to be read once. Partitions come as they arrive, each in its order.

        It completes when Spark has confirmed all tasks. Errors: SparkJobError if Spark gives the batch up. The batch
        comes again if the query begins again.
        """
        from ..._flow.flow import flow_of

        rows: Flow[T] = flow_of(WrittenRows(self._arrival, self._prefetch))
        return rows
