"""The function that changes nothing."""

from __future__ import annotations

from typing import Any


def itself(item: Any) -> Any:
    """Return the element. This is the default key."""
    return item
