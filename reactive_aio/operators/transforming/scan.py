"""The stage that emits every intermediate value of a reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar, cast

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Stage, Template, Transform

T = TypeVar("T")
A = TypeVar("A")


@frozen
class Scan(Stage[T, A]):
    """Stage of ``Flow.scan``."""

    fn: Callable[[A, T], A]
    initial: A = MISSING

    needs_whole_stream = True

    @property
    def arguments(self) -> str:
        """The function, and the first value if there is one."""
        shown = Stage.arguments.__get__(self)
        return shown.rpartition(", ")[0] if self.initial is MISSING else str(shown)

    def transform(self) -> Transform[T, A]:
        """Return the transform, with a fresh value."""
        if self.initial is MISSING:
            return Scanning[T, A](self.fn)
        return ScanningFrom[T, A](self.fn, self.initial)


@define
class Scanning(Transform[T, A]):
    """The latest value of one subscription."""

    fn: Callable[[A, T], A]
    value: Any = MISSING

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template(
        """
        item = $value = item if $value is $missing else $fn($value, item)
        $rest
        """,
        local=("value",),
    )


@define
class ScanningFrom(Scanning[T, A]):
    """The same with an initial value, which is emitted first."""

    given: bool = field(init=False, default=False)

    template: ClassVar[Template | None] = Template(
        """
        item = $value = $fn($value, item)
        $rest
        """,
        local=("value",),
    )

    def prelude(self) -> Iterable[A]:
        """Yield the first value."""
        self.given = True
        yield cast("A", self.value)

    @property
    def pending(self) -> bool:
        """Return whether the first value is still to come."""
        return not self.given
