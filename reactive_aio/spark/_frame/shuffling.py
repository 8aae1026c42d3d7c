"""A shuffle in Spark's plan: rows made by a region, brought together and sorted by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from functools import reduce
from typing import Any, Final

from attrs import evolve, field, frozen
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from ..._core.guard import FAILURES
from ..._fusion import Placed
from ..._remote.failures import pack
from ...operators.scheduling.repartition import Repartition
from .._source.source import FromSpark
from .._task.shuffled import Shuffling, before_shuffle, told
from .._task.worker import InputFailed, InputLost
from ..sink._columns import Columns
from .planned import framed, session_of
from .task import FrameTask, Weighed

SCHEMA: Final = StructType(
    [StructField("part", IntegerType()), *(StructField(name, BinaryType()) for name in ("key", "place", "item"))]
)
"""The columns of rows that are shuffled."""


@frozen
class ShuffleTask(FrameTask):
    """Work whose failures are rows as well."""

    parts: int = field(kw_only=True)

    def _lists(self, items: Iterator[Any], weighed: Weighed) -> Iterator[list[Any]]:
        try:
            yield from self._run(items, weighed)
        except (GeneratorExit, InputLost):
            raise
        except InputFailed as lost:  # before a shuffle before this one
            yield told(lost.packed, self.parts)
        except FAILURES as error:
            yield told(pack(error, self.here), self.parts)


def shuffled(before: FromSpark, by: Placed[Shuffling]) -> Any:
    """Give the frame of the rows behind the shuffle: each partition sorted by key, and by order within a key.

    The elements themselves are sorted by as well, so that a task that is done again has them in the same order.
    """
    session = session_of(before)
    operator = by.operator
    parts = (
        operator.partitions
        if isinstance(operator, Repartition)
        else int(session.conf.get("spark.sql.shuffle.partitions"))
    )
    columns, step = Columns(SCHEMA, None, UTC), Placed(before_shuffle(operator, parts), by.origin)

    def rows_of(source: FromSpark) -> Any:
        source = source.ready()  # a side of a join may have a shuffle of its own
        source = evolve(source, stages=(*source.stages, step))
        return framed(source, ShuffleTask(str(source), source.pickled(), parts=parts), columns)

    rows = reduce(lambda some, more: some.unionAll(more), map(rows_of, before.flows))
    return rows.repartitionById(parts, "part").sortWithinPartitions("key", "place", "item")
