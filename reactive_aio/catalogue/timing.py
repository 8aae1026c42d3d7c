"""Operators that go by the clock."""

from __future__ import annotations

from typing import Final

from .traits import Traits

TRAITS: Final[dict[str, Traits]] = {}
