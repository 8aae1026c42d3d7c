"""A shuffle in Spark's plan: rows made by a region, brought together and sorted by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from functools import reduce
from typing import Any, Final

from attrs import evolve, field, frozen
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from ..._fusion import Placed
from ..._remote.failures import pack
from .._source.portable import main_classes
from .._source.source import FromSpark
from .._task.combining import before_shuffle
from .._task.main_classes import MainClasses
from .._task.pickling import of_user
from .._task.shuffled import Shuffling, told
from .._task.worker import InputFailed
from ..sink._columns import Columns
from .planned import framed, session_of
from .task import FrameTask, Weighed

SCHEMA: Final = StructType(
    [StructField("part", IntegerType()), *(StructField(name, BinaryType()) for name in ("key", "place", "item"))]
)
"""The columns of rows that are shuffled."""
BY_DEFAULT: Final = 200
"""Partitions of a shuffle, as Spark has them by default."""
FINER: Final = 8
"""Parts for each partition, where Spark decides how many there are and puts several parts into one."""


@frozen
class ShuffleTask(FrameTask):
    """Work whose failures are rows as well."""

    parts: int = field(kw_only=True)

    def _lists(self, items: Iterator[Any], weighed: Weighed) -> Iterator[list[Any]]:
        try:
            yield from self._run(items, weighed)
        except InputFailed as failed:  # here, or before a shuffle before this one
            yield told(failed.packed, self.parts)

    def tellable(self, error: BaseException, packed: bytes | None = None) -> BaseException:
        """Return what stands for a failure until it is a row."""
        return InputFailed(pack(error, self.here) if packed is None else packed)


def parts_for(partitions: str) -> int:
    """Return the number of parts for the session's number of partitions. That may be a word: on some platforms ``auto``."""
    return FINER * (int(partitions) if partitions.isdecimal() else BY_DEFAULT)


def shuffled(before: FromSpark, by: Placed[Shuffling]) -> tuple[Any, MainClasses]:
    """Return the frame of the shuffled rows: each partition sorted by key, and by order within a key.

    A part of the rows is never divided. It has all elements of its keys, and a row for each failure before the shuffle.

    The classes are those of the main module that elements may have. The reader of the rows has to bring them.
    The rows are also sorted by their pickles. So a task that reads them again has them in the same order.
    """
    session = session_of(before)
    operator = by.operator
    parts = operator.partitions or parts_for(session.conf.get("spark.sql.shuffle.partitions"))
    sources = [source.ready() for source in before.flows]  # a side of a join may have a shuffle of its own
    classes = of_user(main_classes, [evolve(source, stages=(*source.stages, by)) for source in sources])
    columns = Columns(SCHEMA, None, UTC)
    steps = [Placed(stage, by.origin) for stage in before_shuffle(operator, parts, classes)]

    def rows_of(source: FromSpark) -> Any:
        source = evolve(source, stages=(*source.stages, *steps))
        return framed(source, ShuffleTask(str(source), source.pickled(), parts=parts), columns)

    rows: Any = reduce(lambda some, more: some.unionAll(more), map(rows_of, sources))
    # By a column Spark's adaptive execution puts small partitions together, which it may not where their number is said.
    spread = rows.repartitionById(parts, "part") if operator.partitions else rows.repartition("part")
    return spread.sortWithinPartitions("key", "place", "item"), classes
