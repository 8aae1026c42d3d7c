"""The frames of the credit boundary: what a region that is not in this process and its event loop say to each other.

No input or output happens here, so the protocol can be tested, and written again, without either.

::

    loop -> worker   REGION   the function and the context of the region
                     CHUNK    number, results that may be given, place in the input, results to leave out; list of elements
                     CREDIT   number, further results that may be given
                     STOP     nothing more is wanted

    worker -> loop   READY    0, chunks that it may hold
                     PART     number, count, elements worked on, nanoseconds; list of results
                     LAST     the same, and the chunk is over
                     FAILED   number, 0, elements worked on; the packed exception, and the chunk is over
                     BEAT     it is alive
                     CLEANUP  number; the packed exception of a chunk that could not let go of what it held

    either           FREE     number: a place in the memory that both sides have, where something has been read

Every frame is a head of fixed size, the sizes of its buffers, its pickle, and the buffers. Buffers are the large pieces
of memory that the pickle refers to (PEP 574). They are sent from where they are and received into memory of their own.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

from attrs import define

HEAD: Final = struct.Struct("!BQQQQQI")
"""Kind, number, count, place, detail, length of the pickle, count of the buffers."""
SIZE: Final = struct.Struct("!Q")

REGION: Final = 1
CHUNK: Final = 2
CREDIT: Final = 3
PART: Final = 4
LAST: Final = 5
FAILED: Final = 6
READY: Final = 7
BEAT: Final = 8
STOP: Final = 9
CLEANUP: Final = 10
FREE: Final = 11

SHARED: Final = 0x80
"""Added to the kind of a frame whose pickle and buffers are in the memory that both sides have."""

LARGE_PICKLE: Final = 65_536
"""Bytes of a pickle that are not copied to go out in one piece with what stands before them."""


@define
class Frame:
    """A message in one piece. The meaning of the numbers depends on its kind."""

    kind: int
    number: int = 0
    """Of the chunk that it is about."""
    count: int = 0
    """Of the results that it carries or allows for."""
    place: int = 0
    detail: int = 0
    pickled: bytes | bytearray = b""
    buffers: Sequence[pickle.PickleBuffer | bytearray] = ()
    more: Sequence[bytes] = ()
    """The rest of a pickle that is sent in several pieces. It arrives in one."""

    def loads(self) -> Any:
        """Unpickle what it carries."""
        return pickle.loads(self.pickled, buffers=self.buffers)

    @property
    def is_small(self) -> bool:
        """Whether it is one piece of memory that may be copied."""
        return not (self.buffers or self.more) and len(self.pickled) < LARGE_PICKLE

    def whole(self) -> bytes:
        """Return the bytes of a small frame."""
        pickled = self.pickled
        return HEAD.pack(self.kind, self.number, self.count, self.place, self.detail, len(pickled), 0) + pickled

    def views(self) -> list[memoryview]:
        """Return the memory of its buffers."""
        return [each.raw() if isinstance(each, pickle.PickleBuffer) else memoryview(each) for each in self.buffers]

    def length(self) -> int:
        """Count the bytes of its pickle."""
        length = len(self.pickled)
        return length + sum(map(len, self.more)) if self.more else length

    @property
    def size(self) -> int:
        """Count the bytes of what it carries."""
        size = self.length()
        for each in self.buffers:
            size += len(each) if isinstance(each, bytearray) else each.raw().nbytes
        return size

    def encoded(self) -> Iterator[memoryview]:
        """Yield the pieces of memory to send, in order. None is empty."""
        if self.is_small:
            yield memoryview(self.whole())
            return
        views = self.views()
        head = bytearray(
            HEAD.pack(self.kind, self.number, self.count, self.place, self.detail, self.length(), len(views))
        )
        for view in views:
            head += SIZE.pack(view.nbytes)
        if len(self.pickled) < LARGE_PICKLE:
            yield memoryview(head + self.pickled)
        else:
            yield memoryview(head)
            yield memoryview(self.pickled)
        yield from (memoryview(each) for each in self.more)
        yield from (view for view in views if view.nbytes)


class Decoder:
    """Turns what arrives into frames: fill `room`, and say by `filled` how far."""

    def __init__(self) -> None:
        self._target = memoryview(b"")
        self._at = 0
        self._heading = True
        """Whether it is the head of a frame that comes next."""
        self._frames = self._read()
        next(self._frames)

    @property
    def room(self) -> memoryview:
        """The memory that waits for what comes next; never empty."""
        return self._target[self._at :]

    def filled(self, count: int) -> Frame | None:
        """Note ``count`` more bytes in the room, and return the frame that they complete."""
        self._at += count
        return next(self._frames) if self._at == len(self._target) else None

    def feed(self, data: bytes | memoryview) -> Iterator[Frame]:
        """Take bytes that the caller has received, and return the frames that they complete."""
        left = memoryview(data)
        while left:
            if self._between and (frame := _whole(left)) is not None:
                left = left[HEAD.size + len(frame.pickled) :]
                yield frame
                continue
            room = self.room
            count = min(len(room), len(left))
            room[:count] = left[:count]
            left = left[count:]
            if (done := self.filled(count)) is not None:
                yield done

    @property
    def _between(self) -> bool:
        """Whether nothing of the next frame has come."""
        return self._heading and not self._at

    def _read(self) -> Iterator[Frame | None]:
        """Set ``_target`` for the next read, and yield each complete frame."""
        done: Frame | None = None
        while True:
            head = self._want(HEAD.size)
            self._heading = True
            yield done
            self._heading = False
            kind, number, count, place, detail, length, pieces = HEAD.unpack(head)
            sizes = self._want(SIZE.size * pieces)
            if pieces:
                yield None
            pickled = self._want(length)
            if length:
                yield None
            buffers: list[bytearray] = []
            for (size,) in SIZE.iter_unpack(sizes):
                buffers.append(self._want(size))
                if size:
                    yield None
            done = Frame(kind, number, count, place, detail, pickled, buffers)

    def _want(self, size: int) -> bytearray:
        memory = bytearray(size)
        self._target, self._at = memoryview(memory), 0
        return memory


def _whole(data: memoryview) -> Frame | None:
    """Read at once a whole frame without buffers, as most are. Return None for another one."""
    if len(data) < HEAD.size:
        return None
    kind, number, count, place, detail, length, pieces = HEAD.unpack_from(data)
    end = HEAD.size + length
    if pieces or end > len(data):
        return None
    return Frame(kind, number, count, place, detail, bytes(data[HEAD.size : end]))
