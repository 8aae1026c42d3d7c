"""The source that is a DataFrame or an RDD, together with the stages that run where its data is."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from attrs import Factory, evolve, field, frozen
from pyspark import RDD, SparkContext
from pyspark.sql import Row
from pyspark.sql.classic.dataframe import DataFrame

from ..._core.guard import FAILURES
from ..._fusion import KEYED, SORT, InTurn, Partial, Placed, Stage
from ..._plan import Capabilities, Elsewhere, Inlet, Pushed, Source
from ..._remote.variables import Values, Variable, values_in, variables
from ...errors import UnsupportedOnSparkError
from ...operators._fluent import check_flag
from ...operators.scheduling.repartition import Repartition
from ...spec import Subscription
from .._delivery.at_end import DeliveryAtEnd
from .._delivery.in_turn import DeliveryInTurn
from .._delivery.ordered import OrderedDelivery
from .._delivery.subscription import SparkSubscription
from .._delivery.unordered import UnorderedDelivery
from .._job.asking import asking
from .._job.calls import is_connect
from .._job.computation import Computation
from .._job.local_properties import NO_PROPERTIES, LocalProperties
from .._task.batches import reading_of
from .._task.packing import ToShuffle
from .._task.pickling import dumps_for_jobs, note_values, of_user
from .._task.rows import WIDE, Reading
from .._task.slices import suit
from .._task.worker import RegionTask
from . import arrow
from .capabilities import ORDERED, UNORDERED
from .gathering import Rows
from .insight import bounds, details
from .naming import chosen, plain, told_apart
from .over_plan import planned
from .portable import check_importable, check_portable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .._delivery.delivery import Delivery
    from .._task.worker import PartitionTask

Task = TypeVar("Task", bound="PartitionTask")

WIRES: Final = ("tcp", "results")


@frozen(eq=False)
class FromSpark(Pushed[Any]):
    """Source of ``Flow.from_spark``."""

    data: DataFrame | RDD[Any]
    reading: Reading | None
    """The type that rows become, for a DataFrame."""
    prefetch: int | None
    ordered: bool = True
    is_told = True
    stages: tuple[Placed[Stage[Any, Any]], ...] = field(default=(), repr=False)
    variables: tuple[Variable, ...] = field(default=(), repr=False, kw_only=True)
    """The context variables of the subscriber that go along."""
    values: Values = field(factory=Values, repr=False, kw_only=True)
    """Their values, in one subscription."""
    properties: LocalProperties = field(default=NO_PROPERTIES, repr=False, kw_only=True)
    """The local properties of its jobs."""

    capabilities: Capabilities = field(
        default=Factory(lambda it: it.of_data, takes_self=True), repr=False, kw_only=True
    )
    """The capabilities of the workers after the last stage."""

    @property
    def of_data(self) -> Capabilities:
        """Return what the workers can run before any stage."""
        return ORDERED if self.ordered else UNORDERED

    @property
    def arguments(self) -> str:
        """The kind of data: to show more would take a call into the JVM."""
        kind = "RDD" if self.reading is None else f"DataFrame, as_={self.reading.kind.__name__}"
        return kind if self.ordered else f"{kind}, ordered=False"

    @property
    def delivery(self) -> type[Delivery]:
        """The kind of delivery: what comes at the ends of partitions only is made side by side, and comes in order."""
        if self.in_turn:
            return DeliveryInTurn
        last = self.stages[-1].operator if self.stages else None
        if isinstance(last, Partial) and last.at_end:
            return DeliveryAtEnd
        return OrderedDelivery if self.ordered else UnorderedDelivery

    @property
    def in_turn(self) -> bool:
        """Whether a partition has to know how many elements came before it."""
        return any(isinstance(placed.operator, InTurn) for placed in self.stages)

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
    def session(self) -> SparkSession | None:
        """The session of a DataFrame."""
        return None if isinstance(self.data, RDD) else self.data.sparkSession

    @property
    def elsewhere(self) -> Elsewhere:
        """The region on Spark."""
        return Elsewhere(f"Spark {self.context.master}", self.work, f"credit boundary, {bounds(self)}")

    @property
    def work(self) -> str:
        """Return the work of the region."""
        operators = [placed.operator for placed in self.stages]
        # A shuffle takes two stages, and the second one shows it.
        return " -> ".join([str(self), *(str(each) for each in operators if not isinstance(each, ToShuffle))])

    @property
    def makes_rows(self) -> bool:
        """Whether rows are made on the loop, since nothing is done with them in the workers.

        It may take a call into the JVM.
        """
        frame: Any = self.data
        return self.reading is not None and not self.stages and suit(self.reading, frame.schema)

    @property
    def carried(self) -> str:
        """Describe in words what travels."""
        if self.reading is None:
            return "pickled chunks"
        try:
            here = self.makes_rows
        except Exception:  # the session has ended; the plan is to be seen all the same
            here = False
        return f"Arrow into the workers{' and in slices, to be made rows here,' if here else ', pickled chunks'}"

    @property
    def details(self) -> tuple[str, ...]:
        """How the partitions are run, how elements travel, and where to look at it."""
        return details(self)

    def lower(self, stage: Placed[Stage[Any, Any]]) -> FromSpark:
        """Run a stage in the workers: on the partitions, which are parts of the whole, or on ranges of sorted elements."""
        if stage.operator.requirement is SORT:
            from .sorting import SparkSorted

            return SparkSorted.of(self, stage)
        spread = isinstance(stage.operator, Repartition) and KEYED in self.capabilities.runs
        if spread or stage.operator.requirement is KEYED:
            from .keyed import SparkKeyed

            return SparkKeyed.of(self, stage)
        left = self.capabilities.after(stage.operator.requirement)
        return evolve(self, stages=(*self.stages, stage), capabilities=left)

    def join(self, others: tuple[Source[Any], ...], method: str) -> FromSpark | None:
        """Make one job of several, if all of them are jobs of this kind."""
        from .union import union

        sources = (self, *(each for each in others if isinstance(each, FromSpark)))
        return union(sources, method) if len(sources) == len(others) + 1 else None

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Start a job."""
        subscription = SparkSubscription(inlet, self.within(inlet.context))
        subscription.begin()
        return subscription

    def within(self, context: Context) -> Self:
        """Return the source with the values that its variables have for a subscriber."""
        return evolve(self, values=values_in(context, self.variables))

    def by_clock_of(self, zone: str) -> Self:
        """Return the source with its times read by the clock of a zone, and not by that of its session. An RDD has its own objects."""
        return self if self.reading is None else evolve(self, reading=evolve(self.reading, zone=zone))

    def ready(self) -> FromSpark:
        """Return a source whose data is what its stages are to read."""
        return self

    @property
    def flows(self) -> tuple[FromSpark, ...]:
        """The sources that this one is made of, each with all of its stages."""
        return (self,)

    # -- on the threads of the job

    def pickled(self) -> bytes:
        """Pickle the stages, and the values of variables; raises NotPickled where they raise anything."""
        return of_user(self._pickled)

    def _pickled(self) -> bytes:
        for stage in self.stages:
            check_portable(stage, stage)
        try:
            return dumps_for_jobs((self.stages, self.values))
        except FAILURES as error:
            note_values(error, self.values)
            raise

    def computation(self, task: RegionTask) -> Computation:
        """Return what the job of a subscription computes."""
        rounds = any(isinstance(placed.operator, Partial) and placed.operator.rounds for placed in self.stages)
        if isinstance(self.data, RDD) or rounds or type(self) is not FromSpark:
            return Computation(self.java_rdd(task))
        if (quick := self._quick(task)) is not None:
            return quick
        frame, task = self.readable(self.data, task)
        with planned(frame) as readable:
            return Rows(readable).computation(task)

    def java_rdd(self, task: PartitionTask) -> Any:
        """Return the JavaRDD whose computation is the task. This may run the stages of Spark before a shuffle."""
        if isinstance(self.data, RDD):
            mapped: Any = self.data.mapPartitionsWithIndex(task.over_items)
            return mapped._jrdd
        if isinstance(task, RegionTask) and (quick := self._quick(task)) is not None:
            return quick.java_rdd
        frame, task = self.readable(self.data, task)
        work: Any = frame.mapInArrow(task.over_batches, task.schema)
        return work._jdf.javaToPython()

    def _quick(self, task: RegionTask) -> Computation | None:
        """Return the computation over batches that Spark does not weigh, if it can make such."""
        return arrow.computation(self.data, evolve(task, sliced=self.makes_rows))

    def readable(self, frame: Any, task: Task) -> tuple[Any, Task]:
        """Choose the columns to read, and pass them to the task."""
        assert task.reading is not None
        frame, reading = selected(frame, task.reading)
        return frame, evolve(task, reading=reading, sliced=self.makes_rows)


