"""The code in Spark's Python workers: the fused region over a partition, and the push of its results."""

from __future__ import annotations

import pickle
import select
import socket
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from attrs import define, field, frozen

from ..._core import budgets
from ..._core.guard import FAILURES, close_all
from ..._fusion import OVER, InputBroken, Placed, RegionRun, Stage
from ..._remote.columns import restored
from ..._remote.frames import CHUNK, CLEANUP, CREDIT, STOP, Decoder, Frame
from ..._remote.variables import Values, reset, set_values
from ...hooks import also_failed, drop_error
from .connecting import Address, connect
from .failures import not_unpickled, pack
from .outlet import LARGEST_CHUNK, Outlet
from .slices import Chunk, RowSlice, Slices
from .sparing import rare_collections, read_on
from .watch import Watch

if TYPE_CHECKING:
    import pyarrow as pa

    from .rows import Reading

SLICE: Final = 2e-3
"""Seconds after which a pass returns, so that results are sent and orders are read."""

Input = TypeVar("Input")
Stages = tuple[Placed[Stage[Any, Any]], ...]


@frozen
class PartitionTask(ABC):
    """The work of each task of a job, however its elements travel; goes to the workers."""

    source: str
    """The source in words, for error notes."""
    stages: bytes = field(repr=False)
    """With the values of context variables; pickled apart: what can't be unpickled in a worker then is a failure like any other."""
    reading: Reading | None = None
    sliced: bool = False
    """Whether rows are made on the loop, of slices of the batches."""

    schema: ClassVar[str]
    """The schema of what comes out of a task over a DataFrame."""

    @abstractmethod
    def over_items(self, _: int, items: Iterable[Any]) -> Iterator[Any]:
        """Run over a partition of an RDD."""

    @abstractmethod
    def over_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run over a partition of a DataFrame."""

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Any] | Slices:
        """Turn the batches of a partition into elements, or into slices that these are made of."""
        assert self.reading is not None
        read = map(self.reading.unpacked, watched(batches))
        if self.sliced:
            return Slices(map(partial(RowSlice, self.reading), read))
        return chain.from_iterable(map(self.reading.elements, read))

    def part(self, partition: int) -> str:
        """Name what a task reads."""
        return f"partition {partition}"

    def chunks(self, items: Iterator[Any] | Slices, outlet: Outlet) -> Iterator[None]:
        """Run over a partition, with a pause after each sent chunk."""
        where = f"{self.part(outlet.partition)} of {self.source}"
        if self.reading is not None and self.reading.large:
            outlet.largest = 1
        try:
            sent: tuple[Stages, Values] = pickle.loads(self.stages)
            run = RegionRun(sent[0], where, counted=False)
            tokens = set_values(sent[1])
        except FAILURES as error:  # importing a module runs its code
            outlet.fail(pack(error, where, lambda error: not_unpickled(error, "the region")))
            return
        try:
            with rare_collections():
                if isinstance(items, Slices):
                    yield from SlicedRun(run, items, outlet, where).chunks()
                else:
                    yield from PartitionRun(run, items, outlet, where).chunks()
        except InputFailed as failed:
            outlet.fail(failed.packed)
        except InputLost as lost:
            raise lost.error from None
        finally:
            reset(tokens)  # the worker may be used again


@frozen
class RegionTask(PartitionTask):
    """A task that pushes its elements to the event loop."""

    address: Address = field(kw_only=True)
    groups: tuple[range, ...] = field(default=(), kw_only=True)
    """The partitions that each task reads, where it reads several; the first one stands for all."""

    schema = "ends long"  # nothing, for the elements take another way

    def part(self, partition: int) -> str:
        """Name what a task reads, by its first partition."""
        several = [group for group in self.groups if group.start == partition and len(group) > 1]
        return f"partitions {partition} to {several[0][-1]}" if several else super().part(partition)

    def over_items(self, _: int, items: Iterable[Any]) -> Iterator[int]:
        """Run over a partition of an RDD."""
        left = iter(items)  # PySpark hands over any iterable
        self._run(left)
        read_on(left)
        return iter(())

    def over_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run over a partition of a DataFrame."""
        self._run(self.rows(batches))
        read_on(batches)
        return iter(())

    def over_streams(self, _: int, streams: Iterable[bytes]) -> Iterator[int]:
        """Run over a partition of a DataFrame, whose batches each come as a stream of Arrow."""
        left = iter(streams)
        self._run(self._rows_of(left))
        read_on(left)
        return iter(())

    def _rows_of(self, streams: Iterator[bytes]) -> Iterator[Any] | Slices:
        """Turn streams, each of a batch, into elements or slices. A slice that is a whole batch travels as the stream that is there."""
        reading = self.reading
        assert reading is not None
        if not self.sliced or reading.zone is not None:
            return self.rows(map(partial(restored, False), streams))
        return Slices(watched(map(partial(RowSlice.whole, reading), streams)))

    def _run(self, items: Iterator[Any] | Slices) -> None:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        number = task.partitionId()
        push = Push.to(self.address, self.groups[number].start if self.groups else number, task.attemptNumber())
        try:
            for _ in self.chunks(items, push):
                pass
        finally:
            push.close()


class InputLost(InputBroken):
    """Spark failed to read what a region is fed with; no affair of the region."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class InputFailed(InputBroken):
    """A failure that what a region is fed with has packed already, and that is passed on as it is."""

    def __init__(self, packed: bytes) -> None:
        super().__init__(packed)
        self.packed = packed


def watched(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the rows. Mark failures of Spark's own reading, which it should retry, not those of user functions."""
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except Exception as error:  # no function of the user's runs in there
            raise InputLost(error) from error
        yield batch


