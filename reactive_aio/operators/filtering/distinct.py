"""The stage that drops what has been seen before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ...errors import LimitExceededError
from ...segments import Stage, Template, Transform, label

T = TypeVar("T")


@frozen
class Distinct(Stage[T, T]):
    """Stage of ``Flow.distinct``."""

    key: Callable[[T], Hashable] | None
    max_keys: int
    evict: bool

    forwards = True
    positional = True

    def transform(self) -> Transform[T, T]:
        """Give an empty memory."""
        if self.key is None:
            return Remembering[T](self.max_keys, self.evict)
        return RememberingKeys[T](self.max_keys, self.evict, self.key)


@define
class Remembering(Transform[T, T]):
    """What one subscription has seen, in the order in which it came first."""

    max_keys: int
    evict: bool
    key: Callable[[T], Hashable] | None = None
    seen: OrderedDict[Any, None] = field(init=False, factory=OrderedDict[Any, None])

    template = Template("""
        if item not in $seen:
            $remember(item)
            $rest
    """)

    def remember(self, key: Hashable) -> None:
        """Put a new key in, in the place of the oldest if there is no other."""
        if len(self.seen) == self.max_keys:
            if not self.evict:
                raise LimitExceededError(
                    f"distinct(max_keys={self.max_keys}): {label(key)} is one different key more; raise max_keys, or "
                    "have the oldest forgotten with evict=True"
                )
            self.seen.popitem(last=False)
        self.seen[key] = None


class RememberingKeys(Remembering[T]):
    """The same by what a function makes of each element."""

    template = Template("""
        key = $key(item)
        if key not in $seen:
            $remember(key)
            $rest
    """)
