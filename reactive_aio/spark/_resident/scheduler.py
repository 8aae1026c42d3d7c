"""The scheduler whose workers are tasks of a Spark cluster that stay as long as there is work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import Context, ContextVar
from typing import Any, ClassVar, Final

from attrs import define
from pyspark import SparkContext
from pyspark.sql import SparkSession

from ..._remote.frames import REGION, Frame
from ..._remote.limit import MOST_BYTES, ByteLimit
from ..._remote.pickling import Buffers
from ..._remote.variables import Variable, values_in, variables
from ...errors import UnsupportedOnSparkError
from ...operators._fluent import check_count
from ...schedulers.base import Reports, Work, WorkerRegion
from .._job.asking import asking
from .._job.local_properties import NO_PROPERTIES, LocalProperties
from .._source.insight import ui_of
from .._source.portable import check_importable, check_portable
from .._task.pickling import dumps, dumps_by_value
from .region import ResidentRegion

BEAT: Final = 5.0
"""Seconds between two signs of life of a task."""


@define(eq=False, repr=False)
class SparkWorkers:
    """Resident tasks of a cluster (Workers)."""

    context: SparkContext
    count: int
    """The tasks that work at the same time."""
    idle: float
    """Seconds without work after which a task ends."""
    beat: float = BEAT
    variables: tuple[Variable, ...] = ()
    """The context variables that go along."""
    properties: LocalProperties = NO_PROPERTIES
    """The local properties of its jobs."""

    awaits: ClassVar[bool] = True
    """Each Python worker has an event loop for what its regions await."""

    @property
    def name(self) -> str:
        """The name of the place in plans."""
        return f"spark({self.context.master}, slots={self.count})"

    @property
    def byte_limit(self) -> ByteLimit:
        """The bytes that a region in the tasks may have outstanding."""
        return ByteLimit.of(MOST_BYTES, self.count)

    @property
    def details(self) -> tuple[str, ...]:
        """When there are tasks, how elements travel, and where to look at it; for plans."""
        tasks = f"a task for each chunk that waits, up to {self.count}, which ends after {self.idle:g} s without work"
        return (tasks, "pickled chunks over TCP to this process and back", *ui_of(self.context))

    def check(self, stage: object) -> None:
        """Raise unless the stage can be sent to the cluster."""
        check_portable(stage, stage, resident=True)

    def add_region(self, work: Work, most: int, context: Context, reports: Reports) -> WorkerRegion:
        """Take a region in; its tasks start with the first chunk."""
        function = (dumps_by_value(work), values_in(context, self.variables))
        buffers: Buffers = []
        pickled, *more = dumps(function, buffers)
        introduction = Frame(REGION, detail=self.byte_limit.share, pickled=pickled, buffers=buffers, more=more)
        region = ResidentRegion(self, introduction, most, reports, asyncio.get_running_loop())
        region.begin()
        return region


def workers(session: Any, slots: int | None, idle: float, context: Iterable[ContextVar[Any]] = ()) -> SparkWorkers:
    """Check the arguments of ``schedulers.spark``."""
    given = session  # by its declared type, which isinstance narrows
    if not isinstance(session, SparkSession):
        if type(given).__module__.startswith("pyspark.sql.connect."):
            raise UnsupportedOnSparkError(
                "schedulers.spark() needs a classic session: with Spark Connect the workers can't "
                "reach this process. Build the session with .master(...), not with .remote(...)"
            )
        raise TypeError(f"schedulers.spark() takes a session of PySpark, not {type(given).__name__}")
    if slots is not None:
        check_count("schedulers.spark", "slots", slots, 1)
    if not idle > 0:
        raise ValueError(f"schedulers.spark(idle={idle!r}): idle must be a number of seconds above 0")
    at = session.sparkContext
    found = check_importable("schedulers.spark", variables("schedulers.spark", context))
    with asking("schedulers.spark", at):
        count = slots or max(1, at.defaultParallelism - 1)
        return SparkWorkers(at, count, idle, variables=found, properties=LocalProperties.here(at))
