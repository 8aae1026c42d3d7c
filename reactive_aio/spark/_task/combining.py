"""Keyed work in parts: before a shuffle each task counts, or ranks, the elements that it has of each key.

So the shuffle moves a few results and not all elements. This is for keyed work that begins with ``count()`` or ``top_k()``, after functions
of ``map()`` at most. The order of the elements makes no difference to these, nor how they are divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import define, evolve, field, frozen

from ..._core.containers import new_dict
from ..._core.guard import FAILURES
from ..._core.missing import MISSING
from ..._core.notes import add_note
from ..._fusion import Parts, Placed, Stage, Transform, label
from ...operators.folding.fold import Count
from ...operators.folding.ranking import TopK
from ...operators.transforming.map import Map
from ...operators.windowing.by_key import GroupByKey, Steps
from ...operators.windowing.keys import hashed, in_bytes
from ...spec import UNBOUNDED
from .shuffled import Row, ToShuffle

MOST_KEYS: Final = 1 << 14
"""Keys that a task keeps results of. With one more it sends all of these on, and begins again."""
WORTH: Final = 2
"""Elements for each key, on average, from which on it is worth to keep results."""


def maps_of(by: GroupByKey) -> int:
    """Return how many functions of ``map()`` come first."""
    return next((at for at, placed in enumerate(by.steps) if type(placed.operator) is not Map), len(by.steps))


def parts_of(by: GroupByKey) -> Parts | None:
    """Return how the work of each key is divided and put together; None if it is not."""
    at = maps_of(by)
    if by.order_by is not None or at == len(by.steps):
        return None
    stage = by.steps[at].operator
    return stage.in_parts() if isinstance(stage, (Count, TopK)) else None


def of_parts(by: GroupByKey) -> GroupByKey:
    """Return what is left to do behind the shuffle."""
    parts = parts_of(by)
    if parts is None:
        return by
    at = maps_of(by)
    return evolve(by, steps=(Placed(parts.combine, by.steps[at].origin), *by.steps[at + 1 :]))


@frozen
class ToShuffleInParts(ToShuffle):
    """Makes rows of the results of elements."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Row]:
        """Return an empty table."""
        parts = parts_of(self.by)
        assert parts is not None
        at = maps_of(self.by)
        return Table(self, self.by.steps[:at], self.by.steps[at], parts.partial)


@define(eq=False)
class Table(Transform[Any, Row]):
    """The results of one task for the keys that it has met."""

    stage: ToShuffleInParts
    maps: Steps
    whole: Placed[Stage[Any, Any]]
    """The stage that is run in parts."""
    partial: Stage[Any, Any]
    results: dict[Any, tuple[Any, Any]] = field(init=False, factory=new_dict)
    """Each key with the transform of its elements, by what equal keys have in common."""
    taken: int = field(init=False, default=0)
    """The elements in the table."""
    worth: bool = field(init=False, default=True)
    """Whether keys come often enough."""

    def apply(self, items: Iterator[Any]) -> Iterator[Row]:
        """Take elements. Yield rows when there are too many keys."""
        counts = isinstance(self.partial, Count)
        for item in items:
            key, value, of_key = self._found(item)
            if counts:
                of_key.value += 1
            else:
                self._rank(key, of_key, value)
            self.taken += 1
            if not self.worth or len(self.results) > MOST_KEYS:
                self.worth = self.taken >= WORTH * len(self.results)
                yield from self.finish()

    def _found(self, item: Any) -> tuple[Any, Any, Any]:
        """Return the key of an element, its value after the functions, and the transform of the key."""
        key = self.stage.by.key(item)
        mark = hashed(key)
        try:
            found = self.results.get(mark)
        except TypeError:
            in_bytes(key)  # which says what a key is
            raise
        if found is None:
            in_bytes(key)
            found = self.results[mark] = (key, self.partial.transform())
        for placed in self.maps:
            step: Any = placed.operator
            try:
                item = step.fn(item)
            except FAILURES as error:
                add_note(error, f"in {placed}, on an element of key {label(key)}")
                raise
        return found[0], item, found[1]

    def _rank(self, key: Any, of_key: Any, value: Any) -> None:
        """Take an element if it may be one of the greatest, as the fused stage does."""
        try:
            if of_key.least is MISSING or of_key.least < value:
                of_key.append(value)
                if len(of_key.value) == of_key.limit:
                    of_key.least = of_key.drop()
        except FAILURES as error:
            add_note(error, f"in {self.whole}, on an element of key {label(key)}")
            raise

    def _parts(self, key: Any, of_key: Any) -> Iterable[Any]:
        try:
            parts: Iterable[Any] = of_key.finish()  # which may compare elements
        except FAILURES as error:
            add_note(error, f"in {self.whole}, on the elements of key {label(key)}")
            raise
        return parts

    def demand(self, n: int) -> int:
        """Request all elements."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[Row]:
        """Yield the results of all keys, and forget them."""
        self.taken = 0
        for mark in list(self.results):
            key, of_key = self.results[mark]
            for part in self._parts(key, of_key):
                yield self.stage.row_of(key, part, b"")
            del self.results[mark]

    @property
    def pending(self) -> bool:
        """Return whether there are results."""
        return bool(self.results)

    def close(self) -> None:
        """Drop the elements that the results are made of."""
        left = [of_key for _, of_key in self.results.values()]
        self.results.clear()
        for of_key in left:
            of_key.close()
