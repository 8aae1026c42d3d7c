"""The stage that pairs each element with the one before."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Stage, Template, Transform
from ...spec import add_demand

T = TypeVar("T")


@frozen
class Pairwise(Stage[T, tuple[T, T]]):
    """Stage of ``Flow.pairwise``."""

    needs_whole_stream = True

    def transform(self) -> Transform[T, tuple[T, T]]:
        """Return a place for the element before."""
        return Pairing[T]()


@define
class Pairing(Transform[T, tuple[T, T]]):
    """The element before, in one subscription."""

    before: Any = field(init=False, default=MISSING)

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template(
        """
        if $self.before is $missing:
            $self.before = item
        else:
            item = ($self.before, item)
            $self.before = item[1]
            $rest
        """,
        plain=True,
    )

    def demand(self, n: int) -> int:
        """Ask for one more, once: the first pair takes two elements."""
        return add_demand(n, 1) if n and self.before is MISSING else n
