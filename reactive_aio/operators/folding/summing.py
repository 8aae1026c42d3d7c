"""More stages behind the ends that return one value of all elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Number
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Parts, Stage, Template, Transform
from ...errors import LimitExceededError
from ...hooks import discard
from ..filtering.take import Take
from .fold import Folding, Keeping, KeepingSeveral
from .partial import Different, GreatestOfPart, LatestPairs, LeastOfPart, SumOfPart

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class KeepDifferent(KeepingSeveral[T, set[T]]):
    """Keeps the different elements."""

    template: ClassVar[Template | None] = Template("$add(item)")

    @property
    def add(self) -> Callable[[T], None]:
        """The method that takes an element, looked up once for a pass."""
        add: Callable[[T], None] = self.value.add
        return add


class KeepPairs(Folding[Any, dict[Any, Any]]):
    """Keeps the latest value for each key, where an element is a pair of them."""

    template: ClassVar[Template | None] = Template("""
        key, item = item
        $value[key] = item
    """)


@define
class KeepByKey(Keeping[T, dict[Any, Any]]):
    """Keeps the latest value for each key, with functions for both."""

    key: Callable[[T], Any] = field(kw_only=True)

    template: ClassVar[Template | None] = Template("$value[$key(item)] = item if $fn is None else $fn(item)")

    @property
    def held(self) -> Iterable[Any]:
        """The elements that are kept, if it is they that are."""
        values: dict[Any, Any] = self.value
        return values.values() if self.fn is None else ()


class Adding(Folding[Any, Any]):
    """Keeps the sum, and changes no element."""

    template: ClassVar[Template | None] = Template("$value = $value + item", local=("value",))


class KeepLeast(Keeping[T, T]):
    """Keeps the first of the least elements."""

    template: ClassVar[Template | None] = Template(
        """
        if $value is $missing or item < $value:
            $value = item
        """,
        local=("value",),
    )


class KeepGreatest(Keeping[T, T]):
    """Keeps the first of the greatest elements."""

    template: ClassVar[Template | None] = Template(
        """
        if $value is $missing or item > $value:
            $value = item
        """,
        local=("value",),
    )


@define
class KeepLeastKey(Keeping[T, T]):
    """Keeps the first of the elements whose key is least."""

    best: Any = field(init=False, default=MISSING)

    template: ClassVar[Template | None] = Template(
        """
        key = $fn(item)
        if $value is $missing or key < $best:
            $value = item
            $best = key
        """,
        local=("value", "best"),
    )


@define
class KeepGreatestKey(Keeping[T, T]):
    """Keeps the first of the elements whose key is greatest."""

    best: Any = field(init=False, default=MISSING)

    template: ClassVar[Template | None] = Template(
        """
        key = $fn(item)
        if $value is $missing or key > $best:
            $value = item
            $best = key
        """,
        local=("value", "best"),
    )


class KeepOne(Keeping[T, T]):
    """Keeps the one element that there may be."""

    template: ClassVar[Template | None] = Template("""
        if $self.value is not $missing:
            $refuse(item)
        $self.value = item
    """)

    def refuse(self, item: T) -> None:
        """Fail, since there is another."""
        discard([item])
        raise LimitExceededError("single() of a flow with more than one element")

    def demand(self, n: int) -> int:
        """Ask for one more than there may be."""
        return 0 if not n else 2 if self.value is MISSING else 1


class KeepNone(Folding[Any, Any]):
    """Keeps nothing."""

    template: ClassVar[Template | None] = Template("pass")


@frozen
class ToSet(Stage[T, set[T]]):
    """Stage of ``Flow.to_set``."""

    needs_whole_stream = True

    def transform(self) -> Transform[T, set[T]]:
        """Return an empty set."""
        return KeepDifferent[T](set())

    def in_parts(self) -> Parts:
        """Put the different elements of the parts together."""
        return Parts(Different(), self)


@frozen
class ToDict(Stage[Any, dict[K, V]]):
    """Stage of ``Flow.to_dict``."""

    key: Callable[[Any], K] | None
    value: Callable[[Any], V] | None
    needs_whole_stream = True

    def transform(self) -> Transform[Any, dict[K, V]]:
        """Return an empty dict."""
        return KeepPairs({}) if self.key is None else KeepByKey[Any]({}, self.value, key=self.key)

    def in_parts(self) -> Parts:
        """Put the latest pairs of the parts together."""
        return Parts(LatestPairs(self.key, self.value), ToDict[Any, Any](None, None))


@frozen
class Sum(Stage[Any, Any]):
    """Stage of ``Flow.sum``."""

    start: Any
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a fresh sum."""
        return Adding(self.start)

    def in_parts(self) -> Parts | None:
        """Add the sums of the parts to the start, where it is a number, so that nothing begins with a 0 in its place."""
        return Parts(SumOfPart(), self, rounds=True) if isinstance(self.start, Number) else None


@frozen
class Min(Stage[T, T]):
    """Stage of ``Flow.min``."""

    key: Callable[[T], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a place for the least."""
        return KeepLeast[T]() if self.key is None else KeepLeastKey[T](fn=self.key)

    def in_parts(self) -> Parts:
        """Return how the parts are merged: the first of their least elements."""
        return Parts(LeastOfPart(self.key), self)


@frozen
class Max(Stage[T, T]):
    """Stage of ``Flow.max``."""

    key: Callable[[T], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a place for the greatest."""
        return KeepGreatest[T]() if self.key is None else KeepGreatestKey[T](fn=self.key)

    def in_parts(self) -> Parts:
        """Return how the parts are merged: the first of their greatest elements."""
        return Parts(GreatestOfPart(self.key), self)


@frozen
class Single(Stage[T, T]):
    """Stage of ``Flow.single``."""

    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a place for the element."""
        return KeepOne[T]()

    def in_parts(self) -> Parts:
        """No part emits more elements than show that there are too many."""
        return Parts(Take[T](2), self)


@frozen
class Drain(Stage[Any, Any]):
    """Stage of ``Flow.drain``."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a transform without state."""
        return KeepNone()

    def in_parts(self) -> Parts:
        """Read every part to its end."""
        return Parts(self, self)
