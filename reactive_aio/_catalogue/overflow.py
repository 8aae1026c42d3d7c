"""Operators for sources that can't be slowed."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "on_backpressure_buffer": Traits("unbounded", keeps="max_size", completes=Completes.BEHIND, fails=Fails.BEHIND),
    "on_backpressure_drop": Traits("unbounded"),
    "on_backpressure_latest": Traits("unbounded", keeps="1", completes=Completes.BEHIND, fails=Fails.BEHIND),
    "on_backpressure_error": Traits("unbounded"),
}
