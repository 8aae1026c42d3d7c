"""The stages behind the ends that put elements into an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, ClassVar, Final, TypeVar

from attrs import define, field, frozen

from ..._core.containers import new_list
from ..._core.missing import MISSING
from ..._fusion import NOTHING, WHOLE, InSteps, Parts, Requirement, Stage, Template, Transform
from ...hooks import discard
from ..transforming.sort_by import SortBy, Sorting, SortingByKey
from .fold import KeepingSeveral

T = TypeVar("T")

ROOM = 64
"""Elements that are kept, beside twice the wanted number, before the least are dropped."""

_rank: Final = itemgetter(0)


@define
class KeepingTop(KeepingSeveral[Any, Any]):
    """Keeps the greatest elements, and some more, so that they are not sorted for each."""

    k: int = field(kw_only=True)
    one_by_one: bool = field(kw_only=True, default=False)
    """Whether to emit the elements for others to go on with, and not a list."""
    limit: int = field(init=False)
    least: Any = field(init=False, default=MISSING)
    """The rank that an element has to exceed, once there are enough."""

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

    @property
    def append(self) -> Callable[[Any], None]:
        """The method that takes an element, looked up once for a pass."""
        append: Callable[[Any], None] = self.value.append
        return append

    def drop(self) -> Any:
        """Drop all but the greatest, and return the rank that an element has to exceed."""
        kept = self.value
        if self.k:  # of none, two that can't be compared are not compared either
            kept.sort(reverse=True)
        del kept[self.k :]
        return kept[-1] if kept else MISSING

    def finish(self) -> Iterable[Any]:
        """Return the greatest elements, the greatest first."""
        self.drop()
        self.given = True
        return self.held if self.one_by_one else ([*self.held],)


@define
class KeepingTopByKey(KeepingTop):
    """Keeps each element behind its rank. The key is called once for each, on arrival."""

    template: ClassVar[Template | None] = Template(
        """
        rank = $fn(item)
        if $least is $missing or $least < rank:
            $append((rank, item))
            if len($value) == $limit:
                $least = $drop()
        """,
        local=("least",),
    )

    @property
    def held(self) -> Iterable[Any]:
        """The elements that are kept."""
        return [item for _, item in self.value]

    def drop(self) -> Any:
        """Drop all but the greatest, and return the rank that an element has to exceed."""
        kept = self.value
        if self.k:
            kept.sort(key=_rank, reverse=True)
        del kept[self.k :]
        return kept[-1][0] if kept else MISSING


@frozen
class ToSortedList(SortBy[T]):
    """Stage of ``Flow.to_sorted_list``, which has no bound."""

    forwards = False

    @property
    def requirement(self) -> Requirement:
        """The whole, or parts of it."""
        return WHOLE

    def transform(self) -> Transform[T, Any]:
        """Return an empty list."""
        return SortingToList(self) if self.key is None else SortingToListByKey(self)

    def in_parts(self) -> Parts:
        """Sort what the parts have sorted, which is to merge it."""
        return Parts(SortBy(self.key, self.reverse, self.max_size), self)


@define
class SortingToList(Sorting[T], InSteps[T, Any]):
    """Emits one list."""

    whole: list[T] | None = field(init=False, factory=new_list)
    """The elements that are in order. None when they have been emitted."""

    def finish(self) -> Iterable[Any]:
        """Put the elements in order, in steps. Yield all together."""
        whole = self.whole
        if whole is not None:
            for some in self.runs.in_lists():
                whole += some
                yield NOTHING
            self.whole = None
            yield whole

    @property
    def in_steps(self) -> bool:
        """Return whether there is more than a run."""
        return self.runs.several

    def close(self) -> None:
        """Drop elements that reach no subscriber, because the flow has failed or was cancelled."""
        discard([*(self.whole or ()), *self.runs.let_go()])

    @property
    def pending(self) -> bool:
        """Return whether the list is still to come."""
        return self.whole is not None


@define
class SortingToListByKey(SortingToList[T]):
    """The same by a key."""

    template: ClassVar[Template | None] = SortingByKey.template


@frozen
class TopK(Stage[T, list[T]]):
    """Stage of ``Flow.top_k``."""

    k: int
    key: Callable[[T], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[T, list[T]]:
        """Return an empty buffer."""
        return _buffer(self.k, self.key)

    def in_parts(self) -> Parts:
        """Return how the parts are merged: the greatest of their greatest elements."""
        return Parts(TopOfPart(self.k, self.key), self)


@frozen
class TopOfPart(Stage[Any, Any]):
    """The share of ``Flow.top_k``."""

    k: int
    key: Callable[[Any], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return an empty buffer."""
        return _buffer(self.k, self.key, one_by_one=True)


def _buffer(k: int, key: Callable[[Any], Any] | None, *, one_by_one: bool = False) -> Transform[Any, Any]:
    kind = KeepingTop if key is None else KeepingTopByKey
    return kind([], key, k=k, one_by_one=one_by_one)