def selected(frame: Any, reading: Reading) -> tuple[Any, Reading]:
    """Choose the columns to read, and make their names unique. A frame of Spark Connect is accepted."""
    frame = frame if reading.columns is None else chosen(frame, reading.columns)
    labels = tuple(frame.columns)
    if not labels:
        # Batches without columns would arrive without rows as well.
        frame, reading = frame.selectExpr("true"), evolve(reading, blank=True)
    elif not plain(labels):
        frame, reading = frame.toDF(*map(str, range(len(labels)))), evolve(reading, labels=labels)
    frame = told_apart(frame, reading.declared)
    if len(labels) > WIDE:
        # PySpark looks each column up by its name, in a time that grows with the square of their number.
        frame, reading = frame.selectExpr("struct(*) AS row"), evolve(reading, packed=True)
    return frame, reading


def from_spark(
    data: Any,
    as_: type[Any] | None,
    prefetch: int,
    ordered: bool,
    wire: str | None,
    context: Iterable[ContextVar[Any]] = (),
    output_mode: str = "append",
    trigger: Any = None,
) -> FromSpark:
    """Check the arguments of ``Flow.from_spark`` for data of a batch."""
    made = _made(data, as_, prefetch, ordered, wire)
    for argument, value, unset in (("output_mode", output_mode, "append"), ("trigger", trigger, None)):
        if value != unset:
            raise TypeError(
                f"from_spark({argument}={value!r}) takes a streaming DataFrame, made with spark.readStream, not a {type(data).__name__} "
                "of a batch. Leave the argument out"
            )
    found = check_importable("from_spark", variables("from_spark", context))
    properties = NO_PROPERTIES if is_connect(data) else LocalProperties.here(made.context)
    return evolve(made, variables=found, properties=properties)


