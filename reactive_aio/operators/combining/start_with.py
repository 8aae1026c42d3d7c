"""The stage that emits its own elements before those of the source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Stage, Template, Transform, label

T = TypeVar("T")


@frozen
class StartWith(Stage[T, T]):
    """Stage of ``Flow.start_with``."""

    items: tuple[T, ...]

    needs_whole_stream = True

    @property
    def arguments(self) -> str:
        """The elements, as far as they are few."""
        shown = [label(item) for item in self.items[:4]]
        return ", ".join(shown if len(shown) == len(self.items) else [*shown, "..."])

    def transform(self) -> Transform[T, T]:
        """Return a transform with a place in the elements."""
        return StartingWith(self.items)


@define
class StartingWith(Transform[T, T]):
    """The number of elements that one subscription has emitted."""

    items: tuple[T, ...]
    given: int = field(init=False, default=0)

    template: ClassVar[Template | None] = Template("$rest")

    def prelude(self) -> Iterable[T]:
        """Yield the elements."""
        for item in self.items:
            self.given += 1
            yield item

    @property
    def pending(self) -> bool:
        """Return whether some are still to come."""
        return self.given < len(self.items)
