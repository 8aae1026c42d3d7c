"""Rows that are made on the loop, of slices of Arrow batches, where the workers have nothing to do with them.

The worker then has neither to make a row nor to pickle it, which is most of what a row costs it. To the loop it is about
the same whether it makes a row of flat columns or unpickles one. Nested values are turned into Python's one by one,
which takes longer than to unpickle them, so the workers make rows that have some. They also make the objects of
classes, and some of these run code of the user's.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import islice
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._remote.columns import restored, stream_of
from ..._remote.partial import MadeInPart
from ..._remote.pickling import LARGE, Parcel
from .fitting import ARRIVES_AS
from .rows import WIDE, Reading

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# `Any` stands for values of all types there are, and for Arrow, whose stubs know it by halves.

FEW: Final = 256
"""Rows below which a slice, which costs something for itself, is dearer than the rows, made and pickled."""
MOST_VALUES: Final = 16_384
"""Values in a slice, which are made on the loop at a stretch: half a millisecond, or a few where all are decimals."""
MOST_BYTES: Final = 1_048_576


@frozen
class RowSlice:
    """Some rows of a batch; pickled it is the call that makes them."""

    reading: Reading
    batch: Any
    stream: bytes | None = None
    """The stream that the batch came as, where these are all of its rows. It travels as it is."""

    @staticmethod
    def whole(reading: Reading, stream: bytes) -> RowSlice:
        """Return all rows of a stream.

        A session may have Spark compress its streams. The loop bounds the bytes that arrive, so it gets such rows uncompressed.
        """
        batch = restored(False, stream)
        return RowSlice(reading, batch, stream if len(stream) >= batch.nbytes else None)

    @property
    def size(self) -> int:
        """Count the bytes of the rows. The stream is about as large, and Arrow takes a while to add up the columns."""
        count: int = self.batch.nbytes if self.stream is None else len(self.stream)
        return count

    def cut(self, count: int) -> tuple[RowSlice, RowSlice | None]:
        """Return the first rows, and the others if there are any."""
        if count >= len(self):
            return self, None
        return RowSlice(self.reading, self.batch.slice(0, count)), RowSlice(self.reading, self.batch.slice(count))

    def __len__(self) -> int:
        count: int = self.batch.num_rows
        return count

    def __iter__(self) -> Iterator[Any]:
        return self.reading.elements(self.batch)

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (self.reading, self._sent())

    def _sent(self) -> PickleBuffer:
        return stream_of(self.batch) if self.stream is None else PickleBuffer(self.stream)

    def parcel(self) -> Parcel:
        """Return the slice as it is sent: the pickle of a call, with a small stream inside or a large one beside it."""
        stream = self._sent()
        if stream.raw().nbytes < LARGE:
            return Parcel(len(self), pickle.dumps(RowSlice(self.reading, None, bytes(stream)), 5), [], [], None)
        return Parcel(len(self), _call(self.reading), [], [stream], None)


Chunk = list[Any] | RowSlice
"""Elements that leave a worker: a list, or a slice of a batch that the other side makes into one."""


@lru_cache(maxsize=16)
def _call(reading: Reading) -> bytes:
    """Pickle the call that makes rows of a stream, without the stream. All large slices of a reading have the same."""
    streams: list[PickleBuffer] = []
    return pickle.dumps(RowSlice(reading, None, b""), 5, buffer_callback=streams.append)


def made(reading: Reading, stream: Any) -> list[Any]:
    """Make rows. Pickles refer to this by name."""
    rows: list[Any] = []
    try:
        rows.extend(reading.elements(restored(False, stream)))
    except FAILURES as error:
        add_note(error, "while rows were made of the columns that Spark has sent")
        raise MadeInPart(rows, error) from None
    return rows


def suit(reading: Reading, schema: StructType) -> bool:
    """Return whether rows are better made on the loop, if the workers have nothing to do with them."""
    import_module("pyarrow.compute")  # else the loop would have to wait for it when the first slice comes
    if type(reading) is not Reading or reading.declared is not None or len(schema.fields) > WIDE:
        return False
    return all(ARRIVES_AS.get(type(each.dataType)) not in (None, list, dict) for each in schema.fields)


def most_rows(columns: int) -> int:
    """Return how many rows a slice may have, if they are small."""
    return max(1, MOST_VALUES // max(1, columns))


@define(eq=False)
class Slices:
    """The rows of a partition, to slice on demand."""

    _batches: Iterator[RowSlice]
    _rest: RowSlice | None = field(init=False, default=None)
    """The rest of a batch that is cut."""
    _most: int = field(init=False, default=0)
    """The rows that a slice of it may have."""
    _rows: Iterator[Any] = field(init=False, factory=lambda: iter(()))
    """The rest of a few rows that have been made here."""
    _failure: BaseException | None = field(init=False, default=None)
    """The error of the next one."""

    def take(self, wanted: int) -> Chunk:
        """Return some rows: those that are wanted and there without waiting. An empty chunk is the end."""
        if self._failure is not None:
            raise self._failure
        if rows := self._made(wanted):
            return rows
        if (rest := self._rest or self._next()) is None:
            return []
        cut, self._rest = rest.cut(FEW if wanted < FEW else min(wanted, self._most))
        if wanted >= FEW:
            return cut
        self._rows = iter(cut)
        return self._made(wanted)

    def _made(self, wanted: int) -> list[Any]:
        """Make a few rows. An exception of one comes after the rows before it."""
        rows: list[Any] = []
        try:
            rows.extend(islice(self._rows, wanted))
        except FAILURES as error:
            if not rows:
                raise
            self._failure = error
        return rows

    def _next(self) -> RowSlice | None:
        for batch in self._batches:
            if rows := len(batch):
                by_size = MOST_BYTES * rows // max(1, batch.size)
                self._most = max(1, min(most_rows(batch.batch.num_columns), by_size))
                return batch
        return None
