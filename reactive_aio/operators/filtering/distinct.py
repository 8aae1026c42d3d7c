"""The stage that drops elements that have come before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Parts, Stage, Template, Transform, label
from ...errors import LimitExceededError

T = TypeVar("T")


@frozen
class Distinct(Stage[T, T]):
    """Stage of ``Flow.distinct``."""

    key: Callable[[T], Hashable] | None
    max_keys: int
    evict: bool

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return an empty memory."""
        if self.key is None:
            return Remembering[T](self.max_keys, self.evict)
        return RememberingKeys[T](self.max_keys, self.evict, self.key)

    def in_parts(self) -> Parts | None:
        """Leave out what a part has had already; what other parts have had is known where they meet.

        Not where the oldest are forgotten: which these are depends on all that has been before.
        """
        return None if self.evict else Parts(Fewer(self.key, self.max_keys), self, at_end=False)


@frozen
class Fewer(Stage[T, T]):
    """Drops most elements that have come before, as far as it can remember, and never drops another one."""

    key: Callable[[T], Hashable] | None
    max_keys: int

    forwards = True
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return an empty memory."""
        if self.key is None:
            return RememberingSome[T](self.max_keys, evict=False)
        return RememberingSomeKeys[T](self.max_keys, evict=False, key=self.key)


@define
class Remembering(Transform[T, T]):
    """The keys that one subscription has seen, in the order in which they came first."""

    max_keys: int
    evict: bool
    key: Callable[[T], Hashable] | None = None
    seen: OrderedDict[Any, None] = field(init=False, factory=OrderedDict[Any, None])

    template: ClassVar[Template | None] = Template("""
        if item not in $seen:
            $remember(item)
            $rest
    """)

    def remember(self, key: Hashable) -> None:
        """Add a new key, in the place of the oldest if there is no other."""
        if len(self.seen) == self.max_keys:
            if not self.evict:
                raise LimitExceededError(
                    f"distinct(max_keys={self.max_keys}) has no room for another key, {label(key)}. Raise max_keys, or "
                    "set evict=True to forget the oldest key"
                )
            self.seen.popitem(last=False)
        self.seen[key] = None


class RememberingKeys(Remembering[T]):
    """The same by what a function makes of each element."""

    template: ClassVar[Template | None] = Template("""
        key = $key(item)
        if key not in $seen:
            $remember(key)
            $rest
    """)


class RememberingSome(Remembering[T]):
    """Remembers no more when the memory is full, and lets through what it does not know."""

    __slots__ = ()

    def remember(self, key: Hashable) -> None:
        """Put a new key in, if there is room."""
        if len(self.seen) < self.max_keys:
            self.seen[key] = None


class RememberingSomeKeys(RememberingSome[T]):
    """The same by what a function makes of each element."""

    __slots__ = ()

    template: ClassVar[Template | None] = RememberingKeys.template
