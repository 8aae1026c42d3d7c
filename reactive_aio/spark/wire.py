"""The wire between a task and the event loop: what is said on the TCP connection that each task opens.

::

    task -> loop   HELLO   magic, secret, partition, attempt      first, and only once
                   CHUNK   count, pickled list of elements        at most as many elements as were granted
                   FAILED  packed exception                       after the elements before it
                   ENDED                                          behind the last element

    loop -> task   START   number of elements to leave out        the answer to HELLO
                   GRANT   number of elements that may be sent
                   STOP                                           nobody listens any more, or all has arrived

Nothing is unpickled from a connection whose HELLO lacks the secret, and a task unpickles nothing at all of
what the loop says.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from attrs import define, field

MAGIC: Final = b"rea1"
"""Says that it is us, and which version of the wire."""

HELLO: Final = struct.Struct("!4s32sII")
"""Magic, secret, partition, attempt."""
FRAME: Final = struct.Struct("!BIQ")
"""Kind, count of elements, length of what follows."""
ORDER: Final = struct.Struct("!BQ")
"""Kind, number."""

CHUNK: Final = 1
FAILED: Final = 2
ENDED: Final = 3

START: Final = 1
GRANT: Final = 2
STOP: Final = 3


@define(eq=False)
class FrameReader:
    """Cuts what a task sends into frames."""

    _buffer: bytearray = field(init=False, factory=bytearray)

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Take what has arrived and give kind, count and payload of each frame that is complete."""
        buffer = self._buffer
        buffer += data
        at = 0
        try:
            while len(buffer) - at >= FRAME.size:
                kind, count, length = FRAME.unpack_from(buffer, at)
                end = at + FRAME.size + length
                if len(buffer) < end:
                    break
                payload = bytes(memoryview(buffer)[at + FRAME.size : end])
                at = end
                yield kind, count, payload
        finally:
            del buffer[:at]
