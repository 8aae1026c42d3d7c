"""The stages behind the ends that put elements into an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Parts, Stage, Template, Transform
from .fold import KeepingSeveral

T = TypeVar("T")

ROOM = 64
"""Elements that are kept, beside twice the wanted number, before the least are dropped."""


@define
class Sorting(KeepingSeveral[Any, Any]):
    """Keeps all elements. ``fn`` is the key that they are sorted by."""

    reverse: bool = field(kw_only=True)
    one_by_one: bool = field(kw_only=True, default=False)
    """Whether to emit the elements for others to go on with, and not a list."""

    template: ClassVar[Template | None] = Template("$append(item)")

    @property
    def append(self) -> Callable[[Any], None]:
        """The method that takes an element, looked up once for a pass."""
        append: Callable[[Any], None] = self.value.append
        return append

    def sort(self) -> list[Any]:
        """Put the elements into order. Of those that are equal the first comes first, in either direction."""
        items: list[Any] = self.value
        items.sort(key=self.fn, reverse=self.reverse)
        return items

    def finish(self) -> Iterable[Any]:
        """Return the elements in order."""
        self.given = True
        items = self.sort()
        return items if self.one_by_one else (items,)


@define
class KeepingTop(Sorting):
    """Keeps the greatest elements, and some more, so that they are not sorted for each."""

    k: int = field(kw_only=True)
    limit: int = field(init=False)

    least: Any = field(init=False, default=MISSING)
    """The value that an element has to exceed, once there are enough. None with a key, which may be costly."""

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template(
        """
        if $least is $missing or $least < item:
            $append(item)
            if len($value) == $limit:
                $least = $drop()
        """,
        local=("least",),
    )

    def __attrs_post_init__(self) -> None:
        self.limit = 2 * self.k + ROOM

    def drop(self) -> Any:
        """Drop all but the greatest, and return the value that an element has to exceed."""
        kept = self.sort()
        return kept[-1] if kept and self.fn is None else MISSING

    def sort(self) -> list[Any]:
        """Drop all but the greatest."""
        items = Sorting.sort(self)
        del items[self.k :]
        return items


@frozen
class ToSortedList(Stage[T, list[T]]):
    """Stage of ``Flow.to_sorted_list``."""

    key: Callable[[T], Any] | None
    reverse: bool
    needs_whole_stream = True

    def transform(self) -> Transform[T, list[T]]:
        """Return an empty list."""
        return Sorting([], self.key, reverse=self.reverse)

    def in_parts(self) -> Parts:
        """Sort what the parts have sorted, which is to merge it."""
        return Parts(SortedPart(self.key, self.reverse), self)


@frozen
class TopK(Stage[T, list[T]]):
    """Stage of ``Flow.top_k``."""

    k: int
    key: Callable[[T], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[T, list[T]]:
        """Return an empty buffer."""
        return KeepingTop([], self.key, reverse=True, k=self.k)

    def in_parts(self) -> Parts:
        """Return how the parts are merged: the greatest of their greatest elements."""
        return Parts(TopOfPart(self.k, self.key), self)


@frozen
class SortedPart(Stage[Any, Any]):
    """The share of ``Flow.to_sorted_list``."""

    key: Callable[[Any], Any] | None
    reverse: bool
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return an empty list."""
        return Sorting([], self.key, reverse=self.reverse, one_by_one=True)


@frozen
class TopOfPart(Stage[Any, Any]):
    """The share of ``Flow.top_k``."""

    k: int
    key: Callable[[Any], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return an empty buffer."""
        return KeepingTop([], self.key, reverse=True, one_by_one=True, k=self.k)
