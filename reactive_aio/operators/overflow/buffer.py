"""The operator that keeps a bounded number of elements without demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen

from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from .backlog import Backlog, Overflow
from .intake import Intake, Relieved

T = TypeVar("T")


@frozen
class OnBackpressureBuffer(Relieved[T]):
    """Source of ``Flow.on_backpressure_buffer``."""

    flow: FlowLike
    max_size: int
    overflow: Overflow
    on_drop: Callable[[T], object] | None

    def intake(self, inlet: Inlet[Any]) -> Intake:
        """Keep up to ``max_size`` elements."""
        return Intake(inlet, Backlog(self.max_size, self.overflow), self.on_drop)
