"""The stage that keeps the last elements until the source has completed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Parts, Stage, Template, Transform
from ...hooks import discard
from ...spec import MOST_AT_ONCE, UNBOUNDED

T = TypeVar("T")


@frozen
class TakeLast(Stage[T, T]):
    """Stage of ``Flow.take_last``."""

    n: int

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return an empty buffer."""
        return KeepingLast[T](self.n)

    def in_parts(self) -> Parts:
        """Return how the parts are merged: the last of their last elements."""
        return Parts(self, self)


@define
class KeepingLast(Transform[T, T]):
    """The latest elements of one subscription."""

    n: int
    held: deque[T] = field(init=False)

    template: ClassVar[Template | None] = Template("$append(item)", at_once="$extend(some)", plain=True)

    def __attrs_post_init__(self) -> None:
        self.held = deque(maxlen=min(self.n, MOST_AT_ONCE))

    @property
    def append(self) -> Callable[[T], None]:
        """The method that takes an element, looked up once for a pass."""
        return self.held.append

    @property
    def extend(self) -> Callable[[Iterable[T]], None]:
        """The method that takes several."""
        return self.held.extend

    def demand(self, n: int) -> int:
        """Ask for all there is, since the last are not known before."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[T]:
        """Yield the elements, each when it is wanted."""
        while self.held:
            yield self.held.popleft()

    def close(self) -> None:
        """Drop the elements without demand."""
        discard(self.held)
        self.held.clear()

    @property
    def pending(self) -> bool:
        """Return whether elements are still to come."""
        return bool(self.held)
