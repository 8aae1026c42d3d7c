"""The plan of a flow: its steps, rewritten for the engines that will run them, and cut into regions at the boundaries.

Two stages share a region unless a boundary stands between them. Whether an engine fuses, ships or draws a region is its
own affair.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import frozen

from .._fusion.origin import Placed
from .nodes import FlowLike, Nodes, PublishOn, SubscribeOn, followed
from .rewrites import rewritten

if TYPE_CHECKING:
    from .._fusion.stage import Stage
    from ..schedulers.base import Scheduler
    from .source import Source


@frozen
class Region:
    """A stretch of a flow between two boundaries."""

    feed: object
    """The input of the region, an operator or whatever its ``str`` names."""
    stages: tuple[Placed[Stage[Any, Any]], ...]
    scheduler: Scheduler | None
    """The place of the region; None stands for the event loop of the subscriber."""
    boundary: PublishOn | None
    """The boundary in front of the region; None in front of the first."""

    @cached_property
    def source(self) -> str:
        """Describe in words what feeds the region."""
        return str(self.feed)


@frozen
class Plan:
    """A flow cut at its boundaries: the source, and the regions from there to the end."""

    source: Placed[Source[Any]]
    regions: tuple[Region, ...]
    follows: bool = False
    """Whether the first region runs where the flow ends that its combinator was called on."""
    moved: Scheduler | None = None
    """The place to which ``subscribe_on`` has moved the first region, or the flows that it reads."""
    rewrites: tuple[str, ...] = ()
    """The rewrites, in words, in their order."""

    @staticmethod
    def of(flow: FlowLike) -> Plan:
        """Return the plan of a flow, which is made once."""
        nodes = flow.__nodes__
        if nodes.plan is None:
            nodes.plan = _cut(*rewritten(nodes))
        return nodes.plan

    def then(self, stage: Placed[Stage[Any, Any]]) -> Plan:
        """Return the plan with one more stage in the last region."""
        *before, last = self.regions
        region = Region(last.feed, (*last.stages, stage), last.scheduler, last.boundary)
        return Plan(self.source, (*before, region), self.follows, self.moved, self.rewrites)


def _cut(nodes: Nodes, rewrites: tuple[str, ...]) -> Plan:
    """Cut a flow at its boundaries. Of several ``subscribe_on`` the one nearest to the source counts, as in Reactor."""
    source = nodes.source.operator
    stages: list[Any] = []
    rows: list[tuple[object, list[Any], PublishOn | None]] = [(nodes.source, stages, None)]
    moved: Scheduler | None = None
    for step in nodes.steps:
        operator = step.operator
        if isinstance(operator, PublishOn):
            stages = []
            rows.append((step, stages, operator))
        elif isinstance(operator, SubscribeOn):
            moved = moved or operator.scheduler
        else:
            stages.append(step)
    leader = followed(source)
    first = leader or moved
    regions = [
        Region(feed, tuple(row), first if boundary is None else boundary.scheduler, boundary)
        for feed, row, boundary in rows
    ]
    return Plan(nodes.source, tuple(regions), leader is not None, moved, rewrites)
