"""Sources of one element that a function of the user returns, at once or when it has been awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import TypeVar

from attrs import define, frozen

from ..._core.guard import as_of_a_generator
from ..._fusion import label
from ..._plan import Awaited, Pulled

T = TypeVar("T")


@frozen
class FromAwaitable(Awaited[T]):
    """Source of ``Flow.from_awaitable``."""

    single = True

    factory: Callable[[], Awaitable[T]]

    def iterator(self, where: object) -> AsyncIterator[T]:
        """Return what awaits the result of the factory."""
        return _Result(self.factory)


@define(eq=False)
class _Result(AsyncIterator[T]):
    """The one result of a factory."""

    _factory: Callable[[], Awaitable[T]]

    async def __anext__(self) -> T:
        awaitable = self._factory()
        if isawaitable(awaitable):
            return await awaitable
        raise TypeError(
            f"{label(self._factory)} returned a value that can't be awaited, of type {type(awaitable).__name__}: "
            "use Flow.from_callable"
        )


@frozen
class FromCallable(Pulled[T]):
    """Source of ``Flow.from_callable``."""

    fn: Callable[[], T]

    def iterate(self) -> Iterator[T]:
        """Call the function; a tuple, so that the end is known with the element."""
        try:
            return iter((self.fn(),))
        except StopIteration as stop:
            raise as_of_a_generator(stop, label(self.fn)) from stop
