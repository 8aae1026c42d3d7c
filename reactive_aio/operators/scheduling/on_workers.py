"""The source that is a flow read by workers, together with the stages that they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, evolve, field, frozen

from ..._fusion import AWAIT, ELEMENT, ChunkWork, Origin, Placed, Stage
from ..._plan import Capabilities, Elsewhere, FlowLike, Inlet, Pushed
from ...spec import Subscription
from ._worker_boundary import WorkerBoundary

if TYPE_CHECKING:
    from ...schedulers.base import Workers

AHEAD: Final = 256
"""The elements that may be outstanding, by default."""
MOST: Final = 4096
"""The same, where functions are so quick that chunks pay which are larger than those would allow."""


@frozen(eq=False)
class OnWorkers(Pushed[Any]):
    """Source of ``Flow.publish_on`` where the scheduler is a pool of workers."""

    flow: FlowLike
    workers: Workers
    ahead: int | None
    """The elements of the flow that may be outstanding. By default `AHEAD` of them, and up to `MOST` of quick functions."""
    origin: Origin
    stages: tuple[Placed[Stage[Any, Any]], ...] = field(default=(), repr=False)

    capabilities: Capabilities = field(
        init=False, repr=False, default=Factory(lambda it: _capabilities(it.workers), takes_self=True)
    )

    @property
    def name(self) -> str:
        """The name of the method."""
        return "publish_on"

    @property
    def arguments(self) -> str:
        """The arguments of the method."""
        return self.workers.name if self.ahead is None else f"{self.workers.name}, prefetch={self.ahead}"

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow that the workers read."""
        return (self.flow,)

    @property
    def followed(self) -> None:
        """Come back to the subscriber, as workers have no event loop on which anything could follow."""

    @property
    def elsewhere(self) -> Elsewhere:
        """The region on the workers."""
        work = " -> ".join(str(placed.operator) for placed in self.stages) or "(elements pass as they are)"
        limit = getattr(self.workers, "byte_limit", None)
        prefetch = f"prefetch {AHEAD} to {MOST}" if self.ahead is None else f"prefetch {self.ahead}"
        credit = prefetch if limit is None else f"{prefetch}, {limit}"
        return Elsewhere(self.workers.name, work, "in order, as requested", f"boundary, {credit}")

    @property
    def details(self) -> tuple[str, ...]:
        """A report of the workers about themselves. Most need not say anything."""
        told: tuple[str, ...] = getattr(self.workers, "details", ())
        return told

    def lower(self, stage: Placed[Stage[Any, Any]]) -> OnWorkers:
        """Let the workers run a stage."""
        return evolve(self, stages=(*self.stages, stage))

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin the region on the workers."""
        boundary = WorkerBoundary(inlet, self.ahead or AHEAD, self.ahead or MOST)
        boundary.begin(self.workers, ChunkWork(f"{self}, chained at {self.origin}", self.stages), self.flow)
        return boundary


def _capabilities(workers: Workers) -> Capabilities:
    """Return the capabilities of workers. They run each chunk separately. Workers with event loops also await."""
    awaits = bool(getattr(workers, "awaits", False))

    def check(stage: object, _: Stage[Any, Any]) -> None:
        workers.check(stage)

    return Capabilities(workers.name, frozenset({ELEMENT, AWAIT} if awaits else {ELEMENT}), check)
