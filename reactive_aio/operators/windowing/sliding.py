"""The stage that emits overlapping lists."""

from __future__ import annotations

from collections import deque
from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Stage, Template, Transform
from ...hooks import discard
from ...spec import MOST_AT_ONCE, bounded

T = TypeVar("T")


@frozen
class Sliding(Stage[T, list[T]]):
    """Stage of ``Flow.sliding``."""

    size: int
    step: int

    needs_whole_stream = True

    def transform(self) -> Transform[T, list[T]]:
        """Return an empty window."""
        return SlidingOn[T](self.size, self.step, self.size)


@define
class SlidingOn(Transform[T, list[T]]):
    """The window of one subscription."""

    size: int
    step: int
    left: int
    """The number of elements missing for the next list."""
    fresh: int = field(init=False)
    """The number of elements of the next list that have been in none before."""
    held: deque[T] = field(init=False)

    template: ClassVar[Template | None] = Template("""
        $held.append(item)
        if $self.left > 1:
            $self.left -= 1
        else:
            $self.left = $step
            $self.fresh = $most
            item = list($held)
            $rest
    """)

    def __attrs_post_init__(self) -> None:
        self.fresh = self.size
        self.held = deque(maxlen=min(self.size, MOST_AT_ONCE))

    @property
    def most(self) -> int:
        """The number of elements of a list, but the first one, that have been in none before."""
        return min(self.size, self.step)

    def demand(self, n: int) -> int:
        """Request as many elements as the requested lists need."""
        return bounded(self.left + (n - 1) * self.step) if n else 0

    def close(self) -> None:
        """Drop elements that were in no list."""
        waiting = self.fresh - self.left
        if waiting > 0:
            discard(list(self.held)[-waiting:])
        self.held.clear()
