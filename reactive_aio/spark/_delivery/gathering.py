"""The number of partitions for a task, by the time of others."""

from __future__ import annotations

from typing import Final

LONG_ENOUGH: Final = 1.0
"""Seconds of a task, compared to which its start is short. If the task is lost, this much is computed again."""
MOST: Final = 256
"""Partitions of a task."""
MOST_GROUPS: Final = 32
"""Tasks that are made ready at a time: each takes calls into the JVM."""
WORTH: Final = 4
"""By what factor the number has to differ to prepare tasks anew."""


def fitting(seconds: float, partitions: int, left: int, side_by_side: int) -> int:
    """Return the number of partitions of the next tasks, by the time of one task. Parallel tasks get several each."""
    by_time = LONG_ENOUGH * partitions / max(seconds, 1e-6)
    return max(1, int(min(by_time, MOST, left / (2 * side_by_side))))


def worth(now: int, before: int) -> bool:
    """Return whether the new size differs enough."""
    return now >= WORTH * before or WORTH * now <= before


def groups(first: int, end: int, size: int) -> list[range]:
    """Divide partitions into groups of a size, as many as are made ready at a time."""
    end = min(end, first + MOST_GROUPS * size)
    return [range(at, min(at + size, end)) for at in range(first, end, size)]
