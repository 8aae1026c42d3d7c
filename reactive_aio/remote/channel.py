"""The channel between a region on an event loop and a worker: the credit boundary on a socket that blocks neither side.

Either side ends by hanging up.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from .frames import Decoder, Frame

MOST_PIECES: Final = 64
"""Pieces of memory for one call of the system, which has a limit."""


class Channel:
    """One end of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.ended = False
        """Whether the other side has hung up."""
        self._out: deque[memoryview] = deque()  # bounded by what may be under way
        self._decoder = Decoder()

    def send(self, frame: Frame) -> None:
        """Send a frame, as much of it as goes out at once; `flush` sends the rest."""
        self._out.extend(frame.encoded())
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
        decoder = self._decoder
        while not self.ended:
            try:
                count = self.socket.recv_into(decoder.room)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                count = 0
            if not count:
                self.ended = True
                return
            frame = decoder.filled(count)
            if frame is not None:
                yield frame

    def close(self) -> None:
        """Hang up."""
        self._out.clear()
        self.socket.close()
