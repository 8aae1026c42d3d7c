"""A flow on Spark with a shuffle: by key, so that stages run on the elements of each key, or into other partitions.

It is one plan of Spark's: the region before the shuffle, a shuffle into partitions, a sort in each of them by key and order, and
the region behind it. Of a key, the memory of a worker has the state of its stages, and a few rows with elements that are merged.
The rest is on Spark's disks, as with any sort of its own.
"""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any, Self

from attrs import evolve, field, frozen

from ..._fusion import KEYED, Placed, Stage
from ...operators.windowing.by_key import GroupByKey
from .._task.combining import behind_shuffle
from .._task.rows import Reading
from .._task.shuffled import Shuffling
from .insight import details
from .source import FromSpark

if TYPE_CHECKING:
    from .._job.computation import Computation
    from .._task.worker import PartitionTask, RegionTask


@frozen(eq=False)
class SparkKeyed(FromSpark):
    """A source whose first stage reads what comes out of a shuffle."""

    before: FromSpark = field(kw_only=True)
    """The source that is shuffled."""
    by: Placed[Shuffling] = field(kw_only=True)

    @staticmethod
    def of(before: FromSpark, step: Placed[Stage[Any, Any]]) -> SparkKeyed:
        """Shuffle the elements of a source."""
        by: Any = step  # one of the two stages that shuffle
        stage = Placed(behind_shuffle(by.operator), step.origin)
        left = before.capabilities.after(KEYED)
        reading = Reading(tuple)
        return SparkKeyed(
            before.data, reading, before.prefetch, before.ordered, stages=(stage,), variables=before.variables,
            properties=before.properties, capabilities=left, before=before, by=by,
        )  # fmt: skip

    def __str__(self) -> str:
        return self.before.work

    @property
    def details(self) -> tuple[str, ...]:
        """How the partitions are run, how elements travel, and where to look at it."""
        first, (own, *others) = self.before.details[0], details(self)
        by = self.by.operator
        how = "by key" if isinstance(by, GroupByKey) else f"into {by.partitions}"
        return (f"{first.partition(', ')[0]}, shuffled {how}, {own.partition(', ')[2]}", *others)

    def within(self, context: Context) -> Self:
        """Return both sides with the current values of their variables."""
        return evolve(super().within(context), before=self.before.within(context))

    def by_clock_of(self, zone: str) -> Self:
        """Return the source with the times before the shuffle read by one clock. The rows of the shuffle have none."""
        return evolve(self, before=self.before.by_clock_of(zone))

    def ready(self) -> FromSpark:
        """Return the source of the shuffled rows, lazily, as a part of Spark's plan."""
        from .._frame.shuffling import shuffled

        frame, classes = shuffled(self.before.ready(), self.by)
        first = Placed(behind_shuffle(self.by.operator, classes), self.by.origin)
        return FromSpark(
            frame, self.reading, self.prefetch, self.ordered, (first, *self.stages[1:]), values=self.values
        )

    def computation(self, task: RegionTask) -> Computation:
        """Return the computation over the shuffled rows. As of any frame, a task may read several small partitions."""
        ready = self.ready()
        return ready.computation(evolve(task, stages=ready.pickled()))

    def java_rdd(self, task: PartitionTask) -> Any:
        """Return the JavaRDD whose computation is the task."""
        ready = self.ready()
        # Its stages bring classes that only the shuffle knows of.
        return ready.java_rdd(evolve(task, stages=ready.pickled()))
