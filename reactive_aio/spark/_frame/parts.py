"""A flow taken apart: the data that Spark reads, and the stages that its tasks run; several parts for flows in a row."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from ..._fusion import AWAIT, ELEMENT, Placed
from ..._plan import FlowLike, Nodes, PublishOn, SubscribeOn
from ...operators.transforming.handle import Handle
from .._source.source import FromSpark
from .handling import HandleOfPart
from .refusals import refused_place, refused_source, refused_stage

Parts = tuple[FromSpark, ...]


def parts_of(method: str, flow: FlowLike) -> Parts:
    """Give the sources of a flow in their order, each with the stages that its tasks run; refuse what they can't."""
    nodes = flow.__nodes__
    parts = _begun(method, nodes)
    for step in nodes.steps:
        parts = _with(method, parts, step)
    return parts


def _begun(method: str, nodes: Nodes) -> Parts:
    source = nodes.source.operator
    if isinstance(source, FromSpark):
        return (source,)
    stage = source.as_stage()
    if stage is not None:
        return _with(method, parts_of(method, source.inner[0]), Placed(stage, nodes.source.origin))
    if source.sequence:
        return tuple(part for flow in source.sequence for part in parts_of(method, flow))
    raise refused_source(method, nodes.source)


def _with(method: str, parts: Parts, step: Placed[Any]) -> Parts:
    """Add a step to each part: what is done for one element after another is done for those of each alike."""
    if isinstance(step.operator, (PublishOn, SubscribeOn)):
        raise refused_place(method, step)
    operator: Any = step.operator  # isinstance narrows it to a stage of unknown elements
    if isinstance(step.operator, Handle):
        step = Placed(HandleOfPart[Any, Any](operator.fn), step.origin)
    if step.operator.requirement not in {ELEMENT, AWAIT}:
        raise refused_stage(method, step)
    return tuple(evolve(part, stages=(*part.stages, step)) for part in parts)
