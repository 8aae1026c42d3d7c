"""The bound of what travels to workers and back, in bytes, beside the bound of the number of elements."""

from __future__ import annotations

from typing import Final

from attrs import frozen

MOST_BYTES: Final = 32 << 20
"""Bytes of elements and results of one region on Spark, as they are sent."""

LARGEST_CHUNK: Final = 8 << 20
"""Bytes of a chunk of elements. The loop copies so many in about a millisecond."""

SHARES: Final = 8
"""The shares for each worker: it has two chunks at a time, each with elements and results, and as much waits for its turn."""


@frozen
class ByteLimit:
    """The bytes of one region that may be outstanding, and how its chunks share them."""

    most: int
    share: int
    """Bytes that the results of a chunk may have until the loop lets it go on."""

    @property
    def chunk(self) -> int:
        """The bytes of elements that a chunk has at most. All chunks under way have half of the limit."""
        return min(LARGEST_CHUNK, 2 * self.share)

    @staticmethod
    def of(most: int, workers: int) -> ByteLimit:
        """Divide a number of bytes among the chunks of some workers."""
        return ByteLimit(most, max(1, most // (SHARES * workers)))

    def __str__(self) -> str:
        for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
            if not self.most % (1 << power):
                return f"at most {self.most >> power} {unit}"
        return f"at most {self.most} bytes"
