"""The bytes that a region on workers has outstanding, and how many elements they let it have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

if TYPE_CHECKING:
    from ..._remote.limit import ByteLimit


@define(eq=False)
class Load:
    """An account of bytes as they travel. Workers that share memory with this process have no limit, and say no sizes.

    A chunk for each worker is allowed in any case, however large it is. Otherwise an element beyond the limit would never
    be worked on, and large ones by one worker only.
    """

    limit: ByteLimit | None
    workers: int
    prefetch: int
    held: int = field(init=False, default=0)
    """Bytes of the elements and the results of chunks that have not been delivered."""
    window: int = field(init=False)
    """The elements that may be outstanding: few before the first is known, then half of the limit."""
    largest: int = field(init=False)
    """The elements that a chunk may have."""
    _each: float = field(init=False, default=0.0)
    """Bytes of an element, as of late: it rises at once and falls slowly."""

    def __attrs_post_init__(self) -> None:
        self.largest = self.prefetch
        self.window = self.prefetch if self.limit is None else min(self.prefetch, 2 * self.workers)

    def sent(self, elements: int, size: int) -> None:
        """Learn how large elements are, from some that have been sent."""
        if self.limit is None or not size:
            return
        mean = size / elements
        self._each = each = max(mean, (7 * self._each + mean) / 8)
        self.window = min(self.prefetch, max(self.workers, int(self.limit.most / 2 / each)))
        self.largest = max(1, int(self.limit.chunk / each))

    def admits(self, chunks: int, under_way: int) -> bool:
        """Return whether there is room for the elements of one more chunk, and for the results of all that are under way."""
        if self.limit is None or chunks < self.workers:
            return True
        return self.held + self.limit.chunk + (under_way + 1) * self.limit.share <= self.limit.most

    def has_to_wait(self, size: int) -> bool:
        """Return whether a chunk has so many bytes of results that it waits for leave to go on."""
        return self.limit is not None and size >= self.limit.share
