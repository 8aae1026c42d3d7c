"""The stage that pairs each element with the one before."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Stage, Template, Transform
from ...hooks import discard
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
    """The pair before, in one subscription. Its second element begins the next pair."""

    last: Any = field(init=False, default=MISSING)
    """The first element of the stream comes second in a pair with no first one."""

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template(
        """
        if $self.last is $missing:
            $self.last = ($missing, item)
        else:
            item = ($self.last[1], item)
            $self.last = item
            $rest
        """,
        plain=True,
    )

    def demand(self, n: int) -> int:
        """Ask for one more, once: the first pair takes two elements."""
        return add_demand(n, 1) if n and self.last is MISSING else n

    def close(self) -> None:
        """Drop the first element if no second one has come."""
        last, self.last = self.last, MISSING
        if last is not MISSING and last[0] is MISSING:
            discard([last[1]])
