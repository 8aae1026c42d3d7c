"""The code in Spark's Python workers behind a frame: the fused region over a partition, from batches to batches."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from ..._core.guard import FAILURES, brief, close_all
from ..._core.notes import add_note, notes_of, set_notes
from ..._fusion import OVER, Placed, RegionRun, Stage
from ..._remote.failures import unpack
from ..._remote.variables import Values, reset, set_values
from ...errors import RemoteError
from ...hooks import also_failed, drop_error
from .._task.failures import not_unpickled, pack
from .._task.pickling import dumps_by_value
from .._task.rows import Reading
from .._task.sealing import own_secret, sealed
from .._task.sparing import rare_collections
from .._task.worker import InputFailed, InputLost, watched
from .batches import MISPLACED, are_batches, has_batches, with_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from ..sink._columns import Columns

STRETCH: Final = 1024
"""Elements between two looks at how much there is, where no element is large."""
SMALL: Final = 64
"""Elements of the first batch, because their size is unknown."""
GROWTH: Final = 4
"""How much larger than the batch before it a batch is at most."""
MOST: Final = 10_000
"""Elements of a batch, as many as Spark puts into one."""
HEAVY: Final = 1 << 24
"""Bytes of rows after which a batch is sent, however few its elements are."""

LIST: Final = "list binary"
"""The schema of the results of `lists_of`."""

Sent = tuple[tuple[Placed[Stage[Any, Any]], ...], Values]


@frozen
class FrameTask:
    """The work of each task; goes to the workers."""

    source: str
    """The source in words, for error notes."""
    stages: bytes = field(repr=False)
    """With the values of context variables; pickled apart: what can't be unpickled in a worker then is a failure like any other."""
    secret: bytes = field(factory=own_secret, repr=False, kw_only=True)
    """Seals failures, so that the driver can tell that they are of its own tasks."""

    @property
    def here(self) -> str:
        """The place of the task that runs here, in words."""
        from pyspark import TaskContext

        task = TaskContext.get()
        return self.source if task is None else f"partition {task.partitionId()} of {self.source}"

    def of_rows(self, reading: Reading, weighed: Weighed) -> Iterator[list[Any]]:
        """Run over a partition of a frame, and yield the results in lists."""
        return self._lists(chain.from_iterable(map(reading.elements, map(reading.unpacked, weighed))), weighed)

    def of_items(self, items: Iterable[Any], weighed: Weighed) -> Iterator[list[Any]]:
        """Run over a partition of an RDD, and yield the results in lists."""
        return self._lists(watched(iter(items)), weighed)

    def _lists(self, items: Iterator[Any], weighed: Weighed) -> Iterator[list[Any]]:
        try:
            yield from self._run(items, weighed)
        except InputLost as lost:
            raise lost.error from None
        except InputFailed as failed:
            raise self.tellable(unpack(failed.packed), failed.packed) from None

    def tellable(self, error: BaseException, packed: bytes | None = None) -> BaseException:
        """Return an exception that Spark can show. Its last note holds the exception itself, if that can be had."""
        line = sealed(pack(error, self.here) if packed is None else packed, self.secret)
        told = showable(error)
        if line is not None:
            add_note(told, line)
        return told

    def _run(self, items: Iterator[Any], weighed: Weighed) -> Iterator[list[Any]]:
        where = self.here
        try:
            sent: Sent = pickle.loads(self.stages)
            run = RegionRun(sent[0], where, counted=False)
            tokens = set_values(sent[1])
        except FAILURES as error:  # importing a module runs its code
            not_unpickled(error, f"the region of {where}")
            raise self.tellable(error) from None
        try:
            with rare_collections():
                yield from Region(run, items, weighed, self.tellable).lists()
        finally:
            reset(tokens)  # the worker may be used again


@define
class Weighed:
    """The batches of a partition, the bytes that have been read since the last call, and the size of what is made of them."""

    batches: Iterator[pa.RecordBatch]
    stretch: int = STRETCH
    """Elements that are made between two looks at how much has been read."""
    most: int = field(init=False, default=SMALL)
    """Elements that make a batch of no more bytes than go out at a time, if they are like those before."""
    _read: int = field(init=False, default=0)

    @staticmethod
    def of(reading: Reading, batches: Iterator[pa.RecordBatch]) -> Weighed:
        """Weigh the batches of a frame."""
        return Weighed(batches, 1 if reading.large else STRETCH)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in watched(self.batches):
            self._read += batch.nbytes
            yield batch

    def taken(self) -> bool:
        """Return whether it is time for a batch to go out."""
        heavy = self._read >= HEAVY
        if heavy:
            self._read = 0
        return heavy

    def made(self, count: int, size: int) -> None:
        """Learn from elements and their bytes how many go into a batch. It grows by steps, and shrinks at once."""
        fitting = HEAVY * count // max(1, size)
        self.most = max(1, min(fitting, GROWTH * self.most, MOST))


