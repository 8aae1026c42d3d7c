"""Operators that serve several subscribers with one subscription."""

from __future__ import annotations

from typing import Final

from .traits import Traits

TRAITS: Final[dict[str, Traits]] = {
    "share": Traits("min(d, lag)", keeps="lag + replay"),
    "multicast": Traits("min(d, lag)", keeps="lag"),
}
