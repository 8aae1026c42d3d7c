"""The operator that fails at an element without demand."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import frozen

from ..._plan import Inlet
from ..._plan.nodes import FlowLike
from .backlog import Backlog
from .intake import Intake, Relieved

T = TypeVar("T")


@frozen
class OnBackpressureError(Relieved[T]):
    """Source of ``Flow.on_backpressure_error``."""

    flow: FlowLike

    def intake(self, inlet: Inlet[Any]) -> Intake:
        """Keep none, and take none for granted."""
        return Intake(inlet, Backlog(0, "error"))