@define(eq=False)
class Region:
    """One region over one partition, as fast as Spark takes the results."""

    run: RegionRun
    items: Iterator[Any]
    weighed: Weighed
    tellable: Callable[[BaseException], BaseException]

    def lists(self) -> Iterator[list[Any]]:
        """Yield all elements. The region lets go of what it holds before the end."""
        failure: BaseException | None = None
        try:
            while failure is None and self.run.phase is not OVER:
                items, failure = self._next()
                if items and failure is None:  # what comes before a failure is of no use: the task fails as a whole
                    yield items
                del items  # before the next ones are made: the processor's caches have no room for both
        except BaseException:
            for error in close_all((self.run.close,)):
                drop_error(error)  # nobody reads any more, or Spark has failed to read
            raise
        failures = [*([] if failure is None else [failure]), *close_all((self.run.close,))]
        for error in failures[1:]:
            also_failed(failures[0], error)
        if failures:
            raise self.tellable(failures[0]) from None

    def _next(self) -> tuple[list[Any], BaseException | None]:
        """Return the next list, and the failure that ends the partition, with a note of where it was."""
        items: list[Any] = []
        run = self.run
        try:
            most, stretch = self.weighed.most, self.weighed.stretch
            while run.phase is not OVER and len(items) < most and not self.weighed.taken():
                run.fill(items, self.items, min(stretch, most - len(items)), inf)
        except (InputLost, InputFailed):
            raise
        except FAILURES as error:
            run.locate(error)
            return items, error
        return items, None


def showable(error: BaseException) -> BaseException:
    """Return an exception that Spark can show with type, message and notes: another one if it can't show this one."""
    try:
        error.__traceback__ = error.__traceback__  # as Spark's worker sets it; classes may let nothing be set
        shown = traceback.TracebackException(type(error), error, error.__traceback__, compact=True).format()
        "".join(shown).encode()
    except FAILURES:  # whatever a class does when it is looked at: Python asks whether it is true
        told = RemoteError(encodable(brief(error)))
        set_notes(told, [encodable(note) for note in notes_of(error)])
        return told
    return error


def encodable(text: str) -> str:
    """Return a text with escapes for what has no bytes in UTF-8. Spark's worker would hang on it."""
    return text.encode("utf-8", "backslashreplace").decode()


def columns_of(task: FrameTask, reading: Reading, columns: Columns, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Run over a partition of a frame, and yield batches with the columns of the schema."""
    weighed = Weighed.of(reading, batches)
    return _batches(task, columns, task.of_rows(reading, weighed), weighed, in_batches=reading.large)


def batches_of(task: FrameTask, columns: Columns, items: Iterable[Any]) -> Iterator[tuple[bytes]]:
    """Run over a partition of an RDD, and yield rows of one column. Each holds a batch."""
    weighed = Weighed(iter(()))
    for batch in _batches(task, columns, task.of_items(items, weighed), weighed):
        yield packed(batch)


def packed(batch: Any) -> tuple[bytes]:
    """Return a row that holds a batch or a table of Arrow, for `unpacked`."""
    import pyarrow as pa

    arrow: Any = pa  # whose stubs know streams by halves
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, batch.schema) as stream:
        stream.write(batch)
    return (sink.getvalue().to_pybytes(),)


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the batches that rows hold."""
    import pyarrow as pa

    arrow: Any = pa
    packed: Iterator[Any] = batches
    for batch in packed:
        for each in batch.column(0):
            with arrow.ipc.open_stream(each.as_buffer()) as stream:
                yield from stream


def _batches(
    task: FrameTask, columns: Columns, lists: Iterator[list[Any]], weighed: Weighed, *, in_batches: bool = False
) -> Iterator[Any]:
    first = 0
    for items in lists:
        as_they_are = in_batches and are_batches(items)
        try:
            batches = (
                [*with_columns(columns.schema, items, first)]
                if as_they_are
                else columns.table(items, first).to_batches()
            )
        except FAILURES as error:  # what belongs to an element may run the user's code
            if not as_they_are and has_batches(items):
                add_note(error, MISPLACED)
            add_note(error, f"while the elements of {task.here} were converted to columns")
            raise task.tellable(error) from None
        first += len(items)
        weighed.made(len(items), sum(batch.nbytes for batch in batches))
        del items  # before the next ones are made
        yield from batches
        del batches


def lists_of(task: FrameTask, reading: Reading, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Run over a partition of a frame, and yield rows of one column. Each holds a pickled list."""
    import pyarrow as pa

    arrow: Any = pa
    weighed = Weighed.of(reading, batches)
    for items in task.of_rows(reading, weighed):
        try:
            pickled = dumps_by_value(items)
        except FAILURES as error:  # whatever a class does when it is pickled
            add_note(error, f"while the elements of {task.here} were pickled")
            raise task.tellable(error) from None
        weighed.made(len(items), len(pickled))
        del items
        yield arrow.RecordBatch.from_arrays([arrow.array([pickled], arrow.binary())], ["list"])


def unpickled(row: Any) -> Iterable[Any]:
    """Return the elements of a row."""
    items: list[Any] = pickle.loads(row[0])
    return items


def elements_of(task: FrameTask, items: Iterable[Any]) -> Iterator[Any]:
    """Run over a partition of an RDD, and yield the results."""
    return chain.from_iterable(task.of_items(items, Weighed(iter(()))))
