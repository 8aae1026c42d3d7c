"""The plan of a flow: its steps cut into regions at the asynchronous boundaries.

Cutting is all the planning there is. Two stages share a region unless a boundary stands between them;
whether an engine fuses, ships or draws a region is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from attrs import frozen

from .origin import Origin
from .parts import InTurn, divided, in_any_part

if TYPE_CHECKING:
    from ..schedulers.base import Scheduler
    from .source import Source
    from .stage import Stage

O_co = TypeVar("O_co", covariant=True)


@frozen
class Placed(Generic[O_co]):
    """An operator and the line it was chained on."""

    operator: O_co
    origin: Origin

    def __str__(self) -> str:
        return f"{self.operator}, chained at {self.origin}"


@frozen
class PublishOn:
    """The boundary of ``Flow.publish_on``: what follows runs elsewhere."""

    scheduler: Scheduler
    prefetch: int | None
    """Elements that are requested ahead, or None where demand passes one for one."""

    def __str__(self) -> str:
        return f"publish_on({self.scheduler.name}, prefetch={self.prefetch})"


@frozen
class SubscribeOn:
    """The mark of ``Flow.subscribe_on``: the region of the source runs elsewhere."""

    scheduler: Scheduler

    def __str__(self) -> str:
        return f"subscribe_on({self.scheduler.name})"


Step = Placed["Stage[Any, Any] | PublishOn | SubscribeOn"]


class FlowLike(Protocol):
    """What the engines read of a flow."""

    @property
    def source(self) -> Placed[Source[Any]]:
        """Where the elements come from."""
        ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is done with them."""
        ...

    @property
    def scheduler(self) -> Scheduler | None:
        """Where the last region runs; None stands for the event loop of the subscriber."""
        ...


def scheduler_of(source: Source[Any], steps: tuple[Step, ...]) -> Scheduler | None:
    """Tell where the last region of a flow runs, by its source and its steps."""
    moved: Scheduler | None = None
    for step in reversed(steps):
        if isinstance(step.operator, PublishOn):
            return _unless_it_stays(step.operator.scheduler)
        if isinstance(step.operator, SubscribeOn):
            moved = step.operator.scheduler
    return _followed(source) or _unless_it_stays(moved)


def _followed(source: Source[Any]) -> Scheduler | None:
    """Tell where a combinator runs for being called on a flow that ends there."""
    followed = source.followed
    return None if followed is None else followed.scheduler


def _unless_it_stays(scheduler: Scheduler | None) -> Scheduler | None:
    return None if getattr(scheduler, "stays", False) else scheduler


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

    @staticmethod
    def of(flow: FlowLike) -> Plan:
        """Cut a flow; of several ``subscribe_on`` the one nearest to the source counts, as in Reactor."""
        regions: list[Region] = []
        stages: list[Placed[Stage[Any, Any]]] = []
        feed: object = flow.source
        boundary: PublishOn | None = None
        moved: Scheduler | None = None
        source, steps = _absorb(flow.source, flow.steps)
        for step in steps:
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
        followed = _followed(source.operator)
        regions[0] = Region(first.feed, first.stages, followed or moved, None)
        return Plan(source, tuple(regions), followed is not None, moved)


def _region(feed: object, stages: list[Placed[Stage[Any, Any]]], boundary: PublishOn | None) -> Region:
    return Region(feed, tuple(stages), None if boundary is None else boundary.scheduler, boundary)


Taken = tuple[Placed["Source[Any]"], tuple[Step, ...]]
"""A source that has taken over stages, and the steps that are left."""


def _absorb(source: Placed[Source[Any]], steps: tuple[Step, ...]) -> Taken:
    """Let the source take over the stages that it can run itself, up to the first that it can't, or only in parts."""
    for at, step in enumerate(steps):
        operator = step.operator
        if isinstance(operator, (PublishOn, SubscribeOn)):
            return source, steps[at:]
        stage = Placed(operator, step.origin)
        wider = source.operator.absorb(stage)
        if wider is None:
            return _in_parts(source, stage, steps[at:])
        if isinstance(operator, InTurn):
            return _in_turn(source, Placed(wider, source.origin), steps[at:])
        source = Placed(wider, source.origin)
    return source, ()


def _in_turn(source: Placed[Source[Any]], wider: Placed[Source[Any]], steps: tuple[Step, ...]) -> Taken:
    """Let the source run the first of ``steps`` in turn if that brings others along: its parts have to wait for it."""
    taken = _absorb(wider, steps[1:])
    return (source, steps) if taken[0] is wider else taken


def _in_parts(source: Placed[Source[Any]], stage: Placed[Stage[Any, Any]], steps: tuple[Step, ...]) -> Taken:
    """Let the source run the first of ``steps`` in parts, if both can; what combines them then stands in its place."""
    both = divided(stage.operator)
    wider = None if both is None else source.operator.absorb(Placed(both[0], stage.origin))
    if both is None or wider is None:
        return source, steps
    return Placed(wider, source.origin), (Placed(both[1], stage.origin), *steps[1:])


@frozen
class _Absorbed:
    """A flow whose source has taken over all its stages (a FlowLike)."""

    source: Placed[Source[Any]]
    steps: tuple[Step, ...] = ()

    @property
    def scheduler(self) -> Scheduler | None:
        """Where the only region runs."""
        return scheduler_of(self.source.operator, ())


def absorbed(flow: FlowLike, stage: Placed[Stage[Any, Any]]) -> FlowLike | None:
    """Give a flow, a part of another, with one more stage, all of whose stages are run by its source; None if they can't be."""
    if not in_any_part(stage.operator):
        return None
    source, rest = _absorb(flow.source, (*flow.steps, Placed(stage.operator, stage.origin)))
    return None if rest else _Absorbed(source)


def awaits(flow: FlowLike, stage: Stage[Any, Any]) -> bool:
    """Tell whether a stage that awaits a function would be run where the elements of a flow are made."""
    source = flow.source
    return source.operator.awaits and absorbed(flow, Placed(stage, source.origin)) is not None


def joined(flows: Sequence[FlowLike], method: str) -> Source[Any] | None:
    """Give one source for flows that are read one after another, where their sources run all their stages and say how."""
    sources: list[Source[Any]] = []
    for flow in flows:
        if not flow.source.operator.lowers:
            return None
        source, rest = _absorb(flow.source, flow.steps)
        if rest:
            return None
        sources.append(source.operator)
    return sources[0].join(tuple(sources[1:]), method)


def check_absorbed(flows: Iterable[FlowLike], before: tuple[Step, ...], stage: Placed[Stage[Any, Any]]) -> None:
    """Have a stage behind ``before`` checked by the sources of all flows, if each of them could take it over."""
    if not all(in_any_part(step.operator) for step in before):
        return
    halves = divided(stage.operator)
    taken = stage if halves is None else Placed(halves[0], stage.origin)
    if all(absorbed(flow, taken) is not None for flow in flows):
        for flow in flows:
            flow.source.operator.check((*flow.steps, *before), stage)
