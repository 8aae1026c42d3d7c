"""The stage that numbers the elements."""

from __future__ import annotations

from typing import TypeVar

from attrs import define, frozen

from ...segments import Stage, Template, Transform

T = TypeVar("T")


@frozen
class Index(Stage[T, tuple[int, T]]):
    """Stage of ``Flow.index``."""

    start_at: int

    positional = True

    def transform(self) -> Transform[T, tuple[int, T]]:
        """Give a count."""
        return Numbering(self.start_at)


@define
class Numbering(Transform[T, tuple[int, T]]):
    """The number of the next element of one subscription."""

    at: int

    template = Template(
        """
        item = ($at, item)
        $at += 1
        $rest
        """,
        local=("at",),
        plain=True,
    )
