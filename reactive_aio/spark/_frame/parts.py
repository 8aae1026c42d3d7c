"""A flow taken apart: the data that Spark reads, the stages that its tasks run, and what Spark does with the rows itself."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from ..._fusion import AWAIT, ELEMENT, KEYED, Placed
from ..._plan import FlowLike, Nodes, PublishOn, SubscribeOn
from ...operators.scheduling.repartition import Repartition
from ...operators.transforming.handle import Handle
from .._source.capabilities import check_order
from .._source.source import FromSpark
from .._source.union import together
from .by_spark import applied, told_apart, whatever_the_order
from .columns import with_columns
from .handling import HandleOfPart
from .refusals import refused_between, refused_part, refused_place, refused_rows, refused_source, refused_stage

Steps = tuple[Placed[Any], ...]


@frozen
class Parts:
    """The parts of a flow; several sources for flows that are read one after another."""

    sources: tuple[FromSpark, ...]
    """The data, each with the stages that its tasks run."""
    before: Steps = ()
    """The work of Spark on the rows of the only source."""
    behind: Steps = ()
    """The work of Spark on the rows of the frame."""

    @property
    def untouched(self) -> bool:
        """Whether the elements are still the rows of one frame."""
        return len(self.sources) == 1 and self.sources[0].reading is not None and not self.sources[0].stages

    @property
    def in_batches(self) -> bool:
        """Whether elements may be batches, so that Spark's rows are not the elements."""
        return any(source.reading is not None and source.reading.large for source in self.sources)

    @property
    def ordered(self) -> bool:
        """Whether something relies on the order of the elements."""
        return any(source.ordered for source in self.sources)


def parts_of(method: str, flow: FlowLike, columns: tuple[str, ...] | None = None) -> Parts:
    """Take a flow apart. Refuse what can be no part of a frame. With ``columns`` its sources have no others."""
    nodes = flow.__nodes__
    parts = _begun(method, nodes, columns)
    for step in nodes.steps:
        parts = _with(method, parts, step)
    return parts


def _begun(method: str, nodes: Nodes, columns: tuple[str, ...] | None) -> Parts:
    source = nodes.source.operator
    if isinstance(source, FromSpark):
        return Parts((source if columns is None else with_columns(source, columns),))
    stage = source.as_stage()
    if stage is not None:
        return _with(method, parts_of(method, source.inner[0], columns), Placed(stage, nodes.source.origin))
    if source.sequence:
        row = [parts_of(method, flow, columns) for flow in source.sequence]
        for parts in row:
            if done := (*parts.before, *parts.behind):
                raise refused_part(method, done[0], nodes.source)
        return Parts(tuple(each for parts in row for each in parts.sources))
    raise refused_source(method, nodes.source)


def _with(method: str, parts: Parts, step: Placed[Any]) -> Parts:
    """Add a step. A step for one element after another is added to each source alike."""
    operator: Any = step.operator
    if isinstance(operator, (PublishOn, SubscribeOn)):
        raise refused_place(method, step)
    if isinstance(step.operator, Handle):
        step = Placed(HandleOfPart[Any, Any](operator.fn), step.origin)
    if step.operator.requirement is KEYED or isinstance(step.operator, Repartition):
        return _shuffled(method, parts, step)
    if step.operator.requirement in {ELEMENT, AWAIT}:
        if parts.behind:
            raise refused_between(method, parts.behind[-1], step)
        sources = [evolve(source, stages=(*source.stages, step)) for source in parts.sources]
        return evolve(parts, sources=tuple(sources))
    return _by_spark(method, parts, step)


def _shuffled(method: str, parts: Parts, step: Placed[Any]) -> Parts:
    """Shuffle the elements, after what Spark does with the rows before; those of several sources together."""
    check_order(step.operator)
    if parts.behind:
        raise refused_between(method, parts.behind[-1], step)
    source = parts.sources[0] if len(parts.sources) == 1 else together(parts.sources, "join")
    if parts.before:
        source = evolve(source, data=applied(source.data, parts.before))
    return Parts((source.lower(step),))


def _by_spark(method: str, parts: Parts, step: Placed[Any]) -> Parts:
    """Leave a step to Spark, where that means what the step means."""
    counted = not parts.ordered and whatever_the_order(step)
    if counted and parts.in_batches:
        raise refused_rows(method, step, in_batches=True)
    if not parts.ordered and not parts.in_batches:
        if parts.untouched and (whatever_the_order(step) or told_apart(step, parts.sources[0])):
            return evolve(parts, before=(*parts.before, step))
        if whatever_the_order(step) and method == "to_frame":
            return evolve(parts, behind=(*parts.behind, step))
    if counted:
        raise refused_rows(method, step, in_batches=False)
    raise refused_stage(method, step)
