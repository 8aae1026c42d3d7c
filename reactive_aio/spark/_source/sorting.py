"""A flow on Spark that the workers put into order, each of them a range of the keys.

Each partition is sorted, and kept on the disks of the cluster. Samples of all partitions determine ranges with about as
many elements each. One shuffle brings the elements of a range into one partition, where ``sort_by`` merges them. So no
process has more than a range in memory. The ranges are read like any partitions: in turn, as far as they are wanted.
"""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any, Self

from attrs import evolve, field, frozen
from pyspark import RDD, StorageLevel

from ..._fusion import Placed, Stage
from .._results.task import ResultsTask
from .._task.pickling import dumps_for_jobs, of_user
from .._task.worker import RegionTask
from .insight import details
from .ranges import Keys, Ranges, merged, sample
from .source import FromSpark

if TYPE_CHECKING:
    from .._task.worker import PartitionTask


@frozen(eq=False)
class SparkSorted(FromSpark):
    """A source whose first stage is ``sort_by``, and whose partitions are ranges of keys."""

    before: FromSpark = field(kw_only=True)
    """The source that is sorted."""

    @staticmethod
    def of(before: FromSpark, sort: Placed[Stage[Any, Any]]) -> SparkSorted:
        """Sort the elements of a source."""
        return SparkSorted(
            before.data, None, before.prefetch, stages=(sort,), variables=before.variables, properties=before.properties,
            before=before,
        )  # fmt: skip

    def __str__(self) -> str:
        return self.before.work

    @property
    def details(self) -> tuple[str, ...]:
        """How the partitions are run, how elements travel, and where to look at it."""
        (first, *others), own = self._sorted.details, details(self)[0]
        return (f"{first.partition(', ')[0]}, shuffled into ranges of keys, {own.partition(', ')[2]}", *others)

    @property
    def _sorted(self) -> FromSpark:
        """The elements to be sorted, each partition for itself."""
        return evolve(self.before, stages=(*self.before.stages, self.stages[0]))

    def within(self, context: Context) -> Self:
        """Return both sides with the current values of their variables."""
        return evolve(super().within(context), before=self.before.within(context))

    def ready(self) -> FromSpark:
        """Return the same elements unsorted. The caller shuffles them, so that their order is gone anyway."""
        before = self.before.ready()
        return evolve(before, stages=(*before.stages, *self.stages[1:]))

    def java_rdd(self, task: PartitionTask) -> Any:
        """Return the ranges. This runs the job that sorts the partitions, and the one that shuffles them."""
        sort = self.stages[0]
        lifeline = task.address if isinstance(task, RegionTask) else None  # its loop listens as long as this is wanted
        whole = self._sorted
        work = ResultsTask(str(whole), whole.pickled(), whole.reading, lifeline=lifeline)
        runs: RDD[Any] = RDD(whole.java_rdd(work), self.context)
        runs.persist(StorageLevel.DISK_ONLY)
        try:
            stage: Any = sort.operator
            ranges = Ranges(of_user(dumps_for_jobs, (stage, self.values)), str(sort), lifeline=lifeline)
            samples: list[bytes] = runs.mapPartitions(sample).collect()
            ranges = ranges.by(samples, runs.getNumPartitions(), Keys(stage, self.values))
            pieces: Any = runs.mapPartitionsWithIndex(ranges.cut).partitionBy(len(ranges.starts) + 1, int)
            pieces._jrdd.isEmpty()  # so that they are shuffled while the partitions are kept
        finally:
            runs.unpersist()
        return pieces.mapPartitions(merged).mapPartitionsWithIndex(task.over_items)._jrdd