def _made(data: Any, as_: type[Any] | None, prefetch: int, ordered: bool, wire: str | None) -> FromSpark:
    from .._results.source import from_results

    check_flag("from_spark", "ordered", ordered)
    given = data  # by its declared type, which isinstance narrows to an RDD of unknown elements
    if wire not in (None, *WIRES):
        raise ValueError(f"from_spark(wire={wire!r}): choose one of {', '.join(map(repr, WIRES))}")
    connect = is_connect(data)
    if connect and not hasattr(data, "mapInArrow"):
        raise TypeError(f"from_spark() takes a DataFrame or an RDD of PySpark, not {type(data).__name__}")
    if connect and wire == "tcp":
        raise UnsupportedOnSparkError(
            "from_spark(wire='tcp') needs a classic session, because workers of Spark Connect can't connect to this process. "
            "Set wire='results', or build the session with .master(...), not with .remote(...)"
        )
    if isinstance(data, RDD) and as_ is not None:
        raise TypeError(
            "from_spark(as_=...) is for the rows of a DataFrame. Leave it out for an RDD, and convert its elements with map()"
        )
    if not connect and not isinstance(data, (RDD, DataFrame)):
        raise TypeError(f"from_spark() takes a DataFrame or an RDD of PySpark, not {type(data).__name__}")
    with asking("from_spark", given.context if isinstance(data, RDD) else given.sparkSession):
        if isinstance(data, DataFrame) and data.isStreaming:
            raise TypeError(
                "from_spark() of a streaming DataFrame needs checkpoint=..., a folder that records the progress of the stream. "
                "The elements of the flow are micro-batches"
            )
        if connect or wire == "results":
            return from_results(given, as_, prefetch, ordered)
        reads = None if isinstance(data, RDD) else reading_of(Row if as_ is None else as_, data.schema)
        return FromSpark(given, reads, prefetch, ordered)
