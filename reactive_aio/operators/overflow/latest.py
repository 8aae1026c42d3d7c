"""The operator that keeps the latest element without demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen

from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from .backlog import Backlog
from .intake import Intake, Relieved

T = TypeVar("T")


@frozen
class OnBackpressureLatest(Relieved[T]):
    """Source of ``Flow.on_backpressure_latest``."""

    flow: FlowLike
    on_drop: Callable[[T], object] | None

    def intake(self, inlet: Inlet[Any]) -> Intake:
        """Keep one, which a later one pushes out."""
        return Intake(inlet, Backlog(1, "drop_oldest"), self.on_drop)
