"""The state: a value that changes, and a flow of it for several subscribers."""

from __future__ import annotations

from typing import Generic, TypeVar

from .._fusion import Placed, calling_line
from .._plan import Nodes
from ..operators._fluent import check_flag
from ..operators.sharing.latest import Latest, StateFlow
from .flow import Flow

T = TypeVar("T")


class State(Generic[T]):
    """A value that a program sets on any thread, and a flow of it: each subscriber is given the latest value when it asks.

    One who comes is given the value first, and then each time what it was set to most lately. Values between these are not kept for
    anybody, so a slow subscriber holds nobody up. With ``distinct=True`` a value that is equal to the one that there is changes nothing.
    Demand: one value for each that is asked for, when there is a new one. Nothing is kept but the latest.
    Errors: `set` raises RuntimeError when the state has been closed, and, where it is distinct, what comparing the values raises.
    (Kotlin: ``MutableStateFlow``; RxJava, RxPY: ``BehaviorSubject``, with demand.)

    >>> import asyncio
    >>> from reactive_aio import State
    >>> async def main():
    ...     level = State(1)
    ...     async with level.flow.open() as seen:
    ...         first = await anext(seen)
    ...         for n in range(2, 10):
    ...             level.set(n)
    ...         level.close()
    ...         return first, [n async for n in seen]
    >>> asyncio.run(main())
    (1, [9])
    """

    __slots__ = ("_distinct", "_latest")

    def __init__(self, value: T, *, distinct: bool = False) -> None:
        check_flag("State", "distinct", distinct)
        self._latest = Latest(value)
        self._distinct = distinct

    @property
    def value(self) -> T:
        """The latest value."""
        value: T = self._latest.value
        return value

    def set(self, value: T) -> None:
        """Replace the value; from any thread."""
        if not (self._distinct and (value is self.value or value == self.value)):
            self._latest.put(value)

    def close(self) -> None:
        """End the flow, behind the value that there is; from any thread."""
        self._latest.close()

    @property
    def flow(self) -> Flow[T]:
        """The value that there is, and those that follow it."""
        return Flow(Nodes(Placed(StateFlow(self._latest), calling_line())))

    def __repr__(self) -> str:
        return f"State({self.value!r})"
