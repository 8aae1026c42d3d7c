"""Sources that are async iterators."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._core.containers import new_list
from ..._fusion import label
from ..._plan import Awaited
from ...errors import SourceConsumedError

T = TypeVar("T")


@define(unsafe_hash=True)
class FromAsyncIterable(Awaited[T]):
    """Source of ``Flow.from_async_iterable``; never changed, but not frozen, which would double the time it takes to make one."""

    items: AsyncIterable[T]
    _read: list[bool] = field(factory=new_list, repr=False, eq=False)

    def iterator(self, where: object) -> AsyncIterator[T]:
        """Return a fresh iterator; or the iterator itself, the first time."""
        iterator = aiter(self.items)
        if iterator is self.items:
            if self._read:
                raise SourceConsumedError(
                    f"{self} was subscribed to a second time, but an async iterator can be read only once. "
                    "Pass from_async_iterable() a function that makes the iterator"
                )
            self._read.append(True)
        return iterator


@frozen
class FromAsyncMade(Awaited[T]):
    """Source of ``Flow.from_async_iterable`` with a function, which makes an async iterable for each subscription."""

    make: Callable[[], object]

    @property
    def name(self) -> str:
        """The name of the method."""
        return "from_async_iterable"

    def iterator(self, where: object) -> AsyncIterator[T]:
        """Make an async iterable, and return its iterator."""
        items = self.make()
        iterable: Any = items
        # As `isinstance(items, AsyncIterable)`, which takes longer than all the rest.
        if getattr(type(items), "__aiter__", None) is not None:
            return aiter(iterable)
        made = f"{label(self.make)} must return an async iterable, but returned {label(items)}: {where}"
        raise TypeError(made + (". Use Flow.from_iterable" if isinstance(items, Iterable) else ""))
