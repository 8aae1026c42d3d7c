"""Reading an async iterator ahead: what it gives without waiting goes on as one list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from itertools import repeat
from types import coroutine
from typing import Any, Final, Protocol

from attrs import define, field

from ..._core import budgets

LONGEST: Final = 64
"""Elements between two looks at the clock, at most; a list goes on where the clock says that they were not quick."""
QUICK: Final = 50e-6
"""Seconds."""


class Taker(Protocol):
    """What the elements are delivered to."""

    wanted: int
    """Elements that have been asked for and not delivered."""

    async def resume(self, iterator: AsyncIterator[Any], /) -> list[Any]:
        """Wait until elements are wanted; the result is what the iterator gave meanwhile, which is nothing or one."""
        ...

    def deliver(self, items: list[Any], /) -> None:
        """Take elements."""


@define(eq=False)
class Ahead:
    """Reads an iterator in the task that runs `read`, as far as elements are wanted.

    A list goes on when the iterator suspends, so that nothing that has been made waits for what has not; and when it is
    as long as is wanted, or took too long to make.
    """

    taker: Taker
    iterator: AsyncIterator[Any]
    _made: list[Any] = field(init=False, factory=list[Any])  # bounded by what is wanted

    async def read(self) -> None:
        """Deliver all elements; what the iterator raises at its end comes out, behind them."""
        try:
            await noticing(self._read(), self._flush)
        finally:
            self._flush()

    async def _read(self) -> None:
        taker, made, stride = self.taker, self._made, 1
        following = self.iterator.__anext__
        while True:
            made += await taker.resume(self.iterator)
            while (room := taker.wanted - len(made)) > 0:
                since = budgets.clock()
                for _ in repeat(None, min(stride, room)):
                    made.append(await following())
                if budgets.clock() - since > QUICK:
                    stride = 1
                    break
                stride = min(2 * stride, LONGEST)
            self._flush()

    def _flush(self) -> None:
        if self._made:
            made = self._made[:]
            self._made.clear()
            self.taker.deliver(made)


@coroutine
def noticing(running: Coroutine[Any, Any, None], suspends: Callable[[], None]) -> Generator[Any, Any, None]:
    """Run a coroutine in the task that awaits this, with a call whenever it suspends; else the same as to await it."""
    resume: Callable[[Any], Any] = running.send
    value: Any = None
    while True:
        try:
            awaited = resume(value)
        except StopIteration:
            return
        suspends()
        try:
            resume, value = running.send, (yield awaited)
        except GeneratorExit:
            running.close()
            raise
        except BaseException as error:
            resume, value = running.throw, error
