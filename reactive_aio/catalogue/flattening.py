"""Operators that make a flow of each element."""

from __future__ import annotations

from typing import Final

from .traits import Traits

TRAITS: Final[dict[str, Traits]] = {}
