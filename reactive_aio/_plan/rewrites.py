"""Rewrites: the logical nodes of a flow are changed where an engine can run some of them.

They run in this order, once for each flow that is planned:

1. `await_in_place`: a combinator that awaits a function becomes a stage, where the engine has an event loop for it.
2. `join`: flows that are read one after another become one source, where their engine can read them as one.
3. `lower`: stages move into the source, as long as the engine can run them.
4. `divide`: a stage that needs the whole stream becomes two. One runs on each part of it, the other combines the results.

Each is a function from nodes to nodes, or to None where there is nothing to do. `Capabilities` say what an engine can
run. Only its source knows how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from .._fusion.origin import Placed
from .._fusion.requirement import OFFSET
from .capabilities import LOOP, Capabilities
from .nodes import FlowLike, Nodes, Step, check_step, halves_of, runs

if TYPE_CHECKING:
    from .._fusion.stage import Stage
    from .source import Source


Rewrite = Callable[[Nodes], tuple[Nodes, str] | None]
"""Returns better nodes, and a text of the changes. Returns None if there is nothing to do."""


def rewritten(flow: FlowLike) -> tuple[Nodes, tuple[str, ...]]:
    """Return the nodes of a flow as they will run, and a text of the changes."""
    nodes = flow.__nodes__
    notes: list[str] = []
    if nodes.source.operator.capabilities is not LOOP:
        for rewrite in REWRITES:
            while (better := rewrite(nodes)) is not None:
                nodes, note = better
                notes.append(f"{rewrite.__name__}: {note}")
    return nodes, tuple(notes)


# -- the rewrites


def await_in_place(nodes: Nodes) -> tuple[Nodes, str] | None:
    """Let the engine that makes the elements of a flow await a function for them."""
    source = nodes.source.operator
    stage = source.as_stage()
    if stage is None:
        return None
    inner = source.inner[0].__nodes__
    if stage.requirement not in inner.capabilities.runs:
        return None
    step = Placed(stage, nodes.source.origin)
    better = Nodes(inner.source, (*inner.steps, step, *nodes.steps))
    return better, f"{stage} is a stage of {inner.capabilities.engine}"


def join(nodes: Nodes) -> tuple[Nodes, str] | None:
    """Let the engine read several flows as one."""
    source = nodes.source.operator
    one = joined(source.sequence, source.name)
    if one is None:
        return None
    return _begun_by(one, nodes, nodes.steps), f"{source.name}() is one source of {one.capabilities.engine}"


def lower(nodes: Nodes) -> tuple[Nodes, str] | None:
    """Move the first of the steps into the source, if its engine can run it."""
    source = nodes.source.operator
    stage = runs(source.capabilities, nodes.steps[0]) if nodes.steps else None
    if stage is None:
        return None
    rest = nodes.steps[1:]
    if stage.operator.requirement is OFFSET and not _reaches(source.capabilities.after(OFFSET), rest):
        return None  # its parts would have to wait for each other, for the sake of nothing that follows
    return _begun_by(source.lower(stage), nodes, rest), f"{stage.operator} is run by {source.capabilities.engine}"


def divide(nodes: Nodes) -> tuple[Nodes, str] | None:
    """Let the engine run the first step on the parts of the stream, and combine the results here."""
    source = nodes.source.operator
    halves = halves_of(source.capabilities, nodes.steps[0]) if nodes.steps else None
    if halves is None:
        return None
    step, *rest = nodes.steps
    partial, combine = (Placed(half, step.origin) for half in halves)
    better = _begun_by(source.lower(partial), nodes, (combine, *rest))
    return better, f"{step.operator} is run in parts by {source.capabilities.engine}, and combined here"


def _begun_by(source: Source[Any], nodes: Nodes, steps: tuple[Step, ...]) -> Nodes:
    return Nodes(Placed(source, nodes.source.origin), steps)


REWRITES: Final[tuple[Rewrite, ...]] = (await_in_place, join, lower, divide)


def joined(flows: Sequence[FlowLike], method: str) -> Source[Any] | None:
    """Return one source for flows that are read one after another, if their engine runs all of them and has one."""
    if len(flows) < 2 or any(flow.__nodes__.capabilities is LOOP for flow in flows):
        return None
    sources: list[Source[Any]] = []
    for flow in flows:
        nodes, _ = rewritten(flow)
        if nodes.steps:
            return None
        sources.append(nodes.source.operator)
    return sources[0].join(tuple(sources[1:]), method)


# -- while the flow is built


def reach_of_sequence(flows: Sequence[FlowLike], sequence: Sequence[FlowLike], method: str) -> Capabilities:
    """Return what can be run on the elements of flows that are read one after another, ``sequence`` if that is a fixed row."""
    if any(flow.__nodes__.capabilities is LOOP for flow in flows):
        return LOOP
    one = joined(sequence, method)
    if one is not None:
        return one.capabilities
    first, *others = (flow.__nodes__.capabilities for flow in flows)
    return reduce(Capabilities.meet, others, first.meet(first))


def reach_of_awaiting(flow: FlowLike, stage: Stage[Any, Any] | None) -> Capabilities:
    """Return what can run after a combinator that awaits, by the stage that it may become."""
    if stage is None or stage.requirement not in flow.__nodes__.capabilities.runs:
        return LOOP
    return flow.__nodes__.capabilities.after(stage.requirement)


def check_source(placed: Placed[Source[Any]]) -> None:
    """Raise for a combinator that would become a stage of an engine but can't be sent there."""
    source = placed.operator
    if source.capabilities is not LOOP and (stage := source.as_stage()) is not None:
        check_step(source.inner[0].__nodes__.capabilities, Placed(stage, placed.origin))


def _reaches(capabilities: Capabilities, steps: Sequence[Step]) -> bool:
    """Return whether the engine has a use for the first of these steps, whole or in parts."""
    return bool(steps) and (runs(capabilities, steps[0]) or halves_of(capabilities, steps[0])) is not None
