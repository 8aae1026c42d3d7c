"""The stage that gathers elements into lists as long as they have something in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._core.containers import new_list
from ..._core.missing import MISSING
from ..._fusion import Stage, Template, Transform
from ...errors import LimitExceededError
from ...hooks import discard
from .._itself import itself

T = TypeVar("T")


@frozen
class BufferUntilChanged(Stage[T, list[T]]):
    """Stage of ``Flow.buffer_until_changed``."""

    key: Callable[[T], Any] | None
    max_size: int

    needs_whole_stream = True

    def transform(self) -> Transform[T, list[T]]:
        """Return an empty list."""
        return BufferingEqual[T](self.key or itself, self.max_size)


@define
class BufferingEqual(Transform[T, list[T]]):
    """The list that one subscription is filling, and what its elements have in common."""

    key: Callable[[T], Any]
    max_size: int
    last: Any = field(init=False, default=MISSING)
    held: list[T] = field(init=False, factory=new_list)

    template: ClassVar[Template | None] = Template("""
        key = $key(item)
        if $self.last == key:
            if len($self.held) == $max_size:
                $refuse()
            $self.held.append(item)
        else:
            $self.last = key
            item, $self.held = $self.held, [item]
            if item:
                $rest
    """)

    def refuse(self) -> None:
        """Fail, since the list is full."""
        raise LimitExceededError(
            f"buffer_until_changed(max_size={self.max_size}): more elements have the same key in a row. Raise max_size"
        )

    def finish(self) -> Iterable[list[T]]:
        """Return the last list."""
        held, self.held = self.held, []
        return (held,) if held else ()

    def close(self) -> None:
        """Drop elements that are in no list yet."""
        discard(self.held)
        self.held = []

    @property
    def pending(self) -> bool:
        """Return whether there is a last list to come."""
        return bool(self.held)

    @property
    def owing(self) -> bool:
        """The elements that are held are the last list only if the input completes."""
        return False
