"""The source whose elements are results of Spark jobs, of a classic session or of Spark Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen
from pyspark import RDD
from pyspark.sql import Row

from ..._plan import Capabilities, Elsewhere
from ...errors import UnsupportedOnSparkError
from .._job.calls import is_connect
from .._source.capabilities import RESULTS
from .._source.insight import partitions_of, ui_of
from .._source.source import FromSpark
from .._task.batches import reading_of
from .pulling import ClassicPulling, ConnectPulling
from .subscription import ResultsSubscription
from .task import ResultsTask

if TYPE_CHECKING:
    from ..._plan import Inlet
    from ...spec import Subscription
    from .._task.connecting import Address


@frozen(eq=False)
class FromResults(FromSpark):
    """Source of ``Flow.from_spark(wire="results")``."""

    connect: bool = False
    """Whether the session is one of Spark Connect."""

    @property
    def of_data(self) -> Capabilities:
        """Return what the workers can run before any stage."""
        return RESULTS

    @property
    def name(self) -> str:
        """The name of the method."""
        return "from_spark"

    @property
    def arguments(self) -> str:
        """The kind of data, and that it travels by results."""
        return f"{super().arguments}, wire='results'"

    @property
    def elsewhere(self) -> Elsewhere:
        """The region on Spark."""
        place = "Spark Connect" if self.connect else f"Spark {self.context.master}"
        return Elsewhere(place, self.work, f"results of jobs, prefetch {self.prefetch}")

    @property
    def details(self) -> tuple[str, ...]:
        """How the partitions are run, how elements travel, and where to look at it."""
        if self.connect:
            return (
                "partitions as Spark plans them, one after the other",
                f"{self.carried} as the results of a Connect server",
            )
        wire = f"{self.carried} as the results of a job for each partition, which the driver's JVM keeps while they are read"
        return (f"{partitions_of(self)}, one after the other", wire, *ui_of(self.context))

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Wait for demand; then run the jobs."""
        source = self.within(inlet.context)
        pulling = ConnectPulling(source) if self.connect else ClassicPulling(source)
        subscription = ResultsSubscription(inlet, pulling)
        subscription.begin()
        return subscription

    def task(self, lifeline: Address | None = None) -> ResultsTask:
        """Return the task for the workers. It runs on a thread."""
        return ResultsTask(str(self), self.pickled(), self.reading, lifeline=lifeline)


def from_results(data: Any, as_: type[Any] | None, prefetch: int, ordered: bool) -> FromResults:
    """Check the arguments of ``Flow.from_spark`` for a frame or an RDD whose kind is known."""
    given = data  # by its declared type, which isinstance narrows to an RDD of unknown elements
    if isinstance(data, RDD):
        return FromResults(given, None, prefetch, ordered)
    if data.isStreaming:
        raise UnsupportedOnSparkError(
            "from_spark() can't read a streaming DataFrame of Spark Connect, because micro-batches can't reach "
            "this process. Build the session with .master(...), not with .remote(...), and set checkpoint=..."
        )
    return FromResults(
        data, reading_of(Row if as_ is None else as_, data.schema), prefetch, ordered, connect=is_connect(data)
    )
