"""The stage that gathers elements into lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, TypeVar

from attrs import define, field, frozen

from ..._core.containers import new_list
from ..._fusion import Stage, Template, Transform
from ...hooks import discard
from ...spec import bounded

T = TypeVar("T")

MANY: Final = 16
"""The size from which on it is quicker to fill a list by a call of `extend` than one by one."""
ONE_BY_ONE: Final = """
    $self.held.append(item)
    if len($self.held) == $size:
        item, $self.held = $self.held, []
        $rest
    """


@frozen
class Buffer(Stage[T, list[T]]):
    """Stage of ``Flow.buffer``."""

    size: int

    needs_whole_stream = True

    def transform(self) -> Transform[T, list[T]]:
        """Return an empty list."""
        return Buffering[T](self.size) if self.size < MANY else BufferingMany[T](self.size)


@define
class Buffering(Transform[T, list[T]]):
    """The list that one subscription is filling."""

    size: int
    held: list[T] = field(init=False, factory=new_list)

    template: ClassVar[Template | None] = Template(ONE_BY_ONE, plain=True)

    def demand(self, n: int) -> int:
        """Request as many elements as the requested lists need."""
        return bounded(n * self.size - len(self.held)) if n else 0

    def finish(self) -> Iterable[list[T]]:
        """Return the last list, which is shorter."""
        held, self.held = self.held, []
        return (held,) if held else ()

    def close(self) -> None:
        """Drop the elements of an unfinished list."""
        discard(self.held)
        self.held = []

    @property
    def pending(self) -> bool:
        """Return whether there is a last list to come."""
        return bool(self.held)


@define
class BufferingMany(Buffering[T]):
    """The same for long lists."""

    template: ClassVar[Template | None] = Template(
        ONE_BY_ONE,
        at_once="""
        while True:
            $self.held.extend(islice(some, $size - len($self.held)))
            if len($self.held) < $size:
                break
            item, $self.held = $self.held, []
            $rest
        """,
        plain=True,
    )
