"""Sparing Python workers: one whose input has not been read to its end is not used again.

A new one takes most of a second to start, for all that it imports. So where a stage needs no more, the rest of the
input is read, if that takes next to no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ..._core import budgets
from ..._core.guard import FAILURES

NEXT_TO_NO_TIME: Final = 0.02
"""Seconds; less than the job leaves its tasks before it kills them."""


def read_on(items: Iterator[Any]) -> None:
    """Read the rest of a task's input, if it is little. Ignore failures in it."""
    deadline = budgets.clock() + NEXT_TO_NO_TIME
    with suppress(FAILURES):
        for _ in items:
            if budgets.clock() >= deadline:
                return
