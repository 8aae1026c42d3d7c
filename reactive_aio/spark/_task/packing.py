"""Several elements of a key in one row of a shuffle, so that Spark has few rows to move and to sort.

Before the shuffle each task holds some elements, by their keys. When there are enough of them it sends them on: a row has
some elements of one key, in their order. Behind the shuffle the rows of a key come by the order of their first elements, and
are merged. So no more is held there than rows that overlap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from datetime import date, datetime
from itertools import islice
from math import isnan
from typing import Any, ClassVar, Final
from zlib import crc32

from attrs import define, field, frozen

from ..._core.containers import new_dict, new_list
from ..._core.guard import FAILURES
from ..._core.notes import add_note
from ..._fusion import Template, Transform, label
from ...hooks import discard
from ...operators.windowing.by_key import Found, GroupByKey, OfKey, OneByOne, Pair, Stretch
from ...operators.windowing.keys import in_bytes
from ...spec import UNBOUNDED
from .shuffled import OfShuffle, Pickling, Row, looked_at

HEAVY: Final = 1 << 26
"""Bytes of the elements that a task holds before the shuffle."""
PIECE: Final = 1 << 13
"""Bytes of the elements of one row."""
OBJECT: Final = 112
"""Bytes that an element takes in memory besides those of its pickle."""
WEIGHED: Final = 64
"""Of so many elements one is weighed."""
MERGED: Final = 1 << 20
"""Bytes of the rows of a key that are held behind the shuffle, at least, before some elements are passed on."""

SIMPLE: Final[frozenset[type]] = frozenset({bool, int, str, type(None)})
"""Types of keys that stand for their bytes in a dict."""
ORDERED: Final[frozenset[type]] = frozenset({int, str, date})
"""Types whose values are in the order of their bytes."""

Marked = tuple[Any, ...]
"""A value that the elements of a key have in common, the key, the place of the element if there is an order, and the element."""
InPlaces = tuple[list[Any], list[Any]]
"""The places of elements, and the elements. A place is in bytes, or the value itself if that has the same order."""


def place_of(value: Any) -> Any:
    """Return what an element is sorted by: its bytes, which take a microsecond or two, or the value itself if that has the same order."""
    if type(value) in ORDERED or (type(value) is float and not isnan(value)):
        return value
    return value if type(value) is datetime and value.tzinfo is None else in_bytes(value)


def _in_bytes(place: Any) -> bytes:
    return place if type(place) is bytes else in_bytes(place)


def in_order(places: list[Any], elements: list[Any]) -> InPlaces:
    """Return elements in the order of their places."""
    at = range(len(places))
    try:
        order = sorted(at, key=places.__getitem__)
    except TypeError:  # they are of several types
        order = sorted(at, key=[*map(_in_bytes, places)].__getitem__)
    return [places[each] for each in order], [elements[each] for each in order]


@frozen
class ToShuffle(OfShuffle[GroupByKey]):
    """Calls the function of the key."""

    template: ClassVar[Template | None] = Template("""
        key = mark = $key(item)
        if type(mark) not in $simple: mark = $bytes_of(mark)
        item = mark, key, item
        $rest
    """)

    simple: ClassVar[frozenset[type]] = SIMPLE
    bytes_of = staticmethod(in_bytes)

    @property
    def key(self) -> Callable[[Any], Any]:
        """The function."""
        return self.by.key


@frozen
class ToShuffleInOrder(ToShuffle):
    """Calls the functions of key and order."""

    template: ClassVar[Template | None] = Template("""
        key = mark = $key(item)
        if type(mark) not in $simple: mark = $bytes_of(mark)
        place = $order(item)
        if type(place) not in $ordered: place = $place_of(place)
        item = mark, key, place, item
        $rest
    """)

    ordered: ClassVar[frozenset[type]] = ORDERED
    place_of = staticmethod(place_of)

    @property
    def order(self) -> Callable[[Any], Any]:
        """The function of the order."""
        assert self.by.order_by is not None
        return self.by.order_by


@frozen
class Pack(OfShuffle[GroupByKey]):
    """Makes rows of elements."""

    parts: int

    needs_whole_stream = True

    def transform(self) -> Transform[Marked, Row]:
        """Return an empty table."""
        return Packing(self)


@define(eq=False)
class Rows:
    """Makes rows of elements, in one task."""

    stage: Pack
    pickle: Pickling = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.pickle = Pickling(self.stage.classes)

    def of(self, key: Any, elements: list[Any], most: int) -> Iterator[Row]:
        """Yield rows of the elements of a key, with so many in each."""
        mark = in_bytes(key)
        part = crc32(mark) % self.stage.parts
        for at in range(0, len(elements), most):
            yield part, mark, b"", self.pickled(key, elements[at : at + most])

    def in_order(self, key: Any, places: list[Any], elements: list[Any], most: int) -> Iterator[Row]:
        """Yield rows of the elements of a key in order."""
        mark = in_bytes(key)
        part = crc32(mark) % self.stage.parts
        places, elements = in_order(places, elements)
        for at in range(0, len(elements), most):
            some = places[at : at + most], elements[at : at + most]
            yield part, mark, _in_bytes(places[at]), self.pickled(key, some)

    def pickled(self, key: Any, elements: list[Any] | InPlaces) -> bytes:
        """Pickle the elements of a row."""
        try:
            return self.pickle((key, elements))
        except FAILURES as error:  # whatever a class does when it is pickled
            add_note(error, f"on an element of key {label(key)}")
            raise


@define(eq=False)
class Packing(Transform[Marked, Row]):
    """The elements that one task holds."""

    stage: Pack
    rows: Rows = field(init=False)
    held: dict[Any, list[Any]] = field(init=False, factory=new_dict)
    """A key and its elements in one list, by what these have in common. Each element is behind its place, if there is an order.

    A pair for each element, or for each key, would take half as much time again, and more of the caches.
    """
    ordered: bool = field(init=False)
    count: int = field(init=False, default=0)
    weight: int = field(init=False, default=0)
    """Their bytes, estimated."""

    def __attrs_post_init__(self) -> None:
        self.rows = Rows(self.stage)
        self.ordered = self.stage.by.order_by is not None

    def apply(self, items: Iterator[Marked]) -> Iterator[Row]:
        """Take elements. Yield rows when there are many."""
        take = self._take_in_order if self.ordered else self._take
        while some := list(islice(items, WEIGHED)):
            take(some)
            self._weigh(some)
            if self.weight >= HEAVY:
                yield from self.finish()

    def _take(self, some: list[Marked]) -> None:
        held = self.held
        for mark, key, element in some:
            found = held.get(mark)
            if found is None:
                held[mark] = [key, element]
            else:
                found.append(element)

    def _take_in_order(self, some: list[Marked]) -> None:
        held = self.held
        for mark, key, place, element in some:
            found = held.get(mark)
            if found is None:
                held[mark] = [key, place, element]
            else:
                found.append(place)
                found.append(element)

    def _weigh(self, some: list[Marked]) -> None:
        """Add elements up, by one of them: each time one further on, in case every so many elements are alike."""
        _, key, *element = some[self.count // WEIGHED % len(some)]
        self.count += len(some)
        self.weight += len(some) * (OBJECT + len(self.rows.pickled(key, element)))

    def finish(self) -> Iterable[Row]:
        """Yield the rows of all keys, and forget their elements."""
        most = max(1, PIECE * self.count // max(1, self.weight))
        self.count = self.weight = 0
        for mark in list(self.held):
            key, *elements = self.held[mark]
            if self.ordered:
                yield from self.rows.in_order(key, elements[::2], elements[1::2], most)
            else:
                yield from self.rows.of(key, elements, most)
            del self.held[mark]

    def demand(self, n: int) -> int:
        """Request all elements."""
        return UNBOUNDED if n else 0

    @property
    def pending(self) -> bool:
        """Return whether there are elements."""
        return bool(self.held)

    def close(self) -> None:
        """Drop the elements that have not been sent on."""
        left = list(self.held.values())
        self.held.clear()
        for each in left:
            discard(each[2::2] if self.ordered else each[1:])


@frozen
class FromShuffle(OfShuffle[GroupByKey]):
    """Runs the stages on rows that come sorted, so that one key ends where another begins."""

    behind: GroupByKey
    """With the stages that are left behind the shuffle; plans and notes show all of them."""

    def transform(self) -> Transform[Row, Pair]:
        """Return the transform for the current key."""
        if self.by.order_by is None:
            return InTurnByKey(self.behind, looked_at)
        return InOrderByKey(InTurnByKey(self.behind, _as_it_is))


def _as_it_is(found: Found) -> Found:
    return found


@define(eq=False)
class Pieces(Stretch):
    """The elements of a pass, several of them at a time."""

    def _of_one(self) -> Generator[Any]:
        for some in super()._of_one():
            yield from some


@define(eq=False)
class InTurnByKey(OneByOne):
    """The current key, in one partition."""

    by: GroupByKey
    looked_at: Callable[[Any], Found]

    stretch = Pieces

    @property
    def keyed(self) -> Callable[[Any], Found]:
        """The function that has some elements of a key."""
        return self.looked_at

    def begun(self, key: Any) -> OfKey:
        """Begin the stages of a key."""
        return OfKey(key, self.by.steps)


@define(eq=False)
class Merging:
    """The elements of the current key, after the place that a row has begun with."""

    mark: Any = field(init=False, default=None)
    key: Any = field(init=False, default=None)
    places: list[Any] = field(init=False, factory=new_list)
    elements: list[Any] = field(init=False, factory=new_list)
    weight: int = field(init=False, default=0)
    """The bytes of their rows."""
    most: int = field(init=False, default=0)
    """The bytes up to which they are held."""

    def merged(self, rows: Iterator[Row]) -> Generator[Found]:
        """Yield the elements of each key in order, some at a time."""
        for row in rows:
            mark, key, (places, elements) = looked_at(row)
            if mark != self.mark:
                yield from self.rest()
                self.mark, self.key, self.most = mark, key, MERGED
            self.places += places
            self.elements += elements
            self.weight += len(row[3])
            if self.weight > self.most:
                yield from self._before(row[2])

    def rest(self) -> Generator[Found]:
        """Yield those that are held, since no more come."""
        if self.elements:
            yield self._first(in_order(self.places, self.elements), len(self.elements))
        self.weight = 0

    def _before(self, place: bytes) -> Generator[Found]:
        """Yield those up to the place of the latest row: no later row has any before it."""
        placed = in_order(self.places, self.elements)
        count = len(self.elements)
        at = bisect_right(placed[0], place, key=_in_bytes)
        some = self._first(placed, at)
        if at:
            yield some
        self.weight = self.weight * (count - at) // count
        self.most = max(MERGED, 2 * self.weight)

    def _first(self, placed: InPlaces, count: int) -> Found:
        """Return so many of the elements, and hold the others."""
        places, elements = placed
        self.places, self.elements = places[count:], elements[count:]
        return self.mark, self.key, elements[:count]

    def clear(self) -> None:
        """Hold none."""
        self.places, self.elements = [], []


@define(eq=False)
class InOrderByKey(Transform[Row, Pair]):
    """The current key, and those of its elements that a later row may come before."""

    keys: InTurnByKey
    """The stages."""
    merging: Merging = field(init=False, factory=Merging)

    def apply(self, items: Iterator[Row]) -> Generator[Pair]:
        """Run the stages on elements that nothing comes before any more."""
        yield from self.keys.apply(self.merging.merged(items))

    def finish(self) -> Iterable[Pair]:
        """Run them on the rest."""
        yield from self.keys.apply(self.merging.rest())
        yield from self.keys.finish()

    def demand(self, n: int) -> int:
        """Ask for one row at a time, since it may be enough."""
        return self.keys.demand(n)

    @property
    def pending(self) -> bool:
        """Return whether the last key still has elements."""
        return bool(self.merging.elements) or self.keys.pending

    def close(self) -> None:
        """Drop what is held."""
        self.merging.clear()
        self.keys.close()