@define(eq=False)
class PartitionWork(ABC, Generic[Input]):
    """The work on one partition, as far and as fast as elements are granted."""

    run: RegionRun
    items: Input
    push: Outlet
    where: str
    _over: bool = field(init=False, default=False)

    def to_end(self) -> None:
        """Push everything, up to the end, the first failure, or a stop."""
        for _ in self.chunks():
            pass

    def chunks(self) -> Iterator[None]:
        """Do the same, with a pause after each chunk. The region lets go of what it holds before the end is sent."""
        try:
            failures = yield from self._pushed()
        except BaseException:
            for error in close_all((self.run.close,)):
                drop_error(error)  # nobody reads any more, or Spark tries again
            raise
        closing = close_all((self.run.close,))
        if failures:
            for error in (*failures[1:], *closing):
                also_failed(failures[0], error)
            self.push.fail(pack(failures[0], self.where))
            return
        for error in closing:
            self.push.cleanup_failed(pack(error, self.where))
        if not self.push.stopped:
            self.push.end(self.run.place - self.push.place, decided=self.run.done)

    def _pushed(self) -> Generator[None, None, list[BaseException]]:
        """Push until it is over, and return its failures."""
        push = self.push
        push.hear()  # which also says where to begin
        self.run.place = push.place
        while not self._over:
            push.hear()
            if push.stopped:
                return []
            items, failure = self._step(min(push.skip or push.granted, LARGEST_CHUNK))
            failures = [] if failure is None else [failure]
            if push.skip:
                push.skip -= len(items)
            elif len(items):
                if (unsent := push.send(items)) is not None:
                    failures.insert(0, unsent)
                yield
            if failures:
                for error in failures:
                    self.run.locate(error)
                return failures
        return []

    @abstractmethod
    def _step(self, wanted: int) -> tuple[Chunk, BaseException | None]:
        """Return some elements, at most as many as are wanted, and the failure after them."""


@define(eq=False)
class PartitionRun(PartitionWork[Iterator[Any]]):
    """One region over one partition."""

    def _step(self, wanted: int) -> tuple[list[Any], BaseException | None]:
        """Run one pass, or the next part of it. Return the results, and the failure after them."""
        items: list[Any] = []
        try:
            self.run.fill(items, self.items, min(wanted, self.push.largest), budgets.clock() + SLICE)
        except InputBroken:
            raise
        except FAILURES as error:
            return items, error
        self._over = self.run.phase is OVER
        return items, None


@define(eq=False)
class SlicedRun(PartitionWork[Slices]):
    """The rows of one partition, which the loop makes into elements. Its region has no stages."""

    def _step(self, wanted: int) -> tuple[Chunk, BaseException | None]:
        """Cut off some rows."""
        try:
            items = self.items.take(wanted)
        except InputBroken:
            raise
        except FAILURES as error:
            return [], error
        self._over = not len(items)
        return items, None


@define(eq=False)
class Push(Outlet):
    """A task's end of the wire."""

    _socket: socket.socket
    _watch: Watch
    _decoder: Decoder = field(init=False, factory=Decoder)
    _started: bool = field(init=False, default=False)
    _began: float = field(init=False, factory=budgets.clock)
    _waited: float = field(init=False, default=0)
    """Seconds for which it has waited for orders."""

    @staticmethod
    def to(address: Address, partition: int, attempt: int) -> Push:
        """Connect."""
        connection = connect(address, partition, attempt)
        watch = Watch(connection, address)
        watch.start()
        return Push(partition, connection, watch)

    def hear(self) -> None:
        """Take the orders that have come; wait for one if nothing may be done without."""
        while not self.stopped:
            idle = not self._started or not (self.skip or (self.granted and self.room > 0))
            if not idle and not select.select([self._socket], [], [], 0)[0]:
                return
            before = budgets.clock()
            self._take(self._socket.recv(4096))
            self._waited += budgets.clock() - before

    def _take(self, data: bytes) -> None:
        if not data:
            # Spark tries again, and a later attempt goes on behind what has arrived.
            raise ConnectionError("the event loop of this task has closed the connection")
        for frame in self._decoder.feed(data):
            if frame.kind == CREDIT:
                self.granted += frame.count
                self.room += frame.detail
            elif frame.kind == CHUNK:
                self._started, self.skip, self.place = True, frame.detail, frame.place
            elif frame.kind == STOP:
                self.stopped = True

    def fail(self, packed: bytes) -> None:
        """Send the failure that ends the partition."""
        super().fail(packed)
        self._await_stop()

    def cleanup_failed(self, packed: bytes) -> None:
        """Send it: the loop listens until the connection ends."""
        self.say(Frame(CLEANUP, self.partition, pickled=packed))

    def end(self, passed: int, *, decided: bool) -> None:
        """Send the end of the elements."""
        super().end(passed, decided=decided)
        self._await_stop()

    @property
    def worked(self) -> int:
        """Microseconds for which the task was at work, and did not wait for orders."""
        return int(1e6 * (budgets.clock() - self._began - self._waited))

    def _await_stop(self) -> None:
        """Wait until all has arrived: closing a socket that has unread input may destroy its output."""
        while not self.stopped:
            self._take(self._socket.recv(4096))

    def say(self, frame: Frame) -> None:
        """Send a frame."""
        for piece in frame.encoded():
            self._socket.sendall(piece)

    def close(self) -> None:
        """Hang up."""
        self._watch.stop()
        self._socket.close()
