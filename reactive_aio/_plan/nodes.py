"""The logical nodes of a flow: a source, and the steps that follow it, as they were chained.

They are values, and the same whatever engine will run them.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, Protocol

from attrs import Factory, define, field, frozen

from .._fusion.origin import Placed
from .._fusion.parts import divided
from .._fusion.requirement import PART
from .capabilities import LOOP, Capabilities
from .source import Source

if TYPE_CHECKING:
    from .._fusion.stage import Stage
    from ..schedulers.base import Scheduler
    from .plan import Plan


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
    """A flow as the engines know it: it has nodes."""

    @property
    def __nodes__(self) -> Nodes:
        """The nodes of the flow."""
        ...

    @property
    def __given__(self) -> tuple[Any, ...] | None:
        """The elements of a flow of given ones that no operator follows; None for all others."""
        ...


@define(eq=False, repr=False)
class Nodes:
    """A source and the steps after it (a FlowLike)."""

    source: Placed[Source[Any]]
    """The place where the elements are made."""
    steps: tuple[Step, ...] = ()
    """The steps that follow."""
    capabilities: Capabilities = Factory(lambda it: reach_of(it.source.operator, it.steps), takes_self=True)
    """The capabilities of the engine that makes the elements, after the last step."""
    scheduler: Scheduler | None = Factory(lambda it: scheduler_of(it.source.operator, it.steps), takes_self=True)
    """The place of the last region; None stands for the event loop of the subscriber."""
    plan: Plan | None = field(init=False, default=None)
    """The plan of the flow, once it has been made. A flow never changes, and neither does its plan."""

    @property
    def __nodes__(self) -> Nodes:
        """These nodes, which are a flow to the engines."""
        return self

    @property
    def __given__(self) -> None:
        """None: a flow that is asked for its nodes gives its elements by them."""

    def then(self, step: Step) -> Nodes:
        """Return the nodes with one more step; raise for a stage that can't be sent to the engine that would run it."""
        steps = (*self.steps, step)
        if isinstance(step.operator, (PublishOn, SubscribeOn)):
            return Nodes(self.source, steps, reach(self.capabilities, step))
        if self.capabilities is LOOP:
            return Nodes(self.source, steps, LOOP, self.scheduler)
        check_step(self.capabilities, step)
        return Nodes(self.source, steps, reach(self.capabilities, step), self.scheduler)

    def __repr__(self) -> str:
        steps = [str(step.operator) for step in self.steps]
        return f"{self.source.operator}" + "".join(step if step.startswith("[") else f".{step}" for step in steps)


def scheduler_of(source: Source[Any], steps: tuple[Step, ...]) -> Scheduler | None:
    """Return where the last region of a flow runs, by its source and its steps."""
    for step in reversed(steps):
        if isinstance(step.operator, PublishOn):
            return _unless_it_stays(step.operator.scheduler)
    return followed(source) or moved_by(steps)


def moved_by(steps: tuple[Step, ...]) -> Scheduler | None:
    """Return where `subscribe_on` has moved the last region. Of several the one nearest to the source counts."""
    moved: Scheduler | None = None
    for step in reversed(steps):
        if isinstance(step.operator, PublishOn):
            return None
        if isinstance(step.operator, SubscribeOn):
            moved = step.operator.scheduler
    return _unless_it_stays(moved)


def followed(source: Source[Any]) -> Scheduler | None:
    """Return where a combinator runs for being called on a flow: `publish_on` moves what follows.

    `subscribe_on` does not. A source may block the thread that it has been moved to, and a combinator would wait there with it.
    Only a scheduler with a clock of its own keeps the combinators, so that they go by that clock.
    """
    while not reads_nothing(type(source)) and (flow := source.followed) is not None:
        nodes = flow.__nodes__
        moved = moved_by(nodes.steps)
        if moved is None or getattr(moved, "has_clock", False):
            return nodes.scheduler
        source = nodes.source.operator
    return None


@lru_cache(maxsize=512)
def reads_nothing(kind: type[Source[Any]]) -> bool:
    """Return whether the sources of a class read no flow."""
    return kind.followed is Source.followed and kind.inner is Source.inner


def _unless_it_stays(scheduler: Scheduler | None) -> Scheduler | None:
    return None if getattr(scheduler, "stays", False) else scheduler


# -- what an engine can run of them


def reach(before: Capabilities, step: Step) -> Capabilities:
    """Return what the engine can run after a step, by what it can run before it."""
    stage = runs(before, step)
    return LOOP if stage is None else before.after(stage.operator.requirement)


def reach_of(source: Source[Any], steps: tuple[Step, ...]) -> Capabilities:
    """Return what the engine can run after the last of several steps."""
    return reduce(reach, steps, source.capabilities)


def check_step(before: Capabilities, step: Step) -> None:
    """Raise for a stage that the engine would run but that can't be sent there."""
    if before is LOOP:
        return
    if (stage := runs(before, step)) is not None:
        before.check(stage, stage.operator)
    elif (halves := halves_of(before, step)) is not None:
        before.check(step, halves[0])


def runs(capabilities: Capabilities, step: Step) -> Placed[Stage[Any, Any]] | None:
    """Return the stage that a step is, if the engine can run it."""
    operator = step.operator
    if capabilities is LOOP or isinstance(operator, (PublishOn, SubscribeOn)):
        return None
    return Placed(operator, step.origin) if operator.requirement in capabilities.runs else None


def halves_of(capabilities: Capabilities, step: Step) -> tuple[Stage[Any, Any], Stage[Any, Any]] | None:
    """Return the two stages that a step becomes, if the engine can run it in parts."""
    operator = step.operator
    if PART not in capabilities.runs or isinstance(operator, (PublishOn, SubscribeOn)):
        return None
    return divided(operator)
