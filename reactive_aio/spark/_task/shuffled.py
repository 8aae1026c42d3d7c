"""The code that runs in Spark's workers on both sides of a shuffle.

Before the shuffle, each element becomes a row of four columns: its partition, its key as bytes, its order as bytes, and
the pickled element with its key. An element that only goes to another partition has `ANY` for its key. Behind the
shuffle, rows come sorted, and the stages run key after key. A failure before the shuffle is a row as well. There is one
for each partition, and it comes before all others, since no key is complete without the lost elements.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, ClassVar, Final
from zlib import crc32

from attrs import define, frozen

from ..._core.guard import FAILURES
from ..._fusion import Stage, Template, Transform
from ..._remote.pickling import by_reference
from ...operators.scheduling.repartition import Repartition
from ...operators.windowing.by_key import Found, GroupByKey, OfKey, OneByOne, Pair
from ...operators.windowing.keys import in_bytes
from .main_classes import MainClasses
from .pickling import dumps_by_value
from .worker import InputFailed

Row = tuple[int, bytes, bytes, bytes]
"""Partition, key, order, and the pickled pair of key and element; a key without bytes for a packed failure."""


Shuffling = GroupByKey | Repartition[Any]
NO_CLASSES: Final = MainClasses()
PLAIN: Final = frozenset({bool, bytes, float, int, str, type(None)})
"""The types of what needs no name to be pickled; not those derived of them."""
ANY: Final = b"any"
"""Stands for a key where keys make no difference; not empty, since that marks a failure."""


@frozen
class ToShuffle(Stage[Any, Row]):
    """Makes rows of elements."""

    by: GroupByKey
    parts: int
    classes: MainClasses

    template: ClassVar[Template | None] = Template("""
        item = $row(item)
        $rest
    """)

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.by.name

    @property
    def arguments(self) -> str:
        """The arguments of the method."""
        return self.by.arguments

    def row(self, item: Any) -> Row:
        """Call the functions of key and order."""
        by = self.by
        return self.row_of(by.key(item), item, b"" if by.order_by is None else in_bytes(by.order_by(item)))

    def row_of(self, key: Any, item: Any, place: bytes) -> Row:
        """Return the row of what goes to a key."""
        mark = in_bytes(key)
        return crc32(mark) % self.parts, mark, place, pickled((key, item), self.classes)


@frozen
class Spreading(Stage[Any, Row]):
    """Makes rows of elements, for one partition after another or by key."""

    by: Repartition[Any]
    classes: MainClasses

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.by.name

    @property
    def arguments(self) -> str:
        """The arguments of the method."""
        return self.by.arguments

    def transform(self) -> Transform[Any, Row]:
        """Begin with a partition that depends on the task, so that tasks with a few elements each fill all of them."""
        from pyspark import TaskContext

        task = TaskContext.get()
        return Dealing(self.by, self.classes, 0 if task is None else task.partitionId())


@define(eq=False)
class Dealing(Transform[Any, Row]):
    """The partition that is next, in one task."""

    by: Repartition[Any]
    classes: MainClasses
    next: int

    template: ClassVar[Template | None] = Template("""
        item = $row(item)
        $rest
    """)

    def row(self, item: Any) -> Row:
        """Choose the partition, by the key if there is one."""
        by = self.by
        if by.key is None:
            self.next += 1
            return self.next % by.partitions, ANY, b"", pickled((None, item), self.classes)
        return crc32(in_bytes(by.key(item))) % by.partitions, ANY, b"", pickled((None, item), self.classes)


@frozen
class Spread(Stage[Row, Any]):
    """Makes elements of the rows."""

    by: Repartition[Any]
    classes: MainClasses

    template: ClassVar[Template | None] = Template("""
        item = $element(item)
        $rest
    """)

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.by.name

    @property
    def arguments(self) -> str:
        """The arguments of the method."""
        return self.by.arguments

    def element(self, row: Row) -> Any:
        """Unpickle an element; raises the failure that stands in its place."""
        return looked_at(row)[2]


def pickled(value: object, classes: MainClasses) -> bytes:
    """Pickle an element: by value objects of the main module, but these classes, and objects that can't be imported."""
    if _is_plain(value):
        return pickle.dumps(value, 5)  # which refers to no class, and takes a fraction of the time
    try:
        return b"".join(by_reference(value, None, main=classes.has))
    except FAILURES:  # it is of the main module, or whatever a class does when it is pickled
        return dumps_by_value(value)


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is tuple:
        parts: Any = value
        return PLAIN.issuperset(map(type, parts)) or all(map(_is_plain, parts))
    return kind in PLAIN


def told(packed: bytes, parts: int) -> list[Row]:
    """Return the rows that pass a failure to every partition."""
    return [(part, b"", b"", packed) for part in range(parts)]


@frozen
class FromShuffle(Stage[Row, Pair]):
    """Runs the stages on rows that come sorted, so that one key ends where another begins."""

    by: GroupByKey
    """With the stages that are left behind the shuffle."""
    classes: MainClasses
    whole: GroupByKey
    """With all stages, as plans and notes show it."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.whole.name

    @property
    def arguments(self) -> str:
        """The arguments of the method."""
        return self.whole.arguments

    def transform(self) -> Transform[Row, Pair]:
        """Return the transform for the current key."""
        return InTurnByKey(self.by)


def looked_at(row: Row) -> Found:
    """Unpickle an element; raises the failure that stands in its place."""
    mark, packed = bytes(row[1]), bytes(row[3])
    if not mark:
        raise InputFailed(packed)
    key, element = pickle.loads(packed)
    return mark, key, element


@define(eq=False)
class InTurnByKey(OneByOne):
    """The current key, in one partition."""

    by: GroupByKey

    @property
    def keyed(self) -> Callable[[Any], Found]:
        """Unpickle an element."""
        return looked_at

    def begun(self, key: Any) -> OfKey:
        """Begin the stages of a key."""
        return OfKey(key, self.by.steps)
