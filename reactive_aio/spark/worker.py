"""What runs in Spark's Python workers: the fused region over a partition, and the push of what comes of it."""

from __future__ import annotations

import pickle
import select
import socket
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from ..remote.frames import CHUNK, CREDIT, FAILED, LAST, PART, STOP, Decoder, Frame
from ..segments import Placed, Region, RegionRun, Stage
from .connecting import Address, connect
from .failures import pack
from .lowering.sparing import read_on
from .pickling import dumps_by_value

if TYPE_CHECKING:
    import pyarrow as pa

    from .rows import Reading

SLICE: Final = 2e-3
"""Seconds after which a pass returns, so that what there is goes out and orders are heard."""
LARGEST_CHUNK: Final = 2048

Stages = tuple[Placed[Stage[Any, Any]], ...]


@frozen
class RegionTask:
    """The work of each task of a job; travels to the workers."""

    address: Address
    source: str
    """The source in words, for error notes."""
    stages: bytes = field(repr=False)
    """Pickled apart: what can't be unpickled in a worker then is a failure like any other."""
    reading: Reading | None = None

    def over_items(self, _: int, items: Iterable[Any]) -> Iterator[int]:
        """Run over a partition of an RDD."""
        left = iter(items)  # PySpark hands over any iterable
        self._run(left)
        read_on(left)
        return iter(())

    def over_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run over a partition of a DataFrame."""
        assert self.reading is not None
        try:
            self._run(chain.from_iterable(map(self.reading.elements, watched(batches))))
        except InputLost as lost:
            raise lost.error from None
        read_on(batches)
        return iter(())

    def _run(self, items: Iterator[Any]) -> None:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        push = Push.to(self.address, task.partitionId(), task.attemptNumber())
        try:
            where = f"partition {task.partitionId()} of {self.source}"
            try:
                stages: Stages = pickle.loads(self.stages)
                run = RegionRun(Region(where, stages, None, None), counted=False)
            except Exception as error:
                push.fail(
                    pack(error, where, lambda error: error.add_note("while the region was unpickled in a worker"))
                )
                return
            try:
                PartitionRun(run, items, push, where).to_end()
            finally:
                run.close()
        finally:
            push.close()


class InputLost(BaseException):
    """Spark failed to read what a region is fed with; no affair of the region, and past its `except Exception`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def watched(batches: Iterator[Any]) -> Iterator[Any]:
    """Tell the failures of Spark's own reading, which it should retry, from those of the user's functions."""
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except Exception as error:
            raise InputLost(error) from error
        yield batch


@define(eq=False)
class PartitionRun:
    """One region over one partition, as far and as fast as elements are granted."""

    run: RegionRun
    items: Iterator[Any]
    push: Push
    where: str
    _pass: Iterator[Any] | None = field(init=False, default=None)
    _finishing: bool = field(init=False, default=False)
    _over: bool = field(init=False, default=False)

    def to_end(self) -> None:
        """Push everything, up to the end, the first failure, or the word that nobody listens any more."""
        push = self.push
        while not self._over:
            push.hear()
            if push.stopped:
                return
            items, failure = self._step(min(push.skip or push.granted, LARGEST_CHUNK))
            if push.skip:
                push.skip -= len(items)
            elif items:
                failure = push.send(items) or failure
            if failure is not None:
                push.fail(pack(failure, self.where, self.run.locate))
                return
        push.end()

    def _step(self, wanted: int) -> tuple[list[Any], Exception | None]:
        """Run one pass, or the next part of it; give what comes of it, and the failure behind that."""
        if self._pass is None:
            self._pass = self.run.finishing() if self._finishing else self.run.over(self.items, perf_counter() + SLICE)
        else:
            self.run.pace.deadline = perf_counter() + SLICE
        items: list[Any] = []
        try:
            items.extend(islice(self._pass, wanted))
        except Exception as error:
            return items, error
        if len(items) < wanted:
            self._pass_ended()
        return items, None

    def _pass_ended(self) -> None:
        self._pass = None
        if self._finishing:
            self._over = True
        elif self.run.pace.ended or self.run.done:
            self._finishing = True


@define(eq=False)
class Push:
    """A task's end of the wire."""

    _socket: socket.socket
    _partition: int
    _decoder: Decoder = field(init=False, factory=Decoder)
    _dumps: Callable[[Any], bytes] = field(init=False)
    granted: int = field(init=False, default=0)
    skip: int = field(init=False, default=0)
    """Elements to leave out: an earlier attempt has sent them."""
    stopped: bool = field(init=False, default=False)
    _started: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._dumps = _dumps

    @staticmethod
    def to(address: Address, partition: int, attempt: int) -> Push:
        """Connect."""
        return Push(connect(address, partition, attempt), partition)

    def hear(self) -> None:
        """Take the orders that have come; wait for one if nothing may be done without."""
        while not self.stopped:
            idle = not self._started or not (self.granted or self.skip)
            if not idle and not select.select([self._socket], [], [], 0)[0]:
                return
            self._take(self._socket.recv(4096))

    def _take(self, data: bytes) -> None:
        if not data:
            # Spark tries again, and a later attempt goes on behind what has arrived.
            raise ConnectionError("the event loop that this task feeds has closed the connection")
        for frame in self._decoder.feed(data):
            if frame.kind == CREDIT:
                self.granted += frame.count
            elif frame.kind == CHUNK:
                self._started, self.skip = True, frame.detail
            elif frame.kind == STOP:
                self.stopped = True

    def send(self, items: list[Any]) -> Exception | None:
        """Send elements, no more than were granted; where one can't be pickled, those before it and the failure."""
        failure: Exception | None = None
        try:
            data = self._pickled(items)
        except Exception as error:
            items, failure = self._picklable(items), error
            failure.add_note("an element that leaves the workers has to be picklable")
            data = self._pickled(items)
        if items:
            self.granted -= len(items)
            self._say(Frame(PART, self._partition, len(items), pickled=data))
        return failure

    def _pickled(self, items: list[Any]) -> bytes:
        try:
            return self._dumps(items)
        except Exception:
            # By value, for classes that can't be imported on the other side, such as those of a script.
            self._dumps = dumps_by_value
            return self._dumps(items)

    def _picklable(self, items: list[Any]) -> list[Any]:
        """Give the elements before the first that can't be pickled."""
        for at, item in enumerate(items):
            try:
                self._pickled([item])
            except Exception:
                return items[:at]
        return items

    def fail(self, packed: bytes) -> None:
        """Send the failure that ends the partition."""
        self._say(Frame(FAILED, self._partition, pickled=packed))
        self._await_stop()

    def end(self) -> None:
        """Say that all elements have been sent."""
        self._say(Frame(LAST, self._partition))
        self._await_stop()

    def _await_stop(self) -> None:
        """Wait until all has arrived: closing a socket that has unread input may destroy its output."""
        while not self.stopped:
            self._take(self._socket.recv(4096))

    def _say(self, frame: Frame) -> None:
        for piece in frame.encoded():
            self._socket.sendall(piece)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _dumps(items: list[Any]) -> bytes:
    return pickle.dumps(items, 5)
