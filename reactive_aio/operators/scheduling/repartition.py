"""The stage that says over how many partitions Spark spreads the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from attrs import frozen

from ..._fusion import Stage, Template, label

T = TypeVar("T")


@frozen
class Repartition(Stage[T, T]):
    """Stage of ``Flow.repartition``. Without partitions, elements pass unchanged."""

    partitions: int
    key: Callable[[Any], Any] | None

    forwards = True
    template: ClassVar[Template | None] = Template("""
        $rest
    """)

    @property
    def arguments(self) -> str:
        """The number, and the key if there is one."""
        return f"{self.partitions}" if self.key is None else f"{self.partitions}, key={label(self.key)}"
