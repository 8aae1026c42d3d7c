"""The bytes of elements that have been delivered and not consumed."""

from __future__ import annotations

from collections import deque

from attrs import define, field

from ..._core.containers import new_deque


@define(eq=False)
class Held:
    """An account of chunks, which are consumed in the order in which they were delivered."""

    size: int = field(init=False, default=0)
    _chunks: deque[tuple[int, int]] = field(init=False, factory=new_deque)
    """The elements and bytes of each chunk. A chunk's bytes are held until it has been consumed whole."""
    _consumed: int = field(init=False, default=0)
    """Elements of the first."""

    def deliver(self, count: int, size: int) -> None:
        """Take note of a chunk."""
        self._chunks.append((count, size))
        self.size += size

    def consume(self, count: int) -> int:
        """Note consumed elements, and return the bytes that are not held any more."""
        before = self.size
        self._consumed += count
        while self._chunks and self._chunks[0][0] <= self._consumed:
            count, size = self._chunks.popleft()
            self._consumed -= count
            self.size -= size
        if not self._chunks:
            self._consumed = 0  # what was requested first was not consumed
        return before - self.size
