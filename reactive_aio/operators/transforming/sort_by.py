"""The stage that emits all elements in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn, TypeVar

from attrs import define, field, frozen

from ..._fusion import SORT, WHOLE, Parts, Requirement, Stage, Template, Transform
from ...errors import LimitExceededError
from ...hooks import discard
from ...spec import UNBOUNDED
from ._room import ROOM
from .runs import RUN, Runs

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
        return Sorting(self) if self.key is None else SortingByKey(self)

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
    runs: Runs = field(init=False)
    room: int = field(init=False)
    """The number of elements at which the latest run ends."""

    template: ClassVar[Template | None] = Template(
        """
        if len($latest) == $room:
            $room = $next_run()
        $append(item)
        """,
        local=("room",),
    )

    def __attrs_post_init__(self) -> None:
        self.runs = Runs(keyed=self.stage.key is not None, reverse=self.stage.reverse)
        self.room = min(RUN, self.stage.max_size)

    @property
    def latest(self) -> list[Any]:
        """The elements of the latest run, which is the same list during a pass."""
        return self.runs.latest.items

    @property
    def append(self) -> Callable[[T], None]:
        """The method that takes an element, looked up once for a pass."""
        return self.latest.append

    @property
    def key(self) -> Callable[[Any], Any] | None:
        """The key."""
        return self.stage.key

    @property
    def rank(self) -> Callable[[Any], None]:
        """The method that takes the rank of an element, looked up once for a pass."""
        return self.runs.latest.ranks.append

    def next_run(self) -> int:
        """Begin another run. Return the number of elements that it has room for."""
        if len(self.latest) < RUN:
            self.stage.refuse()
        left = self.stage.max_size - self.runs.end_run()
        if not left:
            self.stage.refuse()
        return min(RUN, left)

    def demand(self, n: int) -> int:
        """Ask for all there is, since any may be the first."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[T]:
        """Yield the elements in order, each when it is wanted.

        Of those that are equal the first comes first, in either direction.
        """
        yield from self.runs.in_order()  # in a frame of this object, by which a failure is located

    def close(self) -> None:
        """Drop the elements without demand."""
        discard(self.runs.let_go())

    @property
    def pending(self) -> bool:
        """Return whether elements are still to come."""
        return bool(self.runs)


@define
class SortingByKey(Sorting[T]):
    """Sorts by a key, which is called once for each element, on arrival."""

    template: ClassVar[Template | None] = Template(
        """
        if len($latest) == $room:
            $room = $next_run()
        $rank($key(item))
        $append(item)
        """,
        local=("room",),
    )
