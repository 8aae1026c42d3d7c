"""The stages behind the ends that return one value. Each consumes all elements and emits its value at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add
from typing import Any, ClassVar, TypeVar

from attrs import define, field, frozen

from ..._core.missing import MISSING
from ..._fusion import Parts, Stage, Template, Transform, label
from ...hooks import discard
from ...spec import UNBOUNDED
from .._fluent import refuse_coroutine

T = TypeVar("T")
A = TypeVar("A")


@define
class Folding(Transform[T, A]):
    """A value that changes with each element and is emitted once, at the end."""

    value: Any = MISSING
    fn: Callable[..., Any] | None = None
    given: bool = field(init=False, default=False)

    missing: ClassVar[Any] = MISSING

    def demand(self, n: int) -> int:
        """Request all elements, however few results are requested."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterable[A]:
        """Return the value, if there is one."""
        self.given = True
        return () if self.value is MISSING else (self.value,)

    @property
    def pending(self) -> bool:
        """Return whether the value is still to come."""
        return not self.given and self.value is not MISSING


class FoldFrom(Folding[T, A]):
    """Starts with a value of its own."""

    template: ClassVar[Template | None] = Template("$value = $fn($value, item)", local=("value",))


class FoldFirst(Folding[T, T]):
    """Starts with the first element."""

    template: ClassVar[Template | None] = Template(
        "$value = item if $value is $missing else $fn($value, item)", local=("value",)
    )


class Keeping(Folding[T, A]):
    """Keeps elements unchanged. Elements that reach no subscriber have to go to the hook of discarded elements."""

    @property
    def held(self) -> Iterable[Any]:
        """The elements that are kept."""
        return () if self.value is MISSING else (self.value,)

    def close(self) -> None:
        """Drop elements that reach no subscriber, because the flow has failed or was cancelled."""
        if not self.given:
            discard(self.held)


class KeepingSeveral(Keeping[T, A]):
    """The same in a container of them."""

    @property
    def held(self) -> Iterable[Any]:
        """The elements that are kept."""
        several: Iterable[Any] = self.value
        return several


class KeepLast(Keeping[T, T]):
    """Keeps the latest element."""

    template: ClassVar[Template | None] = Template("$value = item", local=("value",), plain=True)


class KeepAll(KeepingSeveral[T, list[T]]):
    """Keeps all elements."""

    template: ClassVar[Template | None] = Template("$append(item)", at_once="$extend(some)", plain=True)

    @property
    def append(self) -> Callable[[T], None]:
        """The method that takes an element, looked up once for a pass."""
        append: Callable[[T], None] = self.value.append
        return append

    @property
    def extend(self) -> Callable[[Iterable[T]], None]:
        """The method that takes several."""
        extend: Callable[[Iterable[T]], None] = self.value.extend
        return extend


class Counting(Folding[Any, int]):
    """Keeps the number of elements."""

    template: ClassVar[Template | None] = Template("$value += 1", tally=("value",), plain=True)


class Calling(Folding[T, Any]):
    """Hands each element to a function and keeps nothing."""

    template: ClassVar[Template | None] = Template("if (returned := $fn(item)) is not None: $check($fn, returned)")

    @staticmethod
    def check(fn: Callable[[Any], object], given: object) -> None:
        """Refuse a function that returns a coroutine."""
        refuse_coroutine(fn, given, "pass for_each the `async def` itself, or functools.partial of it")


@frozen
class Reduce(Stage[T, Any]):
    """Stage of ``Flow.reduce``."""

    fn: Callable[[Any, T], Any]
    initial: Any = MISSING
    combine: Callable[[Any, Any], Any] | None = None
    needs_whole_stream = True

    @property
    def arguments(self) -> str:
        """The arguments of the call."""
        initial = "" if self.initial is MISSING else f", {label(self.initial)}"
        combine = "" if self.combine is None else f", combine={label(self.combine)}"
        return f"{label(self.fn)}{initial}{combine}"

    def transform(self) -> Transform[T, Any]:
        """Return the initial value, or a place for the first element."""
        return FoldFirst(fn=self.fn) if self.initial is MISSING else FoldFrom(self.initial, self.fn)

    def in_parts(self) -> Parts | None:
        """Combine the values of the parts as well, if it is known how."""
        return None if self.combine is None else Parts(self, Reduce(self.combine, self.initial), rounds=True)


@frozen
class Fold(Reduce[T]):
    """Stage of ``KeyedFlow.fold``."""


@frozen
class Last(Stage[T, T]):
    """Stage of ``Flow.last``."""

    needs_whole_stream = True

    def transform(self) -> Transform[T, T]:
        """Return a place for the latest element."""
        return KeepLast()

    def in_parts(self) -> Parts:
        """Return how the parts are merged: the last of their last elements."""
        return Parts(self, self)


@frozen
class ToList(Stage[T, list[T]]):
    """Stage of ``Flow.to_list``."""

    needs_whole_stream = True

    def transform(self) -> Transform[T, list[T]]:
        """Return an empty list."""
        return KeepAll([])


@frozen
class Count(Stage[Any, int]):
    """Stage of ``Flow.count``."""

    needs_whole_stream = True

    def transform(self) -> Transform[Any, int]:
        """Return a zero."""
        return Counting(0)

    def in_parts(self) -> Parts:
        """Add the numbers up."""
        return Parts(self, AddUp())


@frozen
class AddUp(Stage[int, int]):
    """Adds up the numbers of elements that parts have."""

    needs_whole_stream = True

    def transform(self) -> Transform[int, int]:
        """Return a zero."""
        return FoldFrom(0, add)


@frozen
class ForEach(Stage[T, Any]):
    """Stage of ``Flow.for_each`` with an ordinary function."""

    fn: Callable[[T], object]
    needs_whole_stream = True

    def transform(self) -> Transform[T, Any]:
        """Return the transform of the call."""
        return Calling(fn=self.fn)
