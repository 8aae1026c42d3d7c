"""A bounded queue in front of a subscriber that is slower than its source."""

from __future__ import annotations

from collections import deque
from typing import Generic, Literal, TypeVar, get_args

from attrs import define, field

from ..._core.containers import new_deque
from ..._fusion import label

T = TypeVar("T")

Overflow = Literal["error", "drop_latest", "drop_oldest"]
"""An element that finds no room fails the flow, is itself dropped, or pushes out the oldest."""


def check_overflow(method: str, overflow: object) -> None:
    """Raise unless the value is a policy."""
    choices = get_args(Overflow)
    if overflow not in choices:
        raise ValueError(f"{method}(overflow={label(overflow)}): choose one of {', '.join(map(repr, choices))}")


@define(eq=False)
class Backlog(Generic[T]):
    """Elements that wait for demand, ``size`` of them at most, and a count of those for which there was no room."""

    size: int
    overflow: Overflow
    dropped: int = field(init=False, default=0)
    _items: deque[T] = field(init=False, factory=new_deque)  # bounded by `size`

    @property
    def buffered(self) -> int:
        """The elements that wait."""
        return len(self._items)

    def add(self, items: list[T]) -> list[T]:
        """Take elements. Return those for which there is no room, by the policy."""
        waiting = self._items
        room = self.size - len(waiting)
        if len(items) <= room:
            waiting.extend(items)
            return []
        if self.overflow == "drop_oldest":
            waiting.extend(items)
            lost = [waiting.popleft() for _ in range(len(waiting) - self.size)]
        else:
            waiting.extend(items[:room])
            lost = items[room:]
        self.dropped += len(lost)
        return lost

    def take(self, n: int) -> list[T]:
        """Return the oldest elements, ``n`` at most."""
        return [self._items.popleft() for _ in range(min(n, len(self._items)))]
