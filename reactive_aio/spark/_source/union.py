"""Flows on Spark that are read one after another, as the partitions of one source.

Read by an arbiter, the second flow would begin when the first has ended, and a count of both would take the time of
both. As one union their partitions are prepared once, work ahead of their turn, and side by side where what comes of them
is combined.
"""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, Self

from attrs import evolve, field, frozen

from .insight import details
from .source import FromSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .._task.worker import PartitionTask

MOST: Final = 64
"""Flows in one union: each is lineage that Spark's driver has to go through."""


@frozen(eq=False)
class SparkUnion(FromSpark):
    """Several sources, in their order, each with its own stages, and then the stages of all."""

    parts: tuple[FromSpark, ...] = field(default=(), kw_only=True)
    method: str = field(default="concat", kw_only=True)

    @property
    def name(self) -> str:
        """The name of the method that has put them together."""
        return self.method

    @property
    def arguments(self) -> str:
        """Return the steps of each, or once those of all if they are the same."""
        works = [part.elsewhere.work for part in self.parts]
        return f"{works[0]}, {len(works)}" if self.method == "repeat" else ", ".join(works)

    @property
    def details(self) -> tuple[str, ...]:
        """How the partitions are run, how elements travel, and where to look at it."""
        first, *others = details(self)
        return (f"partitions of {len(self.parts)} flows, {first.partition(', ')[2]}", *others)

    @property
    def carried(self) -> str:
        """Describe in words what travels, of one flow or another."""
        return " or ".join(dict.fromkeys(self._whole(part).carried for part in self.parts))

    @property
    def session(self) -> SparkSession | None:
        """The session of the first DataFrame, for some may be RDDs."""
        return next((part.session for part in self.parts if part.session is not None), None)

    def _whole(self, part: FromSpark) -> FromSpark:
        return evolve(part, stages=(*part.stages, *self.stages))

    def within(self, context: Context) -> Self:
        """Return each source with the current values of its variables."""
        return evolve(self, parts=tuple(part.within(context) for part in self.parts))

    def by_clock_of(self, zone: str) -> Self:
        """Return the sources with their times read by one clock."""
        return evolve(self, parts=tuple(part.by_clock_of(zone) for part in self.parts))

    @property
    def flows(self) -> tuple[FromSpark, ...]:
        """The parts, with the stages of all."""
        return tuple(map(self._whole, self.parts))

    def java_rdd(self, task: PartitionTask) -> Any:
        """Return the union of the parts' RDDs. Its partitions are theirs, one after another."""
        context: Any = self.context
        rdds = context._gateway.new_array(context._jvm.org.apache.spark.api.java.JavaRDD, len(self.parts))
        for at, part in enumerate(self.parts):
            whole = self._whole(part)
            own = evolve(task, source=str(part), stages=whole.pickled(), reading=part.reading)
            rdds[at] = whole.java_rdd(own)
        return context._jsc.union(rdds)


def union(sources: tuple[FromSpark, ...], method: str) -> SparkUnion | None:
    """Combine sources, if they are read in order, by one session and on the same terms."""
    from .keyed import SparkKeyed

    made = together(sources, method)
    first = made.parts[0]
    alike = all(
        (
            type(part) in (FromSpark, SparkKeyed)  # the order of parts that are shuffled makes no difference
            if method == "join"
            else type(part) is FromSpark
            and part.ordered
            and part.prefetch == first.prefetch
            and part.session in (None, made.session)  # another one has settings of its own
        )
        and not part.in_turn
        and part.context is first.context  # sessions of Spark Connect, which are not of these types, have none
        for part in made.parts
    )
    return made if alike and len(made.parts) <= MOST else None


def together(sources: tuple[FromSpark, ...], method: str) -> SparkUnion:
    """Put sources together for a frame, which Spark reads as one whatever they are."""
    parts: list[FromSpark] = []
    for each in sources:
        parts += each.parts if isinstance(each, SparkUnion) and not each.stages else (each,)
    first = parts[0]
    variables = tuple(dict.fromkeys(variable for part in parts for variable in part.variables))
    return SparkUnion(
        first.data, first.reading, first.prefetch, variables=variables, properties=first.properties, parts=tuple(parts),
        method=method,
    )  # fmt: skip
