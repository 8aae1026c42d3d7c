"""The rows of a frame in batches of Arrow that Spark need not weigh, and for which it plans nothing anew.

`mapInArrow` makes a frame of a frame, and Spark plans the whole again. To bound its batches in bytes, it also adds up the
whole batch again for each row, which takes longer than to make the batch. Here tasks in Python read the batches that
`toArrow` is made of, from the plan that the frame has already. Where all columns have a fixed size, a number of rows is a
bound of bytes. Texts may be of any size, so they are read in this way only where the session sets no bound.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve
from pyspark import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql import types

from .._job.computation import Computation
from .._job.once import settings
from .._task.outlet import LARGEST_CHUNK
from .gathering import Parts
from .naming import chosen
from .over_plan import planned

if TYPE_CHECKING:
    from .._task.worker import RegionTask

# `Any` stands for what lies in the JVM, and for frames, which PySpark's types know by halves.

SIZES: Final[dict[type[types.DataType], int]] = {
    types.NullType: 0,
    types.BooleanType: 1,
    types.ByteType: 1,
    types.ShortType: 2,
    types.IntegerType: 4,
    types.LongType: 8,
    types.FloatType: 4,
    types.DoubleType: 8,
    types.DecimalType: 16,
    types.DateType: 4,
    types.TimestampType: 8,
    types.TimestampNTZType: 8,
    types.DayTimeIntervalType: 8,
}
"""The bytes of a value."""
TEXTS: Final = types.StringType, types.CharType, types.VarcharType
NO_BOUND: Final = 0x7FFFFFFF
"""Spark's bound of bytes that is none."""


def computation(frame: Any, task: RegionTask) -> Computation | None:
    """Return the computation of a task over the partitions of a frame; None if its batches have to be weighed."""
    from pyspark.sql.pandas.types import to_arrow_schema

    assert task.reading is not None
    if task.reading.columns is not None:
        frame = chosen(frame, task.reading.columns)
    conf = settings(frame.sparkSession)
    if task.reading.large or not (rows := rows_of_a_batch(frame.schema, conf)):
        return None
    zone: str = conf.sessionLocalTimeZone()
    task = evolve(task, arrow=to_arrow_schema(frame.schema, timezone=zone))
    with planned(frame) as readable:
        parts = Unweighed(readable, conf, rows, zone)
        return Computation(parts.read_by(task, parts.rdd.toJavaRDD()), partial(parts.gather, task))


def rows_of_a_batch(schema: types.StructType, conf: Any) -> int:
    """Return how many rows a batch may have by Spark's settings; 0 if batches have to be weighed."""
    kinds = [type(each.dataType) for each in schema.fields]
    most: int = conf.arrowMaxBytesPerBatch()
    if not kinds or any(kind not in SIZES and not (kind in TEXTS and most == NO_BOUND) for kind in kinds):
        return 0
    rows = max(1, min(LARGEST_CHUNK, most // max(1, sum(SIZES.get(kind, 0) for kind in kinds))))
    records: int = conf.arrowMaxRecordsPerBatch()
    return min(rows, records) if records > 0 else rows


@define(eq=False)
class Unweighed(Parts):
    """The batches of each partition, as messages of Arrow."""

    conf: Any
    """The settings of the session, which its tasks are to have."""
    rows: int
    """The rows of a batch, at most."""
    zone: str

    def made(self) -> Any:
        """Make the RDD. Its tasks get the settings as those of Spark's own RDD of a frame do."""
        batches = self.frame._jdf.toArrowBatchRdd(self.rows, self.zone, False, False)
        jvm: Any = self.frame.sparkSession.sparkContext._jvm
        return jvm.org.apache.spark.sql.execution.SQLExecutionRDD(batches, self.conf)

    def read_by(self, task: RegionTask, java_rdd: Any) -> Any:
        """Return the JavaRDD that runs a task over the messages of each partition."""
        rdd: Any = RDD  # whose elements have a type of their own
        messages = rdd(java_rdd, self.frame.sparkSession.sparkContext, NoOpSerializer())
        return messages.mapPartitionsWithIndex(task.over_messages)._jrdd
