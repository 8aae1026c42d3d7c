"""The jobs behind a flow whose elements are their results: an iterator of frames, for a thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import define, field
from pyspark import RDD

from .._job.calls import JobGroup, Jobs, JobTag
from .._task.connecting import Listening
from .task import FRAME, ResultsTask

if TYPE_CHECKING:
    from .source import FromResults

# `Any` stands for what PySpark has no public types for, and for sessions and frames of Spark Connect.


@define(eq=False)
class Pulling(ABC):
    """The jobs of one subscription. Its methods are called on a thread."""

    source: FromResults
    tasks: int = field(init=False, default=0)
    """The number of partitions, once it is known. Each has a job."""
    done: int = field(init=False, default=0)

    @property
    @abstractmethod
    def jobs(self) -> Jobs:
        """The jobs, as they can be cancelled."""

    @abstractmethod
    def frames(self) -> Iterator[bytes]:
        """Run the jobs, one after another, as far as their results are requested."""

    def mapped(self, frame: Any, task: ResultsTask) -> Any:
        """Return the frame whose rows are the frames."""
        frame, task = self.source.readable(frame, task)
        return frame.mapInArrow(task.over_batches, FRAME)


@define(eq=False)
class ClassicPulling(Pulling):
    """A job for each partition, when it is its turn. The driver's JVM keeps the results of that one."""

    @property
    def jobs(self) -> Jobs:
        """A group."""
        source = self.source
        return JobGroup(source.context, f"reactive_aio: {source}", source.properties, source.session)

    def frames(self) -> Iterator[bytes]:
        """Run a job, and read its results from the JVM. Unread results are dropped with the socket."""
        with Listening(self.source.context) as lifeline:
            yield from self._frames(self.source.task(lifeline))

    def _frames(self, task: ResultsTask) -> Iterator[bytes]:
        from pyspark import util

        # RDD.toLocalIterator reads a partition to its end, even when nobody wants it any more.
        read: Any = util._load_from_socket  # pyright: ignore[reportPrivateUsage] - as SparkContext.runJob does
        context: Any = self.source.context
        data = self.source.data
        rows: Any = (
            data.mapPartitionsWithIndex(task.over_items) if isinstance(data, RDD) else self.mapped(data, task).rdd
        )
        java, deserializer = rows._jrdd, rows._jrdd_deserializer
        self.tasks = java.getNumPartitions()
        for partition in range(self.tasks):
            results = context._jvm.PythonRDD.runJob(context._jsc.sc(), java, [partition])
            with read(results, deserializer) as found:
                for each in found:
                    yield each if isinstance(each, bytes) else bytes(each[0])
            self.done += 1


@define(eq=False)
class ConnectPulling(Pulling):
    """One job of a Connect server, whose results come in the order of the partitions."""

    @property
    def jobs(self) -> Jobs:
        """Return the jobs by their tag."""
        data: Any = self.source.data
        return JobTag(data.sparkSession)

    def frames(self) -> Iterator[bytes]:
        """Run the job, and read its results from the server."""
        for row in self.mapped(self.source.data, self.source.task()).toLocalIterator():
            yield bytes(row[0])
