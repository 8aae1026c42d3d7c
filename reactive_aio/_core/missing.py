"""The marks for "no value yet" and "nothing at once"."""

from __future__ import annotations

from typing import Any, Final


class _Missing:
    """Stands for "no value yet", which None can't: None is an ordinary element."""

    def __reduce__(self) -> str:
        return "MISSING"  # itself again, wherever it has travelled

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Any] = _Missing()

NOTHING: Final[Any] = object()
"""Stands for an element where there is none at once. Compare with it, and never pass it on."""
