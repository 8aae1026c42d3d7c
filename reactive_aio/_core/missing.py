"""The mark for "no value yet"."""

from __future__ import annotations

from typing import Any, Final


class _Missing:
    """Stands for "no value yet", which None can't: None is an ordinary element."""

    def __reduce__(self) -> str:
        return "MISSING"  # itself again, wherever it has travelled

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Any] = _Missing()
