"""The operator that drops elements without demand."""

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
class OnBackpressureDrop(Relieved[T]):
    """Source of ``Flow.on_backpressure_drop``."""

    flow: FlowLike
    on_drop: Callable[[T], object] | None

    def intake(self, inlet: Inlet[Any]) -> Intake:
        """Keep none."""
        return Intake(inlet, Backlog(0, "drop_latest"), self.on_drop)
