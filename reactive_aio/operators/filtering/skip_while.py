"""The stage that drops elements until the first that fails a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Stage, Template, Transform

T = TypeVar("T")


@frozen
class SkipWhile(Stage[T, T]):
    """Stage of ``Flow.skip_while``."""

    predicate: Callable[[T], object]

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a switch."""
        return SkippingWhile[T](self.predicate)


@define
class SkippingWhile(Transform[T, T]):
    """Whether one subscription is still dropping."""

    predicate: Callable[[T], object]
    skipping: bool = field(init=False, default=True)

    template: ClassVar[Template | None] = Template(
        """
        if $skipping:
            $skipping = bool($predicate(item))
        if not $skipping:
            $rest
        """,
        local=("skipping",),
    )
