"""The stages behind the ends that make one value for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._fusion import Parts, Stage, Template, Transform
from .fold import Folding

K = TypeVar("K")
A = TypeVar("A")


@define
class FoldEach(Folding[Any, Any]):
    """Keeps a value for each key, in the order in which the keys came."""

    key: Callable[[Any], Any] = field(kw_only=True)
    initial: Any = field(kw_only=True, default=0)
    pairs: bool = field(kw_only=True, default=False)
    """Whether to emit pairs of key and value one by one, for others to combine, and not a dict."""

    template: ClassVar[Template | None] = Template("""
        key = $key(item)
        $value[key] = $fn($value[key] if key in $value else $initial, item)
    """)

    def finish(self) -> Iterable[Any]:
        """Return the values."""
        self.given = True
        values: dict[Any, Any] = self.value
        return values.items() if self.pairs else (values,)


class CountEach(FoldEach):
    """Keeps a number for each key."""

    template: ClassVar[Template | None] = Template("""
        key = $key(item)
        $value[key] = $value[key] + 1 if key in $value else 1
    """)


class CombineEach(Folding[Any, Any]):
    """Keeps a value for each key, of pairs of a key and a value of a part."""

    template: ClassVar[Template | None] = Template("""
        key, item = item
        $value[key] = $fn($value[key], item) if key in $value else item
    """)


@frozen
class CountByKey(Stage[Any, dict[K, int]]):
    """Stage of ``Flow.count_by_key``."""

    key: Callable[[Any], K]
    needs_whole_stream = True

    def transform(self) -> Transform[Any, dict[K, int]]:
        """Return an empty dict."""
        return CountEach({}, key=self.key)

    def in_parts(self) -> Parts:
        """Add the numbers of the parts up."""
        return Parts(CountByKeyOfPart(self.key), CombineByKey(add))


@frozen
class ReduceByKey(Stage[Any, dict[K, A]]):
    """Stage of ``Flow.reduce_by_key``."""

    key: Callable[[Any], K]
    fn: Callable[[A, Any], A]
    initial: A
    combine: Callable[[A, A], A] | None
    needs_whole_stream = True

    def transform(self) -> Transform[Any, dict[K, A]]:
        """Return an empty dict."""
        return FoldEach({}, self.fn, key=self.key, initial=self.initial)

    def in_parts(self) -> Parts | None:
        """Combine the values of the parts, if it is known how."""
        if self.combine is None:
            return None
        return Parts(ReduceByKeyOfPart(self.key, self.fn, self.initial), CombineByKey(self.combine), rounds=True)


@frozen
class CountByKeyOfPart(Stage[Any, Any]):
    """The share of ``Flow.count_by_key``."""

    key: Callable[[Any], Any]
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return an empty dict."""
        return CountEach({}, key=self.key, pairs=True)


@frozen
class ReduceByKeyOfPart(Stage[Any, Any]):
    """The share of ``Flow.reduce_by_key``."""

    key: Callable[[Any], Any]
    fn: Callable[[Any, Any], Any]
    initial: Any
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return an empty dict."""
        return FoldEach({}, self.fn, key=self.key, initial=self.initial, pairs=True)


@frozen
class CombineByKey(Stage[Any, dict[Any, Any]]):
    """Combines the results of the parts."""

    combine: Callable[[Any, Any], Any]
    needs_whole_stream = True

    def transform(self) -> Transform[Any, dict[Any, Any]]:
        """Return an empty dict."""
        return CombineEach({}, self.combine)
