"""The stage that emits all elements in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn, TypeVar

from attrs import define, field, frozen

from ..._core.containers import new_list
from ..._fusion import SORT, WHOLE, Parts, Requirement, Stage, Template, Transform
from ...errors import LimitExceededError
from ...hooks import discard
from ...spec import UNBOUNDED
from ._room import ROOM

T = TypeVar("T")


@frozen
class SortBy(Stage[T, T]):
    """Stage of ``Flow.sort_by``."""

    key: Callable[[Any], Any] | None
    reverse: bool
    max_size: int

    forwards = True
    needs_whole_stream = True

    @property
    def requirement(self) -> Requirement:
        """Another sorter, for more elements than there is room for here."""
        return SORT if self.max_size > ROOM else WHOLE

    def transform(self) -> Transform[T, T]:
        """Return an empty list."""
        return Sorting(self)

    def in_parts(self) -> Parts:
        """Sort what the parts have sorted, which is to merge it."""
        return Parts(self, self)

    def refuse(self) -> NoReturn:
        """Fail, since there are too many."""
        raise LimitExceededError(
            f"sort_by() has more than {self.max_size} elements. Raise max_size, or sort the data before it is read"
        )


@define
class Sorting(Transform[T, T]):
    """The elements of one subscription."""

    stage: SortBy[T]
    held: list[T] = field(init=False, factory=new_list)

    template: ClassVar[Template | None] = Template("""
        if len($held) == $max_size:
            $refuse()
        $append(item)
    """)

    @property
    def max_size(self) -> int:
        """The most elements."""
        return self.stage.max_size

    @property
    def append(self) -> Callable[[T], None]:
        """The method that takes an element, looked up once for a pass."""
        return self.held.append

    def refuse(self) -> None:
        """Fail, since there is one too many."""
        self.stage.refuse()

    def demand(self, n: int) -> int:
        """Ask for all there is, since any may be the first."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[T]:
        """Yield the elements in order, each when it is wanted.

        Of those that are equal the first comes first, in either direction.
        """
        items: list[Any] = self.held
        items.sort(key=self.stage.key, reverse=self.stage.reverse)
        items.reverse()
        while items:
            yield items.pop()

    def close(self) -> None:
        """Drop the elements without demand."""
        discard(self.held)
        self.held.clear()

    @property
    def pending(self) -> bool:
        """Return whether elements are still to come."""
        return bool(self.held)
