"""The code that runs in Spark's workers on both sides of a shuffle.

A row has four columns: the partition, a key as bytes, the order of the first element as bytes, and the key with some of
its elements, pickled together. An element that only goes to another partition has a row of its own, with `ANY` for its
key. Behind the shuffle, rows come sorted, and the stages run key after key. A failure before the shuffle is a row as
well. There is one for each partition, and it comes before all others, since no key is complete without the lost elements.
"""

from __future__ import annotations

import pickle
import zlib
from typing import Any, ClassVar, Final, Generic, TypeVar

from attrs import define, frozen

from ..._core.guard import FAILURES
from ..._fusion import Stage, Template, Transform
from ..._remote.failures import in_words
from ..._remote.pickling import ByReference
from ...operators.scheduling.repartition import Repartition
from ...operators.windowing.by_key import Found, GroupByKey
from ...operators.windowing.keys import in_bytes
from .main_classes import MainClasses
from .pickling import dumps_by_value
from .worker import InputFailed

Row = tuple[int, bytes, bytes, bytes]
"""Partition, key, order, and the pickled pair of key and elements; a key without bytes for a packed and compressed failure."""

Shuffling = GroupByKey | Repartition[Any]
ByT = TypeVar("ByT", GroupByKey, Repartition[Any])
NO_CLASSES: Final = MainClasses()
ANY: Final = b"any"
"""Stands for a key where keys make no difference; not empty, since that marks a failure."""
COPIES: Final = 1 << 24
"""Bytes of all copies of a failure. By default there are 1,600, and each failed task sends as many."""


@frozen
class OfShuffle(Stage[Any, Any], Generic[ByT]):
    """A stage on one side of a shuffle."""

    by: ByT
    classes: MainClasses

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.by.name

    @property
    def arguments(self) -> str:
        """The arguments of the method."""
        return self.by.arguments


@frozen
class Spreading(OfShuffle[Repartition[Any]]):
    """Makes rows of elements, for one partition after another or by key."""

    def transform(self) -> Transform[Any, Row]:
        """Begin with a partition that depends on the task, so that tasks with a few elements each fill all of them."""
        from pyspark import TaskContext

        task = TaskContext.get()
        return Dealing(self.by, Pickling(self.classes), 0 if task is None else task.partitionId())


@define(eq=False)
class Dealing(Transform[Any, Row]):
    """The partition that is next, in one task."""

    by: Repartition[Any]
    pickled: Pickling
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
            return self.next % by.partitions, ANY, b"", self.pickled((None, item))
        return zlib.crc32(in_bytes(by.key(item))) % by.partitions, ANY, b"", self.pickled((None, item))


@frozen
class Spread(OfShuffle[Repartition[Any]]):
    """Makes elements of the rows."""

    template: ClassVar[Template | None] = Template("""
        item = $element(item)
        $rest
    """)

    def element(self, row: Row) -> Any:
        """Unpickle an element; raises the failure that stands in its place."""
        return looked_at(row)[2]


class Pickling:
    """Pickles elements: by value objects of the main module, but some classes, and objects that can't be imported."""

    __slots__ = ("_by_reference",)

    def __init__(self, classes: MainClasses) -> None:
        self._by_reference = ByReference(classes.has)

    def __call__(self, value: object) -> bytes:
        """Pickle an element, or some of them."""
        try:
            return self._by_reference(value)
        except FAILURES:  # it is of the main module, or whatever a class does when it is pickled
            return dumps_by_value(value)


def told(packed: bytes, parts: int) -> list[Row]:
    """Return the rows that pass a failure to every partition. Of an exception that is too large only the text goes along."""
    copy = zlib.compress(packed)
    if len(copy) * parts > COPIES:
        why = f"the exception itself is too large to be sent to {parts} parts of a shuffle: {len(packed):,} bytes"
        copy = zlib.compress(in_words(packed, why))
    return [(part, b"", b"", copy) for part in range(parts)]


def looked_at(row: Row) -> Found:
    """Unpickle the elements of a row; raises the failure that stands in their place."""
    mark, packed = row[1], row[3]
    if not mark:
        raise InputFailed(zlib.decompress(packed))
    key, elements = pickle.loads(packed)
    return mark, key, elements
