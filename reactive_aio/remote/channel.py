"""The channel between a region on an event loop and a worker process: frames on a socket that blocks neither side.

::

    loop -> worker   REGION   the function, what it may give, the context      first, and only once
                     CHUNK    number, place in the input, list of elements
                     GO_ON    number of a chunk that has given what it may

    worker -> loop   PART     number, elements taken, seconds, results         more will follow
                     LAST     the same                                         the chunk is over
                     FAILED   number, elements taken, packed exception         the chunk is over

Large buffers follow the pickle that refers to them and are received into their own memory. Either side ends by hanging up.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from attrs import frozen

HEAD: Final = struct.Struct("!BIQdQI")
"""Kind, number, place or count, seconds, length of the pickle, count of the buffers."""
SIZE: Final = struct.Struct("!Q")

REGION: Final = 1
CHUNK: Final = 2
GO_ON: Final = 3
PART: Final = 4
LAST: Final = 5
FAILED: Final = 6

MOST_PIECES: Final = 64
"""Pieces of memory for one call of the system, which has a limit."""


@frozen
class Frame:
    """What is said in one piece."""

    kind: int
    number: int
    count: int
    seconds: float
    pickled: bytearray
    buffers: list[bytearray]

    def loads(self) -> Any:
        """Unpickle what it carries."""
        return pickle.loads(self.pickled, buffers=self.buffers)


class Channel:
    """One end of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.ended = False
        """Whether the other side has hung up."""
        self._out: deque[memoryview] = deque()  # bounded by what may be under way
        self._target = memoryview(bytearray(HEAD.size))
        self._filled = 0
        self._reading = self._frames()
        next(self._reading)

    def send(
        self,
        kind: int,
        number: int = 0,
        count: int = 0,
        seconds: float = 0.0,
        pickled: bytes = b"",
        buffers: Sequence[pickle.PickleBuffer] = (),
    ) -> None:
        """Send a frame, as much of it as goes out at once; `flush` sends the rest."""
        head = bytearray(HEAD.pack(kind, number, count, seconds, len(pickled), len(buffers)))
        views = [buffer.raw() for buffer in buffers]
        for view in views:
            head += SIZE.pack(view.nbytes)
        self._out.append(memoryview(head + pickled if len(pickled) < LARGE_PICKLE else head))
        if len(pickled) >= LARGE_PICKLE:
            self._out.append(memoryview(pickled))
        self._out.extend(view for view in views if view.nbytes)
        self.flush()

    @property
    def waits(self) -> bool:
        """Whether there is something to be sent when the other side has read."""
        return bool(self._out)

    def flush(self) -> None:
        """Send what goes out without blocking."""
        out = self._out
        try:
            while out:
                sent = self.socket.sendmsg(list(islice(out, MOST_PIECES)))
                while sent:
                    first = out[0]
                    if sent < len(first):
                        out[0] = first[sent:]
                        break
                    sent -= len(out.popleft())
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # The other side is gone; reading tells, behind what it has sent before.
            out.clear()

    def receive(self) -> Iterator[Frame]:
        """Give the frames that have arrived whole."""
        while not self.ended:
            while self._filled < len(self._target):
                try:
                    count = self.socket.recv_into(self._target[self._filled :])
                except (BlockingIOError, InterruptedError):
                    return
                except OSError:
                    count = 0
                if not count:
                    self.ended = True
                    return
                self._filled += count
            frame = next(self._reading)
            if frame is not None:
                yield frame

    def _frames(self) -> Iterator[Frame | None]:
        """Say what to read next, by ``_target``, and give each frame that is complete."""
        done: Frame | None = None
        while True:
            head = self._want(HEAD.size)
            yield done
            kind, number, count, seconds, length, pieces = HEAD.unpack(head)
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
            done = Frame(kind, number, count, seconds, pickled, buffers)

    def _want(self, size: int) -> bytearray:
        memory = bytearray(size)
        self._target, self._filled = memoryview(memory), 0
        return memory

    def close(self) -> None:
        """Hang up."""
        self._out.clear()
        self.socket.close()


LARGE_PICKLE: Final = 65_536
"""Bytes of a pickle that are not copied to go out in one piece with what stands before them."""
