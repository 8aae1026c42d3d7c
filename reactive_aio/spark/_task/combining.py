"""Keyed work in parts: before a shuffle each task counts, or ranks, the elements that it has of each key.

So the shuffle moves a few results and not all elements. This is for keyed work that begins with ``count()`` or ``top_k()``, after functions
of ``map()`` at most. The order of the elements makes no difference to these, nor how they are divided.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from attrs import define, evolve, field, frozen

from ..._core.containers import new_dict
from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._fusion import Parts, Placed, Stage, Transform, label
from ...hooks import discard
from ...operators.folding.fold import Count
from ...operators.folding.ranking import TopK
from ...operators.transforming.map import Map
from ...operators.windowing.by_key import GroupByKey, Steps
from ...operators.windowing.keys import PLAIN, hashed, in_bytes
from ...spec import UNBOUNDED
from .main_classes import MainClasses
from .packing import WEIGHED, FromShuffle, Pack, Rows, ToShuffle, ToShuffleInOrder
from .shuffled import NO_CLASSES, OfShuffle, Row, Shuffling, Spread, Spreading

MOST: Final = 1 << 14
"""Numbers, or elements, that a task keeps."""
WORTH: Final = 2
"""Elements for each key, on average, from which on it is worth to keep results."""
AT_ONCE: Final = 256
"""Keys that are counted at once."""


def maps_of(by: GroupByKey) -> int:
    """Return how many functions of ``map()`` come first."""
    return next((at for at, placed in enumerate(by.steps) if type(placed.operator) is not Map), len(by.steps))


def parts_of(by: GroupByKey) -> Parts | None:
    """Return how the work of each key is divided and put together; None if it is not."""
    at = maps_of(by)
    if by.order_by is not None or at == len(by.steps):
        return None
    stage = by.steps[at].operator
    if isinstance(stage, TopK) and stage.k == 0:  # of no elements there would be no row, and the key would be lost
        return None
    return stage.in_parts() if isinstance(stage, (Count, TopK)) else None


def of_parts(by: GroupByKey) -> GroupByKey:
    """Return what is left to do behind the shuffle."""
    parts = parts_of(by)
    if parts is None:
        return by
    at = maps_of(by)
    return evolve(by, steps=(Placed(parts.combine, by.steps[at].origin), *by.steps[at + 1 :]))


def before_shuffle(by: Shuffling, parts: int, classes: MainClasses) -> tuple[Stage[Any, Any], ...]:
    """Return the stages that make rows of elements, which may be of these classes."""
    if not isinstance(by, GroupByKey):
        return (Spreading(by, classes),)
    pack = Pack(by, classes, parts)
    if parts_of(by) is not None:
        return (InParts(by, classes, pack),)
    return (ToShuffle(by, classes) if by.order_by is None else ToShuffleInOrder(by, classes), pack)


def behind_shuffle(by: Shuffling, classes: MainClasses = NO_CLASSES) -> Stage[Row, Any]:
    """Return the stage that reads the rows."""
    return FromShuffle(by, classes, of_parts(by)) if isinstance(by, GroupByKey) else Spread(by, classes)


@frozen
class InParts(OfShuffle[GroupByKey]):
    """Makes rows of the results of elements."""

    pack: Pack

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Row]:
        """Return an empty table."""
        at = maps_of(self.by)
        whole = self.by.steps[at]
        stage: Any = whole.operator  # one of the two
        if isinstance(stage, Count):
            return Table(self, self.by.steps[:at], whole, Number, MOST) if at else Counting(self)
        return Table(self, self.by.steps[:at], whole, partial(Greatest, stage), max(1, MOST // stage.k))


@define(eq=False)
class Counting(Transform[Any, Row]):
    """The numbers of elements of keys that one task has met, where no function is called on the elements themselves."""

    stage: InParts
    rows: Rows = field(init=False)
    counts: Counter[Any] = field(init=False, factory=Counter[Any])
    """By what equal keys have in common."""
    keys: dict[Any, Any] = field(init=False, factory=new_dict)
    """The keys of these, where they are not the same."""
    taken: int = field(init=False, default=0)
    """The elements that have been counted."""
    worth: bool = field(init=False, default=True)
    """Whether keys come often enough."""

    def __attrs_post_init__(self) -> None:
        self.rows = Rows(self.stage.pack)

    def apply(self, items: Iterator[Any]) -> Iterator[Row]:
        """Count elements. Yield rows when there are too many keys."""
        key = self.stage.by.key
        while keys := [key(item) for item in islice(items, AT_ONCE)]:
            self.counts.update(keys if PLAIN.issuperset(map(type, keys)) else map(self._mark, keys))
            self.taken += len(keys)
            if not self.worth or len(self.counts) > MOST:
                self.worth = self.taken >= WORTH * len(self.counts)
                yield from self.finish()

    def _mark(self, key: Any) -> Any:
        mark = hashed(key)
        try:
            self.keys.setdefault(mark, key)
        except TypeError:
            in_bytes(key)  # which says what a key is
            raise
        return mark

    def demand(self, n: int) -> int:
        """Request all elements."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[Row]:
        """Yield the numbers of all keys, and forget them."""
        self.taken = 0
        for mark in list(self.counts):
            yield from self.rows.of(self.keys.pop(mark, mark), [self.counts[mark]], 1)
            del self.counts[mark]

    @property
    def pending(self) -> bool:
        """Return whether there are numbers."""
        return bool(self.counts)


