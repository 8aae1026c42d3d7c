"""The stage that drops the first elements."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from attrs import define, frozen

from ..._fusion import Stage, Template, Transform
from ...spec import add_demand

T = TypeVar("T")


@frozen
class Skip(Stage[T, T]):
    """Stage of ``Flow.skip``."""

    n: int

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a countdown."""
        return Skipping(self.n)


@define
class Skipping(Transform[T, T]):
    """The countdown of one subscription."""

    left: int

    template: ClassVar[Template | None] = Template(
        """
        if $self.left:
            $self.left -= 1
        else:
            $rest
        """,
        plain=True,
    )

    def demand(self, n: int) -> int:
        """Request the dropped elements once, together with the demand."""
        return add_demand(n, self.left)
