"""The stage that numbers the elements."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import InTurn, Placing, Template

T = TypeVar("T")


@frozen
class Index(InTurn[T, tuple[int, T]]):
    """Stage of ``Flow.index``."""

    start_at: int

    def transform(self) -> Placing[T, tuple[int, T]]:
        """Return a count."""
        return Numbering(self.start_at)


@define
class Numbering(Placing[T, tuple[int, T]]):
    """The number of the next element of one subscription."""

    start_at: int
    at: int = field(init=False)

    template: ClassVar[Template | None] = Template(
        """
        item = ($at, item)
        $at += 1
        $rest
        """,
        local=("at",),
        plain=True,
    )

    def __attrs_post_init__(self) -> None:
        self.at = self.start_at

    @property
    def place(self) -> int:
        """The number of elements so far."""
        return self.at - self.start_at

    @place.setter
    def place(self, value: int) -> None:
        self.at = self.start_at + value
