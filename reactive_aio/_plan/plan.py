"""The plan of a flow: its steps, rewritten for the engines that will run them, and cut into regions at the boundaries.

Two stages share a region unless a boundary stands between them; whether an engine fuses, ships or draws a region is its own affair.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import frozen

from .._fusion.origin import Placed
from .nodes import FlowLike, Nodes, PublishOn, SubscribeOn, followed
from .rewrites import rewritten
from .source import Pulled

if TYPE_CHECKING:
    from .._fusion.stage import Stage
    from ..schedulers.base import Scheduler
    from .source import Source


@frozen
class Region:
    """A stretch of a flow between two boundaries."""

    feed: object
    """What feeds the region, an operator or what else its ``str`` names."""
    stages: tuple[Placed[Stage[Any, Any]], ...]
    scheduler: Scheduler | None
    """Where the region runs; None stands for the event loop of the subscriber."""
    boundary: PublishOn | None
    """The boundary in front of the region; None in front of the first."""

    @cached_property
    def source(self) -> str:
        """What feeds the region, in words."""
        return str(self.feed)


@frozen
class Plan:
    """A flow cut at its boundaries: the source, and the regions from there to the end."""

    source: Placed[Source[Any]]
    regions: tuple[Region, ...]
    follows: bool = False
    """Whether the first region runs where the flow ends that its combinator was called on."""
    moved: Scheduler | None = None
    """Where ``subscribe_on`` has moved the first region, or, where that one follows, the flows that it reads."""
    rewrites: tuple[str, ...] = ()
    """What has been rewritten, in words, in its order."""

    @cached_property
    def alone(self) -> Pulled[Any] | None:
        """The source, if it is pulled by one region, where the subscriber is, and may be opened as late as when it is wanted."""
        scheduler, source = self.regions[-1].scheduler, self.source.operator
        here = len(self.regions) == 1 and (scheduler is None or getattr(scheduler, "stays", False))
        return source if here and isinstance(source, Pulled) and source.plain == source.at_hand else None

    @cached_property
    def at_hand(self) -> bool:
        """Whether the elements are those of a builtin collection."""
        return self.source.operator.at_hand

    @staticmethod
    def of(flow: FlowLike) -> Plan:
        """Return the plan of a flow, which is made once."""
        nodes = flow.__nodes__
        if nodes.plan is None:
            nodes.plan = _cut(*rewritten(nodes))
        return nodes.plan


def _cut(nodes: Nodes, rewrites: tuple[str, ...]) -> Plan:
    """Cut a flow at its boundaries; of several ``subscribe_on`` the one nearest to the source counts, as in Reactor."""
    regions: list[Region] = []
    stages: list[Placed[Stage[Any, Any]]] = []
    feed: object = nodes.source
    boundary: PublishOn | None = None
    moved: Scheduler | None = None
    for step in nodes.steps:
        operator = step.operator
        if isinstance(operator, PublishOn):
            regions.append(_region(feed, stages, boundary))
            stages, boundary, feed = [], operator, step
        elif isinstance(operator, SubscribeOn):
            moved = moved or operator.scheduler
        else:
            stages.append(Placed(operator, step.origin))
    regions.append(_region(feed, stages, boundary))
    first = regions[0]
    leader = followed(nodes.source.operator)
    regions[0] = Region(first.feed, first.stages, leader or moved, None)
    return Plan(nodes.source, tuple(regions), leader is not None, moved, rewrites)


def _region(feed: object, stages: list[Placed[Stage[Any, Any]]], boundary: PublishOn | None) -> Region:
    return Region(feed, tuple(stages), None if boundary is None else boundary.scheduler, boundary)
