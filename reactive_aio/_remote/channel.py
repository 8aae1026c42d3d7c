"""The channel between a region on an event loop and a worker: the credit boundary on a socket that blocks neither side.

Either side ends by hanging up.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from .frames import FREE, SHARED, Decoder, Frame
from .memory import Memory

MOST_PIECES: Final = 64
"""Pieces of memory for one call of the system, which has a limit."""

AHEAD: Final = 65_536
"""Bytes that one call receives, of any frames. Larger data go directly to their place."""


class Channel:
    """One end of the connection. With memory that both ends share, large data travel through that."""

    def __init__(self, connection: socket.socket, memory: Memory | None = None) -> None:
        connection.setblocking(False)
        self.socket = connection
        self._memory = memory
        self._freed = b""
        """The memory that has been read, to be said with the next frame."""
        self.ended = False
        """Whether the other side has hung up."""
        self._out: deque[memoryview] = deque()  # bounded by what may be under way
        self._decoder = Decoder()
        self._ahead = memoryview(bytearray(AHEAD))

    def send(self, frame: Frame) -> None:
        """Send as much of a frame as goes out at once. `flush` sends the rest."""
        small = frame.is_small
        if not small and self._memory is not None:
            frame = self._memory.lend(frame)
            small = frame.is_small
        freed, self._freed = self._freed, b""
        if self._out or not small:
            if freed:
                self._out.append(memoryview(freed))
            self._out.extend(frame.encoded())
            self.flush()
            return
        whole = freed + frame.whole()
        try:
            sent = self.socket.send(whole)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            return  # as in `flush`
        if sent < len(whole):
            self._out.append(memoryview(whole)[sent:])

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
        """Return the frames that one system call completes. Exhaust or close them before the next call.

        The selector that watches the socket reports again what is left.
        """
        decoder = self._decoder
        large = len(decoder.room) >= AHEAD
        try:
            count = self.socket.recv_into(decoder.room if large else self._ahead)
        except (BlockingIOError, InterruptedError):
            return iter(())
        except OSError:
            count = 0
        self.ended = not count
        if not large:
            frames = decoder.feed(self._ahead[:count])
        else:
            frame = decoder.filled(count)
            frames = iter(() if frame is None else (frame,))
        return frames if self._memory is None else self._taken(frames, self._memory)

    def _taken(self, frames: Iterator[Frame], memory: Memory) -> Iterator[Frame]:
        for frame in frames:
            if frame.kind == FREE:
                memory.free(frame.number)
            elif frame.kind & SHARED:
                taken, place = memory.take(frame)
                self._freed += Frame(FREE, place).whole()
                yield taken
            else:
                yield frame

    def close(self) -> None:
        """Hang up."""
        self._out.clear()
        self.socket.close()
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.left() if self.ended else memory.close()
