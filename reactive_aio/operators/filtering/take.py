"""The stage that lets the first elements through and then needs no more."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from attrs import define, frozen

from ..._fusion import Parts, Stage, Template, Transform

T = TypeVar("T")


@frozen
class Take(Stage[T, T]):
    """Stage of ``Flow.take``."""

    n: int

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a countdown."""
        return Taking(self.n)

    def in_parts(self) -> Parts:
        """No part emits more elements than are let through in all."""
        return Parts(self, self, at_end=False)


@define
class Taking(Transform[T, T]):
    """The countdown of one subscription."""

    left: int

    template: ClassVar[Template | None] = Template(
        """
        $self.left -= 1
        $rest
        if not $self.left:
            $stop
        """,
        plain=True,
    )

    def demand(self, n: int) -> int:
        """Never request more elements than are let through."""
        return min(n, self.left)

    @property
    def done(self) -> bool:
        """Return whether all have been let through."""
        return not self.left
