"""The work of a task as a node of Spark's plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve
from pyspark import RDD

from .._source.source import FromSpark, selected
from .task import FrameTask, batches_of, columns_of, unpacked

if TYPE_CHECKING:
    from .._task.rows import Reading
    from ..sink._columns import Columns

# `Any` stands for sessions and frames, which are those of a classic session or of Spark Connect.


def framed(source: FromSpark, task: FrameTask, columns: Columns) -> Any:
    """Return the frame of the results of a task. It is lazy, so Spark plans it together with its input and its use."""
    if isinstance(source.data, RDD):
        batches = source.data.mapPartitions(partial(batches_of, task, columns))
        frame = session_of(source).createDataFrame(batches, "batch binary", verifySchema=False)
        return frame.mapInArrow(named(partial(unpacked), source), columns.struct)
    frame, reading = read_in_zone(source)
    return frame.mapInArrow(named(partial(columns_of, task, reading, columns), source), columns.struct)


def read_in_zone(source: FromSpark) -> tuple[Any, Reading]:
    """Choose the columns to read. Times are read by the clock of the session's zone as it is now, unless the source has another.

    The session may have another one when the frame is computed. The results are written in the zone of now.
    """
    assert source.reading is not None
    frame, reading = selected(source.data, source.reading)
    return frame, evolve(reading, zone=reading.zone or session_zone(frame.sparkSession))


def session_zone(session: Any) -> str:
    """Return the name of the zone of a session."""
    return str(session.conf.get("spark.sql.session.timeZone"))


def named(work: partial[Any], source: FromSpark) -> Any:
    """Show the operators in Spark's plans."""
    known: Any = work  # a partial has no name of its own, and takes one
    known.__name__ = known.__qualname__ = source.work
    return known


def session_of(source: FromSpark) -> Any:
    """Return the session of the data. An RDD does not have it."""
    data: Any = source.data
    if not isinstance(data, RDD):
        return data.sparkSession
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
