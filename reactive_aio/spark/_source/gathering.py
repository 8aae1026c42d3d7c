"""Small partitions of a frame gathered, so that one task reads several of them, one after another.

A task in Python costs as much as some thousand rows, and each of ours is a job. So where partitions turn out to be small,
those that are left are read by fewer tasks. `RDD.coalesce` would do, but keeps the order only where Spark doesn't know on
which machine a partition lies. Here each group is an RDD of its own, which is coalesced. The code checks that Spark has kept its order.

All tasks of a flow have to see the same partitions. A shuffle that is run twice may deal rows out in another way, so a plan
with a shuffle is run once, and all tasks read its rows. A plan without one has the same partitions each time.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field

from .._job.computation import Computation, Gathered, Group
from .over_plan import over_plan

if TYPE_CHECKING:
    from .._task.worker import RegionTask

# `Any` stands for what lies in the JVM, and for frames, which PySpark's types know by halves.

HOARDS: Final = "ShuffledHashJoin"
"""The node of a plan that keeps the table of each partition until its task ends. With many partitions a task would run out of memory."""


@define(eq=False)
class Parts(ABC):
    """An RDD of the JVM, made of a frame, whose partitions tasks in Python read, one or several each."""

    frame: Any
    _rdd: Any = field(init=False, default=None)

    @property
    def rdd(self) -> Any:
        """The RDD, in Scala. This may run the stages of Spark before a shuffle."""
        if self._rdd is None:
            self._rdd = self.made()
        return self._rdd

    @abstractmethod
    def made(self) -> Any:
        """Make the RDD."""

    @abstractmethod
    def read_by(self, task: RegionTask, java_rdd: Any) -> Any:
        """Return the JavaRDD that runs a task over each partition of a JavaRDD of such elements."""

    def gather(self, task: RegionTask, groups: Sequence[Group]) -> Gathered | None:
        """Return tasks that each read one group; the function of a `Computation`."""
        plan: str = self.frame._jdf.queryExecution().executedPlan().toString()
        if HOARDS in plan or (found := self._coalesced(groups)) is None:
            return None
        context: Any = self.frame.sparkSession.sparkContext
        parts = context._gateway.new_array(context._jvm.org.apache.spark.api.java.JavaRDD, len(found))
        for at, part in enumerate(found.values()):
            parts[at] = part
        return Gathered(self.read_by(evolve(task, groups=tuple(found)), context._jsc.union(parts)), tuple(found))

    def _coalesced(self, groups: Sequence[Group]) -> dict[Group, Any] | None:
        """Return an RDD of one partition for each group.

        Spark puts a partition that lies on a known machine before those that don't. A group is divided in front of it.
        """
        jvm: Any = self.frame.sparkSession.sparkContext._jvm
        ints, converters = jvm.java.util.stream.IntStream, jvm.scala.jdk.javaapi.CollectionConverters
        pruning, java_rdds = jvm.org.apache.spark.rdd.PartitionPruningRDD, jvm.org.apache.spark.api.java.JavaRDD
        tag, arrays = self.rdd.elementClassTag(), jvm.java.util.Arrays
        found: dict[Group, Any] = {}
        left = deque(groups)
        while left:
            group = left.popleft()
            numbers = ints.range(group.start, group.stop).boxed().toList()
            some = pruning.create(self.rdd, converters.asScala(numbers).toSet())  # a set is a function of Scala's
            part = java_rdds.fromRDD(some, tag).coalesce(1)
            order: list[int] = json.loads(arrays.toString(part.rdd().partitions()[0].parentsIndices()))
            if order == [*range(len(group))]:
                found[group] = part
            elif first := order[0]:
                left.extendleft((group[first:], group[:first]))
            else:
                return None
        return found


class Rows(Parts):
    """The rows of a frame, as the JVM has them, in batches that Spark weighs."""

    def made(self) -> Any:
        """Make the RDD of the plan."""
        return self.frame._jdf.queryExecution().toRdd()

    def read_by(self, task: RegionTask, java_rdd: Any) -> Any:
        """Return the JavaRDD of a frame of such rows."""
        session, schema = self.frame.sparkSession, self.frame._jdf.schema()
        rows = session._jsparkSession.internalCreateDataFrame(java_rdd.rdd(), schema, False)
        return over_plan(rows.queryExecution().executedPlan(), session, task)

    def computation(self, task: RegionTask) -> Computation:
        """Return the computation of a task over all partitions."""
        plan, session = self.frame._jdf.queryExecution().executedPlan(), self.frame.sparkSession
        shuffles = _shuffles(plan, session)
        java_rdd = self.read_by(task, self.rdd.toJavaRDD()) if shuffles else over_plan(plan, session, task)
        return Computation(java_rdd, partial(self.gather, task))


def _shuffles(plan: Any, session: Any) -> bool:
    """Return whether a plan may have a shuffle before it is run. Spark adapts such plans, unless configured not to."""
    if session.conf.get("spark.sql.adaptive.enabled") != "true":
        return True
    name: str = plan.nodeName()
    return name.startswith("AdaptiveSparkPlan")
