"""The stage that emits its own element if the source has none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Stage, Template, Transform

T = TypeVar("T")


@frozen
class DefaultIfEmpty(Stage[T, T]):
    """Stage of ``Flow.default_if_empty``."""

    default: T

    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a switch."""
        return Defaulting(self.default)


@define
class Defaulting(Transform[T, T]):
    """Whether one subscription needs no default any more."""

    default: T
    needless: bool = field(init=False, default=False)

    template: ClassVar[Template | None] = Template("""
        $self.needless = True
        $rest
    """)

    def finish(self) -> Iterable[T]:
        """Yield the default, if nothing else came."""
        if not self.needless:
            self.needless = True
            yield self.default

    @property
    def pending(self) -> bool:
        """Return whether the default would come."""
        return not self.needless
