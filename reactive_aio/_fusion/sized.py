"""Iterators that know their own end."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import Any, Final

SIZED: Final[tuple[type, ...]] = (
    type(iter([])),
    type(iter(())),
    type(iter(range(0))),
    type(iter(range(2**70))),
    type(iter("")),
)
"""Iterators whose length hint is exact, so that the end of the input is known without looking further."""


def sized(items: Iterator[Any]) -> bool:
    """Return whether an iterator has an exact length hint. A length above `sys.maxsize` has none."""
    if not isinstance(items, SIZED):
        return False
    try:
        length_hint(items)
    except OverflowError:
        return False
    return True