class Number:
    """The number of elements of a key."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = 0

    def take(self, _: Any) -> None:
        """Count an element."""
        self.taken += 1

    @property
    def elements(self) -> tuple[int, ...]:
        """The number, for `AddUp`."""
        return (self.taken,)


class Greatest:
    """The greatest elements of a key. `KeepingTop` sorts less often, but keeps seventy more, and there are thousands of keys."""

    __slots__ = ("_fn", "_k", "_ranks", "elements")

    def __init__(self, stage: TopK[Any]) -> None:
        self._k, self._fn = stage.k, stage.key
        self.elements: list[Any] = []
        """No more than are wanted, the least first."""
        self._ranks: list[Any] = self.elements if stage.key is None else []
        """By what they are compared."""

    def take(self, value: Any) -> None:
        """Keep an element if it is one of the greatest so far."""
        ranks, rank = self._ranks, value if self._fn is None else self._fn(value)
        if len(ranks) < self._k:
            self._put(rank, value)
        elif ranks[0] < rank:
            self._put(rank, value)
            del self.elements[0]
            if self._fn is not None:
                del ranks[0]

    def _put(self, rank: Any, value: Any) -> None:
        at = bisect_left(self._ranks, rank)
        self.elements.insert(at, value)
        if self._fn is not None:
            self._ranks.insert(at, rank)


@define(eq=False)
class Table(Transform[Any, Row]):
    """The results of one task for the keys that it has met."""

    stage: InParts
    maps: Steps
    whole: Placed[Stage[Any, Any]]
    """The stage that is run in parts."""
    result: Callable[[], Number | Greatest]
    most: int
    """Keys to keep results of. With one more all of these are sent on, and the table begins again."""
    rows: Rows = field(init=False)
    results: dict[Any, tuple[Any, Number | Greatest]] = field(init=False, factory=new_dict)
    """Each key with its result, by what equal keys have in common."""
    taken: int = field(init=False, default=0)
    """The elements in the table."""
    worth: bool = field(init=False, default=True)
    """Whether keys come often enough."""

    def __attrs_post_init__(self) -> None:
        self.rows = Rows(self.stage.pack)

    def apply(self, items: Iterator[Any]) -> Iterator[Row]:
        """Take elements. Yield rows when there are too many keys."""
        for item in items:
            self._take(item)
            self.taken += 1
            if not self.worth or len(self.results) > self.most:
                self.worth = self.taken >= WORTH * len(self.results)
                yield from self.finish()

    def _take(self, item: Any) -> None:
        key = self.stage.by.key(item)
        found = self._found(key)
        placed = self.whole
        try:
            for placed in self.maps:
                step: Any = placed.operator
                item = step.fn(item)
            placed = self.whole
            found.take(item)
        except FAILURES as error:
            add_note(error, f"in {placed}, on an element of key {label(key)}")
            raise

    def _found(self, key: Any) -> Number | Greatest:
        """Return the result of a key, a new one for a new key."""
        mark = hashed(key)
        try:
            found = self.results.get(mark)
        except TypeError:
            in_bytes(key)  # which says what a key is
            raise
        if found is None:
            found = self.results[mark] = key, self.result()
        return found[1]

    def demand(self, n: int) -> int:
        """Request all elements."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[Row]:
        """Yield the results of all keys, and forget them."""
        self.taken = 0
        for mark in list(self.results):
            key, result = self.results[mark]
            yield from self.rows.of(key, [*result.elements], WEIGHED)
            del self.results[mark]

    @property
    def pending(self) -> bool:
        """Return whether there are results."""
        return bool(self.results)

    def close(self) -> None:
        """Drop the elements that have not been sent on."""
        left = [result for _, result in self.results.values() if isinstance(result, Greatest)]
        self.results.clear()
        for result in left:
            discard(result.elements)
