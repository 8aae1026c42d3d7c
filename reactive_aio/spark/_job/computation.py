"""The RDD of a job, whose tasks send the elements, and further ones whose tasks read several of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

Group = range
"""The numbers of partitions that one task reads, one after another."""


@frozen(eq=False)
class Computation:
    """An RDD of the JVM, which has no type here."""

    java_rdd: Any
    """Each of its tasks reads one partition."""
    gather: Callable[[Sequence[Group]], Gathered | None] | None = None
    """Returns tasks that each read one group of the partitions. It makes calls into the JVM.

    Returns None if Spark would read the partitions in another order.
    """


@frozen(eq=False)
class Gathered:
    """Tasks that read several partitions each."""

    java_rdd: Any
    groups: tuple[Group, ...]
    """The requested groups, or parts of them if Spark would not keep the order of a whole one."""
