"""Iterators that know their own end."""

from __future__ import annotations

from typing import Final

SIZED: Final[tuple[type, ...]] = (
    type(iter([])),
    type(iter(())),
    type(iter(range(0))),
    type(iter(range(2**70))),
    type(iter("")),
)
"""Iterators whose length hint is exact, so that the end of the input is known without looking further."""
