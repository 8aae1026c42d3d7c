"""The operator that passes an element, and nothing else for a while."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._arbiter import Inner
from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ..overflow.backlog import Backlog
from .clockwork import Clocked, Unslowed

T = TypeVar("T")


@frozen
class ThrottleFirst(Clocked[T]):
    """Source of ``Flow.throttle_first``."""

    flow: FlowLike
    seconds: float

    def machine(self, inlet: Inlet[Any]) -> Throttling:
        """Pass nothing for so long."""
        return Throttling(inlet, Backlog(0, "drop_latest"), self.seconds)


@define(eq=False)
class Throttling(Unslowed):
    """Emits a requested element, and drops the elements in the time after it. It keeps none."""

    seconds: float
    _until: float = field(init=False, default=-1.0)
    """The end of the time after the last emitted element."""

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Emit the first element if its time has come and there is demand. Without demand no time begins."""
        now = self.timer.now
        if now < self._until:
            discard(items)
        elif not self.demand:
            discard(self.backlog.add(items))
        else:
            self._until = now + self.seconds
            self.emit(items[:1])
            discard(items[1:])
