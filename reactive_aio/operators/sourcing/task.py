"""Sources that are coroutines: each runs in one task and one context, from its first step to its last.

An async generator that is advanced or closed by another task than the one that started it breaks its own
timeouts, scopes and context variables. Here one task does all three, and it is never cut off: the
subscription counts as ended only when the task has.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..._core import budgets
from ..._core.budgets import Budget
from ..._core.containers import new_deque
from ..._core.guard import FAILURES, cancelled_from_outside, is_closed_with
from ..._core.notes import add_note
from ..._plan import Inlet, Pushed
from ...hooks import discard
from ...spec import UNBOUNDED, Subscription, add_demand

T = TypeVar("T")


@define(eq=False)
class Production:
    """One run of a producer: the Subscription of the region, and the demand that the task waits for."""

    inlet: Inlet[Any]
    produce: Callable[[Production], Awaitable[None]]
    wanted: int = field(init=False, default=0)
    """Elements that have been requested and not delivered."""
    _waiters: deque[asyncio.Future[None]] = field(init=False, factory=new_deque)
    _started: bool = field(init=False, default=False)
    _task: asyncio.Task[None] | None = field(init=False, default=None)
    """The task while it runs. After its end it would make a reference cycle with this object."""
    cancelled: bool = field(init=False, default=False)
    _over: bool = field(init=False, default=False)
    """Whether nothing is delivered any more, since it has been cancelled or has ended."""
    _budget: Budget = field(init=False)
    _turn_over: float = field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self._budget = Budget.of(self.inlet.loop)

    def request(self, n: int) -> None:
        """Let the producer go on. The first demand starts its task."""
        if self.cancelled:
            return
        self.wanted = add_demand(self.wanted, n)
        if not self._started:
            self._started = True
            self._task = self.inlet.start(self._run(self._budget.lend()))
            self._task.add_done_callback(self._ended)
        self._wake()

    def _ended(self, _: object) -> None:
        self._task = None
        self._stop()

    def _stop(self) -> None:
        """Deliver nothing any more. Who waits for demand goes on, since none will come."""
        self._over = True
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            _wake(waiter)

    def cancel(self) -> None:
        """Cancel the task, once. Its cleanup runs to its end."""
        if not self.cancelled:
            self.cancelled = True
            if self._task is not None:
                self._task.cancel()
            self._stop()

    def undisturbed(self) -> None:
        """Keep a cancel away from now on: what the task still has to do is cleanup."""
        self._task = None

    async def demand(self, seconds: float | None = None) -> bool:
        """Wait for demand, and let others run from time to time. Return False if none comes for ``seconds``, or ever."""
        if self.wanted and budgets.clock() < self._turn_over and not self._over:
            return True
        if self.wanted or self._over:
            await self.turn()
        while not (self.wanted or self._over):
            waiter: asyncio.Future[None] = self.inlet.loop.create_future()
            self._waiters.append(waiter)
            timer = None if seconds is None else self.inlet.loop.call_later(seconds, _wake, waiter)
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)
                if timer is not None:
                    timer.cancel()
            self._turn_over = self._budget.deadline()
            if seconds is not None:
                break
        return self.wanted > 0

    async def turn(self) -> None:
        """Let others run."""
        self._turn_over = await self._budget.turn()

    async def emit(self, item: Any) -> None:
        """Wait until the element is requested, and deliver it. When nothing is delivered any more, it is discarded."""
        await self.demand()
        if self._over:
            discard([item])
        else:
            self.deliver([item])

    def deliver(self, items: list[Any]) -> None:
        """Deliver requested elements."""
        if self.wanted != UNBOUNDED:
            self.wanted -= len(items)
        self.inlet.on_chunk(items)

    async def _run(self, part: float) -> None:
        self._turn_over = budgets.clock() + part
        try:
            await self.produce(self)
        except asyncio.CancelledError as error:
            if not self.cancelled:
                self._end(cancelled_from_outside(error, "the task of a source"))
            raise
        except FAILURES as error:
            if is_closed_with(error, self.inlet.loop):
                raise
            self._end(error)
        else:
            if not self.cancelled:
                self.inlet.on_complete()

    def _end(self, error: BaseException) -> None:
        add_note(error, f"in {self.inlet.where}")
        if self.cancelled:
            self.inlet.cleanup_failed(error)
        else:
            self.inlet.on_error(error)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class TaskSource(Pushed[T]):
    """A source that is produced by a coroutine."""

    __slots__ = ()

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Return a subscription whose first request starts the task."""
        return Production(inlet, self.produce)

    @abstractmethod
    async def produce(self, production: Production) -> None:
        """Deliver all elements. Returning completes the flow, raising fails it."""


@frozen
class Create(TaskSource[T]):
    """Source of ``Flow.create``."""

    producer: Callable[[Callable[[T], Awaitable[None]]], Awaitable[None]]

    async def produce(self, production: Production) -> None:
        """Run the producer."""
        await self.producer(production.emit)
