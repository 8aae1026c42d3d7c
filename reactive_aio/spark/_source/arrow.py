"""The rows of a frame in batches of Arrow, made as Spark Connect makes those that it sends to its clients.

`mapInArrow` makes a frame of a frame, and Spark plans the whole again. To bound its batches in bytes, it also adds up the
whole batch again for each row, which takes longer than to make the batch. Spark Connect adds up the sizes that the rows have
in the JVM. Its function takes any rows. So tasks in Python read its batches, from the plan that the frame has already.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import define, frozen
from py4j.protocol import Py4JError
from pyspark import RDD
from pyspark.serializers import NoOpSerializer

from .._job.computation import Computation
from .._job.once import once_for_each, settings
from .._task.outlet import LARGEST_CHUNK
from .._task.slices import most_rows
from .gathering import Parts
from .naming import chosen, same_names
from .over_plan import planned

if TYPE_CHECKING:
    from pyspark import SparkContext

    from .._task.worker import RegionTask

# `Any` stands for what lies in the JVM, and for frames, which PySpark's types know by halves.

CONNECT: Final = "org.apache.spark.sql.connect.execution.SparkConnectPlanExecution"
LARGEST_BATCH: Final = 4 << 20
"""The bytes of a batch but for its last row. The JVM has each batch as an array of bytes on its heap."""


def computation(frame: Any, task: RegionTask) -> Computation | None:
    """Return the computation of a task over the partitions of a frame; None if Spark has to make the batches by `mapInArrow`."""
    reading = task.reading
    assert reading is not None
    if reading.columns is not None:
        frame = chosen(frame, reading.columns)
    # Batches as elements are as large as the session says, to the byte. A batch without columns would have no rows.
    if reading.large or not frame.columns or same_names(reading.declared):
        return None
    # Batches as large as a slice need not be cut.
    most = min(LARGEST_CHUNK, most_rows(len(frame.columns))) if task.sliced else LARGEST_CHUNK
    if (to_batches := _to_batches(frame, most)) is None:
        return None
    with planned(frame) as readable:
        parts = Batches(readable, to_batches)
        return Computation(parts.read_by(task, parts.rdd.toJavaRDD()), partial(parts.gather, task))


def _to_batches(frame: Any, most_rows: int) -> Any:
    """Return the function of the JVM that turns rows into batches; None if this Spark comes without Connect, or has another function."""
    session = frame.sparkSession
    if (execution := _known(session.sparkContext).execution) is None:
        return None
    conf = settings(session)
    rows = conf.arrowMaxRecordsPerBatch()
    try:
        return execution.rowToArrowConverter(
            frame._jdf.schema(),
            min(rows, most_rows) if rows > 0 else most_rows,
            min(conf.arrowMaxBytesPerBatch(), LARGEST_BATCH),
            conf.sessionLocalTimeZone(),
            False,  # two fields of one name have been seen to already
            False,  # a batch is too small for large offsets
        )
    except Py4JError:
        return None


@frozen(eq=False)
class Known:
    """The objects and classes of the JVM that batches are made with."""

    execution: Any
    """The object of Spark Connect whose method makes functions; None if there is none."""
    anything: Any
    """The tag of the class of anything."""
    pairs: Any
    """The class with the methods of an RDD of pairs."""


@once_for_each
def _known(context: SparkContext) -> Known:
    own: Any = context
    jvm = own._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        # It serves the request of a client, and there is none. The method looks at nothing of it, so it is made without its constructor.
        kind = jvm.java.lang.Class.forName(CONNECT, False, loader)
        execution = jvm.org.objenesis.ObjenesisStd().newInstance(kind)
    except (Py4JError, TypeError):
        execution = None
    return Known(
        execution,
        jvm.scala.reflect.ClassTag.Any(),
        jvm.org.apache.spark.rdd.PairRDDFunctions,
    )


@define(eq=False)
class Batches(Parts):
    """The batches of each partition, each as a stream of Arrow."""

    to_batches: Any

    def made(self) -> Any:
        """Make the RDD."""
        known = _known(self.frame.sparkSession.sparkContext)
        counted = self.frame._jdf.queryExecution().toRdd().mapPartitions(self.to_batches, False, known.anything)
        return known.pairs(counted, known.anything, known.anything, None).keys()

    def read_by(self, task: RegionTask, java_rdd: Any) -> Any:
        """Return the JavaRDD that runs a task over the batches of each partition."""
        rdd: Any = RDD  # whose elements have a type of their own
        streams = rdd(java_rdd, self.frame.sparkSession.sparkContext, NoOpSerializer())
        return streams.mapPartitionsWithIndex(task.over_streams)._jrdd
