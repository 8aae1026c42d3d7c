"""Rewrites: what becomes of the logical nodes of a flow where an engine can run some of them.

They run in this order, once for each flow that is planned:

1. `await_in_place`: a combinator that awaits a function becomes a stage, where the engine has an event loop for it.
2. `join`: flows that are read one after another become one source, where their engine can read them as one.
3. `lower`: stages move into the source, as long as the engine can run them.
4. `divide`: a stage that needs the whole stream becomes two, one that runs on its parts and one that combines what comes of them.

Each is a function from nodes to nodes, or to None where there is nothing to do. What an engine can run is asked of its `Capabilities`;
how it does so only its source knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from .capabilities import ANYTHING, LOOP, OFFSET, PART, Capabilities
from .nodes import FlowLike, Placed, PublishOn, Step, SubscribeOn, scheduler_of
from .parts import divided

if TYPE_CHECKING:
    from ..schedulers.base import Scheduler
    from .source import Source
    from .stage import Stage


@frozen
class Nodes:
    """A source and the steps behind it, on their way to a plan (a FlowLike)."""

    source: Placed[Source[Any]]
    steps: tuple[Step, ...]
    rewrites: tuple[str, ...] = ()
    """What has been done, in words."""

    @property
    def scheduler(self) -> Scheduler | None:
        """Where the last region runs."""
        return scheduler_of(self.source.operator, self.steps)

    @property
    def capabilities(self) -> Capabilities:
        """What the engine can run behind the last step."""
        return reach_of(self.source.operator, self.steps)

    def becoming(self, source: Source[Any], steps: tuple[Step, ...], what: str) -> Nodes:
        """Return the nodes with another source and other steps, and a note on why."""
        return Nodes(Placed(source, self.source.origin), steps, (*self.rewrites, what))


Rewrite = Callable[[Nodes], "Nodes | None"]


def rewritten(flow: FlowLike) -> Nodes:
    """Return the nodes of a flow as they are to be run."""
    nodes = Nodes(flow.source, flow.steps)
    if flow.source.operator.capabilities is LOOP:
        return nodes
    for rewrite in REWRITES:
        while (better := rewrite(nodes)) is not None:
            nodes = better
    return nodes


# -- the rewrites


def await_in_place(nodes: Nodes) -> Nodes | None:
    """Have the engine that makes the elements of a flow await a function for them."""
    source = nodes.source.operator
    stage = source.as_stage()
    if stage is None:
        return None
    inner = source.inner[0]
    if stage.requirement not in inner.capabilities.runs:
        return None
    step = Placed(stage, nodes.source.origin)
    what = f"await_in_place: {source.name}() is a stage on {inner.capabilities.engine}"
    return Nodes(inner.source, (*inner.steps, step, *nodes.steps), (*nodes.rewrites, what))


def join(nodes: Nodes) -> Nodes | None:
    """Have the engine read several flows as one."""
    source = nodes.source.operator
    one = joined(source.sequence, source.name)
    if one is None:
        return None
    return nodes.becoming(one, nodes.steps, f"join: {source.name}() is one source on {one.capabilities.engine}")


def lower(nodes: Nodes) -> Nodes | None:
    """Move the first of the steps into the source, if its engine can run it."""
    source, (step, *rest) = nodes.source.operator, nodes.steps or (None,)
    if step is None or not _runs(source.capabilities, step):
        return None
    stage = _stage(step)
    if stage.operator.requirement is OFFSET and not _reaches(source.capabilities.after(OFFSET), rest):
        return None  # its parts would have to wait for each other, for the sake of nothing that follows
    wider = source.lower(stage)
    return nodes.becoming(wider, tuple(rest), f"lower: {stage.operator} to {source.capabilities.engine}")


def divide(nodes: Nodes) -> Nodes | None:
    """Have the engine run the first of the steps on the parts of the stream, and combine here what comes of them."""
    source, (step, *rest) = nodes.source.operator, nodes.steps or (None,)
    halves = None if step is None else _halves(source.capabilities, step)
    if step is None or halves is None:
        return None
    partial, combine = halves
    wider = source.lower(Placed(partial, step.origin))
    what = f"divide: {step.operator} is run in parts on {source.capabilities.engine}, and combined here"
    return nodes.becoming(wider, (Placed(combine, step.origin), *rest), what)


REWRITES: Final[tuple[Rewrite, ...]] = (await_in_place, join, lower, divide)


def joined(flows: Sequence[FlowLike], method: str) -> Source[Any] | None:
    """Return one source for flows that are read one after another, if their engine runs all of them and has one."""
    if len(flows) < 2 or any(flow.capabilities is LOOP for flow in flows):
        return None
    sources: list[Source[Any]] = []
    for flow in flows:
        nodes = rewritten(flow)
        if nodes.steps:
            return None
        sources.append(nodes.source.operator)
    return sources[0].join(tuple(sources[1:]), method)


# -- while the flow is built, one step at a time


def reach(before: Capabilities, step: Step) -> Capabilities:
    """Return what the engine can run behind a step, by what it can run before it."""
    if before is LOOP or not _runs(before, step):
        return LOOP
    return before.after(_stage(step).operator.requirement)


def reach_of(source: Source[Any], steps: tuple[Step, ...]) -> Capabilities:
    """Return what the engine can run behind the last of several steps."""
    return reduce(reach, steps, source.capabilities)


def reach_of_sequence(flows: Sequence[FlowLike], sequence: Sequence[FlowLike], method: str) -> Capabilities:
    """Return what can be run on the elements of flows that are read one after another, ``sequence`` if that is a fixed row."""
    if any(flow.capabilities is LOOP for flow in flows):
        return LOOP
    one = joined(sequence, method)
    if one is not None:
        return one.capabilities
    return reduce(Capabilities.meet, (flow.capabilities for flow in flows), ANYTHING)


def reach_of_awaiting(flow: FlowLike, stage: Stage[Any, Any] | None) -> Capabilities:
    """Return what can be run behind a combinator that awaits, by the stage that it may become."""
    if stage is None or stage.requirement not in flow.capabilities.runs:
        return LOOP
    return flow.capabilities.after(stage.requirement)


def check_step(before: Capabilities, step: Placed[Stage[Any, Any]]) -> None:
    """Refuse a stage that the engine would run and that can't be sent there."""
    if before is LOOP:
        return
    if _runs(before, step):
        before.check(step, step.operator)
    elif (halves := _halves(before, step)) is not None:
        before.check(step, halves[0])


def check_source(placed: Placed[Source[Any]]) -> None:
    """Refuse a combinator that would become a stage of an engine and can't be sent there."""
    source = placed.operator
    if source.capabilities is not LOOP and (stage := source.as_stage()) is not None:
        check_step(source.inner[0].capabilities, Placed(stage, placed.origin))


def _runs(capabilities: Capabilities, step: Step) -> bool:
    operator = step.operator
    return not isinstance(operator, (PublishOn, SubscribeOn)) and operator.requirement in capabilities.runs


def _halves(capabilities: Capabilities, step: Step) -> tuple[Stage[Any, Any], Stage[Any, Any]] | None:
    operator = step.operator
    if PART not in capabilities.runs or isinstance(operator, (PublishOn, SubscribeOn)):
        return None
    return divided(operator)


def _reaches(capabilities: Capabilities, steps: Sequence[Step]) -> bool:
    """Tell whether the engine has a use for the first of these steps, whole or in parts."""
    return bool(steps) and (_runs(capabilities, steps[0]) or _halves(capabilities, steps[0]) is not None)


def _stage(step: Step) -> Placed[Stage[Any, Any]]:
    assert not isinstance(step.operator, (PublishOn, SubscribeOn))
    return Placed(step.operator, step.origin)
