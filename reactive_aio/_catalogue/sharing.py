"""Operators that have one subscription serve several subscribers."""

from __future__ import annotations

from typing import Final

from .traits import Traits

TRAITS: Final[dict[str, Traits]] = {
    "share": Traits("min(d, lag)", keeps="lag + replay"),
    "multicast": Traits("min(d, lag)", keeps="lag"),
}
