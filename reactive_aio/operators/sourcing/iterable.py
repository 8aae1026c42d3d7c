"""Sources that are iterables, read on demand inside the region."""

from __future__ import annotations

import builtins
import sys
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar, cast

from attrs import field, frozen

from ..._core.containers import new_list
from ..._fusion import label
from ..._plan import Pulled, Source
from ...errors import SourceConsumedError

T = TypeVar("T")

# Making an iterator of these runs none of the user's code.
PLAIN = (list, tuple, builtins.range, str, bytes, dict, set, frozenset)


@frozen
class FromIterable(Pulled[T]):
    """Source of ``Flow.from_iterable``."""

    items: Iterable[T]

    @property
    def at_hand(self) -> bool:
        """Whether the iterable is a builtin collection, and no range that is too long for `len`."""
        items: object = self.items
        return type(items) in PLAIN and not (isinstance(items, builtins.range) and items[sys.maxsize :])

    def iterate(self) -> Iterator[T]:
        """Return a fresh iterator."""
        return iter(self.items)


_set_items: Callable[[FromIterable[Any], tuple[Any, ...]], None] = vars(FromIterable)["items"].__set__


@frozen(init=False)
class Of(FromIterable[T]):
    """Source of ``Flow.of``."""

    items: tuple[T, ...]

    def __init__(self, items: tuple[T, ...]) -> None:
        _set_items(self, items)  # a service may make one for each element: attrs takes twice as long

    @property
    def at_hand(self) -> bool:
        """A tuple is."""
        return True

    @property
    def arguments(self) -> str:
        """The elements, as far as they are few."""
        shown = [label(item) for item in self.items[:4]]
        return ", ".join(shown if len(shown) == len(self.items) else [*shown, "..."])


@frozen
class Range(FromIterable[int]):
    """Source of ``Flow.range``."""

    items: builtins.range

    @property
    def arguments(self) -> str:
        """The arguments of the range."""
        numbers = self.items
        return ", ".join(map(label, (numbers.start, numbers.stop, *([numbers.step] if numbers.step != 1 else []))))


@frozen
class Empty(FromIterable[T]):
    """Source of ``Flow.empty``."""

    items: tuple[T, ...] = field(default=(), repr=False)


@frozen
class FromIterator(Pulled[T]):
    """Source of ``Flow.from_iterable`` over an iterator, which can be read only once."""

    items: Iterator[T]
    _read: list[bool] = field(factory=new_list, repr=False, eq=False)

    @property
    def name(self) -> str:
        """The name of the method."""
        return "from_iterable"

    def iterate(self) -> Iterator[T]:
        """Return the iterator itself, the first time."""
        if self._read:
            raise SourceConsumedError(
                f"{self} was subscribed to a second time, but an iterator can be read only once. "
                "Pass from_iterable() a collection, or a function that makes the iterator"
            )
        self._read.append(True)
        return self.items


@frozen
class FromMade(Pulled[T]):
    """Source of ``Flow.from_iterable`` with a function, which makes an iterable for each subscription."""

    make: Callable[[], object]

    @property
    def name(self) -> str:
        """The name of the method."""
        return "from_iterable"

    def iterate(self) -> Iterator[T]:
        """Make an iterable, and return its iterator."""
        items = self.make()
        if isinstance(items, Iterable):
            return iter(cast("Iterable[T]", items))
        made = f"{label(self.make)} must return an iterable, but returned {label(items)}"
        raise TypeError(made + (". Use Flow.from_async_iterable" if isinstance(items, AsyncIterable) else ""))


@cache
def of_async_iterables() -> tuple[Callable[[Any], Source[Any]], Callable[[Any], Source[Any]]]:
    """Return two classes: to import them takes as long as to make a flow, and a service makes one for each request."""
    from .async_iterable import FromAsyncIterable, FromAsyncMade

    return FromAsyncIterable, FromAsyncMade
