"""The stage that holds elements back until it is known that they are not the last."""

from __future__ import annotations

from collections import deque
from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Stage, Template, Transform
from ...hooks import discard
from ...spec import MOST_AT_ONCE, add_demand

T = TypeVar("T")


@frozen
class SkipLast(Stage[T, T]):
    """Stage of ``Flow.skip_last``."""

    n: int

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return an empty queue."""
        return HoldingBack[T](self.n)


@define
class HoldingBack(Transform[T, T]):
    """The elements of one subscription that may be the last."""

    n: int
    held: deque[T] = field(init=False)

    template: ClassVar[Template | None] = Template("""
        $self.held.append(item)
        if len($self.held) > $n:
            item = $self.held.popleft()
            $rest
    """)

    def __attrs_post_init__(self) -> None:
        self.held = deque(maxlen=min(self.n + 1, MOST_AT_ONCE))

    def demand(self, n: int) -> int:
        """Request the elements to hold back once, together with the demand."""
        return add_demand(n, self.n - len(self.held)) if n else 0

    def close(self) -> None:
        """Drop the elements that are held back."""
        discard(self.held)
        self.held.clear()
