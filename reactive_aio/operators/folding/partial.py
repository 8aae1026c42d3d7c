"""The reductions of one part of a stream, where the parts are combined later."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Stage, Template, Transform
from .fold import Folding


class AddingFrom0(Folding[Any, Any]):
    """Keeps the sum, or nothing without an element."""

    template: ClassVar[Template | None] = Template(
        "$value = (0 if $value is $missing else $value) + item", local=("value",)
    )


class KeepFirsts(Folding[Any, Any]):
    """Keeps the first of the elements that are equal, in the order in which they came."""

    template: ClassVar[Template | None] = Template("$keep(item)")

    @property
    def keep(self) -> Callable[[Any], Any]:
        """The method that takes an element, looked up once for a pass."""
        keep: Callable[[Any], Any] = self.value.setdefault
        return keep

    def finish(self) -> Iterable[Any]:
        """Return the elements one by one."""
        self.given = True
        firsts: dict[Any, Any] = self.value
        return firsts


class KeepPairs(Folding[Any, Any]):
    """Keeps the latest value for each key, where an element is a pair of them."""

    template: ClassVar[Template | None] = Template("""
        key, item = item
        $value[key] = item
    """)

    def finish(self) -> Iterable[Any]:
        """Return the pairs one by one."""
        self.given = True
        pairs: dict[Any, Any] = self.value
        return pairs.items()


@define
class KeepPairsByKey(KeepPairs):
    """The same with functions for both."""

    key: Callable[[Any], Any] = field(kw_only=True)

    template: ClassVar[Template | None] = Template("$value[$key(item)] = item if $fn is None else $fn(item)")


def extreme(sign: str, *, by_key: bool) -> Template:
    """Write the lines that keep the first of the least, or of the greatest, elements.

    A value that does not equal itself (a NaN) is neither less nor greater than anything. Over the whole stream it is
    kept if it comes first of all, and never else. Of a part that is true as well only if the part is the first one. So
    it is kept apart there, and does not hide what follows it.
    """
    if by_key:
        return Template(
            f"""
            key = $fn(item)
            if $value is $missing or key {sign} $best:
                if key == key:
                    $value = item
                    $best = key
                elif $leading is $missing:
                    $leading = item
            """,
            local=("value", "best", "leading"),
        )
    return Template(
        f"""
        if $value is $missing or item {sign} $value:
            if item == item:
                $value = item
            elif $leading is $missing:
                $leading = item
        """,
        local=("value", "leading"),
    )


@define
class KeepExtreme(Folding[Any, Any]):
    """Keeps the first of the least, or of the greatest, elements that can be compared."""

    best: Any = field(init=False, default=MISSING)
    leading: Any = field(init=False, default=MISSING)
    """A value that can't be compared, where it comes first."""

    def finish(self) -> Iterable[Any]:
        """Return the candidates for the whole stream, in the order in which they came."""
        self.given = True
        return [each for each in (self.leading, self.value) if each is not MISSING]

    @property
    def pending(self) -> bool:
        """Return whether the result is still to come."""
        return not self.given and not (self.value is MISSING and self.leading is MISSING)


class KeepLeast(KeepExtreme):
    """Keeps the first of the least."""

    template: ClassVar[Template | None] = extreme("<", by_key=False)


class KeepLeastKey(KeepExtreme):
    """Keeps the first of those with the least key."""

    template: ClassVar[Template | None] = extreme("<", by_key=True)


class KeepGreatest(KeepExtreme):
    """Keeps the first of the greatest."""

    template: ClassVar[Template | None] = extreme(">", by_key=False)


class KeepGreatestKey(KeepExtreme):
    """Keeps the first of those with the greatest key."""

    template: ClassVar[Template | None] = extreme(">", by_key=True)


@frozen
class SumOfPart(Stage[Any, Any]):
    """The share of ``Flow.sum``."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a fresh sum."""
        return AddingFrom0()


@frozen
class Different(Stage[Any, Any]):
    """The share of ``Flow.to_set``. Not a set, which emits its elements in another order each time."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return an empty dict."""
        return KeepFirsts({})


@frozen
class LatestPairs(Stage[Any, Any]):
    """The share of ``Flow.to_dict``."""

    key: Callable[[Any], Any] | None
    value: Callable[[Any], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return an empty dict."""
        return KeepPairs({}) if self.key is None else KeepPairsByKey({}, self.value, key=self.key)


@frozen
class LeastOfPart(Stage[Any, Any]):
    """The share of ``Flow.min``."""

    key: Callable[[Any], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a place for the least."""
        return KeepLeast() if self.key is None else KeepLeastKey(fn=self.key)


@frozen
class GreatestOfPart(Stage[Any, Any]):
    """The share of ``Flow.max``."""

    key: Callable[[Any], Any] | None
    needs_whole_stream = True

    def transform(self) -> Transform[Any, Any]:
        """Return a place for the greatest."""
        return KeepGreatest() if self.key is None else KeepGreatestKey(fn=self.key)
