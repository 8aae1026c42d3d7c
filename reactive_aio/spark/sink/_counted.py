"""The rows of a frame, counted by the tasks of anything that a function does with it.

Spark's own means, an Observation, sees only the first action on a frame, and none on its RDD. Each task that succeeds adds to
an accumulator before its job ends. So the count is known when an action returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen
from pyspark import AccumulatorParam

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import DataFrame

Counts = dict[tuple[int, int, int], int]
"""The rows by stage, partition and attempt of the task."""


class Sums(AccumulatorParam[Counts]):
    """Adds up the rows of an attempt. A task of ``coalesce()`` reads several partitions, and tells of each."""

    def zero(self, value: Counts) -> Counts:
        """Return no rows."""
        del value
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - PySpark's name
        """Add rows."""
        for key, rows in value2.items():
            value1[key] = value1.get(key, 0) + rows
        return value1


def passed_on(counts: Accumulator[Counts], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass a partition on, and tell of its rows if it is read to its end; in a worker."""
    from pyspark import TaskContext

    rows = 0
    for batch in batches:
        rows += batch.num_rows
        yield batch
    task: Any = TaskContext.get()
    counts.add({(task.stageId(), task.partitionId(), task.taskAttemptId()): rows})


@frozen(eq=False)
class Counted:
    """A frame that counts its rows whenever it is evaluated."""

    frame: DataFrame
    context: SparkContext
    counts: Accumulator[Counts]
    jobs: int
    """The jobs that had begun before."""

    @staticmethod
    def of(frame: DataFrame) -> Counted:
        """Return a frame with the same rows, which are counted."""
        context = frame.sparkSession.sparkContext
        counts = context.accumulator(Counts(), Sums())
        counting: Any = partial(passed_on, counts)
        counting.__name__ = counting.__qualname__ = "count_rows"  # for Spark's plans
        return Counted(frame.mapInArrow(counting, frame.schema), context, counts, _jobs(context))

    def may_be_evaluated(self) -> bool:
        """Return False if no job at all has begun since the frame was made, of whatever thread."""
        return bool(self.counts.value) or _jobs(self.context) > self.jobs

    def rows(self) -> int:
        """Return the rows of the evaluation that has read the most."""
        return most_rows(self.counts.value)


def most_rows(counts: Counts) -> int:
    """Return the rows of the largest evaluation: of several stages if these have read different partitions.

    A partition that was computed again in one stage counts once, by its last attempt.

    >>> most_rows({(1, 0, 7): 3, (1, 0, 9): 3, (1, 1, 8): 4})
    7
    >>> most_rows({(1, 0, 0): 3, (2, 1, 1): 4, (3, 0, 2): 3})  # toLocalIterator() has a job for each partition
    7
    """
    evaluations: list[dict[int, int]] = [{}]
    for stage in sorted({stage for stage, _, _ in counts}):
        read = {partition: rows for (at, partition, _), rows in sorted(counts.items()) if at == stage}
        if not read.keys().isdisjoint(evaluations[-1]):
            evaluations.append({})
        evaluations[-1].update(read)
    return max(sum(each.values()) for each in evaluations)


def _jobs(context: Any) -> int:
    jobs: int = context._jsc.sc().dagScheduler().numTotalJobs()
    return jobs
