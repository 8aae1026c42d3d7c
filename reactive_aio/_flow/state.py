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
    """A value that a program sets on any thread, and a flow of it: each request gets the latest value.

    A new subscriber gets the current value first, and later, for each request, the latest new value. Values in between
    are not kept, so a slow subscriber holds nobody up. With ``distinct=True`` setting an equal value changes nothing.
    Demand: one value for each request, when there is a new one. Only the latest value is kept.
    Errors: `set` raises RuntimeError when the state has been closed. If it is distinct, `set` also raises errors of the
    comparison.
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
        """Replace the value. Call it on any thread."""
        latest = self._latest
        # When it is closed, an equal value is refused as well.
        if latest.closed or not (self._distinct and (value is latest.value or value == latest.value)):
            latest.put(value)

    def close(self) -> None:
        """End the flow, after the current value. Call it on any thread."""
        self._latest.close()

    @property
    def flow(self) -> Flow[T]:
        """The flow of the current value and those that follow it."""
        return Flow(Nodes(Placed(StateFlow(self._latest), calling_line())))

    def __repr__(self) -> str:
        return f"State({self.value!r})"
