"""The stage that drops what equals the element before it."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Stage, Template, Transform
from .._itself import itself

T = TypeVar("T")


@frozen
class DistinctUntilChanged(Stage[T, T]):
    """Stage of ``Flow.distinct_until_changed``."""

    key: Callable[[T], Any] | None
    comparer: Callable[[Any, Any], object] | None

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a place for what came last."""
        if self.key is None and self.comparer is None:
            return Changes[T]()
        return ChangesBy[T](self.key or itself, self.comparer or eq)


@define
class Changes(Transform[T, T]):
    """The key that one subscription has seen last."""

    last: Any = field(init=False, default=MISSING)

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template(
        """
        if $last is $missing or not ($last == item):
            $last = item
            $rest
        """,
        local=("last",),
    )


@define
class ChangesBy(Transform[T, T]):
    """The same by a key and a comparison of keys."""

    key: Callable[[T], Any]
    comparer: Callable[[Any, Any], object]
    last: Any = field(init=False, default=MISSING)

    missing: ClassVar[Any] = MISSING

    template: ClassVar[Template | None] = Template(
        """
        key = $key(item)
        if $last is $missing or not $comparer($last, key):
            $last = key
            $rest
        """,
        local=("last",),
    )
