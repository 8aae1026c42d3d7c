"""The source that is a DataFrame or an RDD, together with the stages that run where its data is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen
from pyspark import RDD, SparkContext
from pyspark.sql import Row
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.functions import lit

from ..errors import UnsupportedOnSparkError
from ..segments import Elsewhere, Inlet, Partial, Placed, Pushed, Stage, Step, divided
from ..spec import Subscription
from .insight import details
from .lowering.delivery import DeliveryAtEnd
from .ordered import OrderedDelivery
from .pickling import dumps_by_value
from .portable import check_portable
from .rows import Reading, reading
from .subscription import SparkSubscription
from .unordered import UnorderedDelivery

if TYPE_CHECKING:
    from .delivery import Delivery
    from .worker import RegionTask

ENDS = "ends long"
"""The schema of what comes out of a region over a DataFrame: nothing, for the elements take another way."""


@frozen(eq=False)
class FromSpark(Pushed[Any]):
    """Source of ``Flow.from_spark``."""

    data: DataFrame | RDD[Any]
    reading: Reading | None
    """What rows become, for a DataFrame."""
    prefetch: int | None
    ordered: bool = True
    stages: tuple[Placed[Stage[Any, Any]], ...] = field(default=(), repr=False)

    lowers = True

    @property
    def arguments(self) -> str:
        """The kind of data: to show more would take a call into the JVM."""
        kind = "RDD" if self.reading is None else f"DataFrame, as_={self.reading.kind.__name__}"
        return kind if self.ordered else f"{kind}, ordered=False"

    @property
    def delivery(self) -> type[Delivery]:
        """The kind of delivery: what comes at the ends of partitions only is made side by side, and comes in order."""
        last = self.stages[-1].operator if self.stages else None
        if isinstance(last, Partial) and last.at_end:
            return DeliveryAtEnd
        return OrderedDelivery if self.ordered else UnorderedDelivery

    @property
    def ahead(self) -> int:
        """The elements that may be outstanding."""
        assert self.prefetch is not None
        return self.prefetch

    @property
    def context(self) -> SparkContext:
        """The context of the session."""
        return self.data.context if isinstance(self.data, RDD) else self.data.sparkSession.sparkContext

    @property
    def elsewhere(self) -> Elsewhere:
        """The region on Spark."""
        work = " -> ".join([str(self), *(str(placed.operator) for placed in self.stages)])
        return Elsewhere(f"Spark {self.context.master}", work, f"credit boundary, prefetch {self.prefetch}")

    @property
    def details(self) -> tuple[str, ...]:
        """How the partitions are run, how elements travel, and where to look at it."""
        return details(self)

    def absorb(self, stage: Placed[Stage[Any, Any]]) -> FromSpark | None:
        """Run a stage in the workers, unless it depends on the order of the whole; the partitions are parts of it."""
        if stage.operator.positional and not isinstance(stage.operator, Partial):
            return None
        return evolve(self, stages=(*self.stages, stage))

    def check(self, before: tuple[Step, ...], stage: Placed[Stage[Any, Any]]) -> None:
        """Refuse a stage that would run in the workers, on the whole or in parts, and can't be sent there."""
        if any(not isinstance(step.operator, Stage) or step.operator.positional for step in before):
            return
        if not stage.operator.positional:
            check_portable(stage, stage)
        elif (both := divided(stage.operator)) is not None:
            check_portable(stage, both[0])

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Start a job."""
        subscription = SparkSubscription(inlet, self)
        subscription.begin()
        return subscription

    # -- on the threads of the job

    def pickled(self) -> bytes:
        """Pickle the stages."""
        for stage in self.stages:
            check_portable(stage, stage)
        return dumps_by_value(self.stages)

    def java_rdd(self, task: RegionTask) -> Any:
        """Give the JavaRDD whose computation is the task; this may run the stages of Spark before a shuffle."""
        if isinstance(self.data, RDD):
            mapped: Any = self.data.mapPartitionsWithIndex(task.over_items)
            return mapped._jrdd
        assert self.reading is not None
        columns = self.reading.columns
        frame = self.data if columns is None else self.data.select(*(f"`{name}`" for name in columns))
        labels = tuple(frame.columns)
        if not labels:
            # Batches without columns would arrive without rows as well.
            frame = frame.select(lit(True))
            task = evolve(task, reading=evolve(self.reading, blank=True))
        elif len({label.lower() for label in labels}) < len(labels):
            # Spark refers to columns by name here, so those that share one pass under another.
            frame = frame.toDF(*map(str, range(len(labels))))
            task = evolve(task, reading=evolve(self.reading, labels=labels))
        work: Any = frame.mapInArrow(task.over_batches, ENDS)
        return work._jdf.javaToPython()


def from_spark(data: Any, as_: type[Any] | None, prefetch: int, ordered: bool) -> FromSpark:
    """Check the arguments of ``Flow.from_spark``."""
    given = data  # by its declared type, which isinstance narrows to an RDD of unknown elements
    if isinstance(data, RDD):
        if as_ is not None:
            raise TypeError(
                "from_spark(as_=...) is for the rows of a DataFrame; the elements of an RDD are what they are"
            )
        return FromSpark(given, None, prefetch, ordered)
    if isinstance(data, DataFrame):
        if data.isStreaming:
            raise TypeError(
                "from_spark() of a streaming DataFrame needs a checkpoint=..., the folder that remembers how far it has "
                "come; its elements are then micro-batches"
            )
        return FromSpark(data, reading(as_ or Row, lambda: data.schema), prefetch, ordered)
    if type(data).__module__.startswith("pyspark.sql.connect."):
        raise UnsupportedOnSparkError(
            "from_spark() needs a classic session: with Spark Connect there is no way yet for the workers to reach "
            "this process; build the session with .master(...) rather than .remote(...)"
        )
    raise TypeError(f"from_spark() takes a DataFrame or an RDD of PySpark, not {type(data).__name__}")
