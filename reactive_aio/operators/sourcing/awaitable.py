"""Sources of one element that a function of the user returns, at once or when it has been awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import TypeVar

from attrs import frozen

from ..._core.guard import as_of_a_generator
from ..._fusion import label
from ..._plan import Pulled
from .task import Production, TaskSource

T = TypeVar("T")


@frozen
class FromAwaitable(TaskSource[T]):
    """Source of ``Flow.from_awaitable``."""

    factory: Callable[[], Awaitable[T]]

    async def produce(self, production: Production) -> None:
        """Await the result of the factory."""
        awaitable = self.factory()
        if not isawaitable(awaitable):
            kind = type(awaitable).__name__
            raise TypeError(
                f"{label(self.factory)} returned a value that can't be awaited, of type {kind}: use Flow.from_callable"
            )
        production.deliver([await awaitable])


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
