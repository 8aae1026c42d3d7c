"""Operators that make one value of a whole stream."""

from __future__ import annotations

from typing import Final

from .traits import Traits

TRAITS: Final[dict[str, Traits]] = {
    "collect": Traits("unbounded", keeps="unbounded"),
}
