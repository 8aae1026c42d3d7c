"""Operators that wait for a function of the user's."""

from __future__ import annotations

from typing import Final

from .traits import Traits

TRAITS: Final[dict[str, Traits]] = {}
