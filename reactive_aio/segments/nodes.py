"""The logical nodes of a flow: a source, and the steps that follow it, as they were chained.

They are values, and the same whatever engine will run them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from attrs import frozen

from .capabilities import Capabilities
from .origin import Origin

if TYPE_CHECKING:
    from ..schedulers.base import Scheduler
    from .source import Source

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

    @property
    def capabilities(self) -> Capabilities:
        """What the engine that makes its elements can run behind the last step."""
        ...


def scheduler_of(source: Source[Any], steps: tuple[Step, ...]) -> Scheduler | None:
    """Tell where the last region of a flow runs, by its source and its steps."""
    moved: Scheduler | None = None
    for step in reversed(steps):
        if isinstance(step.operator, PublishOn):
            return _unless_it_stays(step.operator.scheduler)
        if isinstance(step.operator, SubscribeOn):
            moved = step.operator.scheduler
    return followed(source) or _unless_it_stays(moved)


def followed(source: Source[Any]) -> Scheduler | None:
    """Tell where a combinator runs for being called on a flow that ends there."""
    flow = source.followed
    return None if flow is None else flow.scheduler


def _unless_it_stays(scheduler: Scheduler | None) -> Scheduler | None:
    return None if getattr(scheduler, "stays", False) else scheduler
