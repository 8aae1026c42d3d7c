"""Operators that have one subscription serve several subscribers."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "share": Traits("min(d, lag)", keeps="max(lag, replay)", completes=Completes.BEHIND, fails=Fails.BEHIND),
}
