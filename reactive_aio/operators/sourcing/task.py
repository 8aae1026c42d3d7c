"""Sources that are coroutines: each runs in one task and one context, from its first step to its last.

An async generator that is advanced or closed by another task than the one that started it breaks its own
timeouts, scopes and context variables. Here one task does all three, and it is never cut off: the
subscription counts as ended only when the task has.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar, cast

from attrs import define, field, frozen

from ..._core import budgets
from ..._core.budgets import Budget
from ..._core.guard import FAILURES, as_failure, cancelled_from_outside, is_closed_with
from ..._fusion import label
from ..._plan import Inlet, Pushed
from ...errors import SourceConsumedError
from ...hooks import also_failed
from ...spec import UNBOUNDED, Subscription, add_demand
from .ahead import Ahead

T = TypeVar("T")


@define(eq=False)
class Production:
    """One run of a producer: the Subscription of the region, and the demand that the task waits for."""

    inlet: Inlet[Any]
    produce: Callable[[Production], Awaitable[None]]
    wanted: int = field(init=False, default=0)
    """Elements that have been asked for and not delivered."""
    _waiters: deque[asyncio.Future[None]] = field(init=False, factory=deque[asyncio.Future[None]])
    _started: bool = field(init=False, default=False)
    _task: asyncio.Task[None] | None = field(init=False, default=None)
    """The task while it runs; behind its end it would keep this object, and be kept by it."""
    cancelled: bool = field(init=False, default=False)
    _budget: Budget = field(init=False)
    _turn_over: float = field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self._budget = Budget.of(self.inlet.loop)

    def request(self, n: int) -> None:
        """Let the producer go on; the first demand starts its task."""
        if self.cancelled:
            return
        self.wanted = add_demand(self.wanted, n)
        if not self._started:
            self._started = True
            self._task = self.inlet.start(self._run())
            self._task.add_done_callback(self._over)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _over(self, _: object) -> None:
        self._task = None

    def cancel(self) -> None:
        """Cancel the task, once; its cleanup runs to its end."""
        if not self.cancelled:
            self.cancelled = True
            if self._task is not None:
                self._task.cancel()

    async def demand(self) -> None:
        """Wait until an element is wanted, and let others run from time to time."""
        if self.wanted and budgets.clock() < self._turn_over and not self.cancelled:
            return
        if self.wanted or self.cancelled:
            self._budget.waiting.add(self)
            try:
                await asyncio.sleep(0)
            finally:
                self._budget.waiting.discard(self)
        while not self.wanted:
            waiter: asyncio.Future[None] = self.inlet.loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)
        self._turn_over = self._budget.deadline()

    async def resume(self, iterator: AsyncIterator[Any]) -> list[Any]:
        """Wait until elements are wanted; a cancellation meanwhile is the iterator's, which may answer by an element."""
        try:
            await self.demand()
        except asyncio.CancelledError as cancelled:
            # Not ours, so most likely a timeout of the generator's own that ran out while it was not asked: it
            # alone can tell, so it is where the cancellation belongs.
            throw = getattr(iterator, "athrow", None)
            if self.cancelled or throw is None:
                raise
            return [await throw(cancelled)]
        return []

    async def emit(self, item: Any) -> None:
        """Wait until the element is wanted, and deliver it."""
        await self.demand()
        self.deliver([item])

    def deliver(self, items: list[Any]) -> None:
        """Deliver elements that are wanted."""
        if self.wanted != UNBOUNDED:
            self.wanted -= len(items)
        self.inlet.on_chunk(items)

    async def _run(self) -> None:
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
        if self.cancelled:
            self.inlet.cleanup_failed(error)
        else:
            self.inlet.on_error(error)


class TaskSource(Pushed[T]):
    """A source that is produced by a coroutine."""

    __slots__ = ()

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Give a subscription whose first request starts the task."""
        return Production(inlet, self.produce)

    @abstractmethod
    async def produce(self, production: Production) -> None:
        """Deliver all elements; returning completes the flow, raising fails it."""


@frozen
class Create(TaskSource[T]):
    """Source of ``Flow.create``."""

    producer: Callable[[Callable[[T], Awaitable[None]]], Awaitable[None]]

    async def produce(self, production: Production) -> None:
        """Run the producer."""
        await self.producer(production.emit)


class Iterated(TaskSource[T]):
    """A source that is an async iterator."""

    __slots__ = ()

    async def produce(self, production: Production) -> None:
        """Advance the iterator by what is wanted, and close it, all in this task."""
        iterator = self.iterator(production.inlet.where)
        try:
            if production.inlet.ahead:
                await Ahead(production, iterator).read()
            while True:
                given = await production.resume(iterator)
                production.deliver(given or [await anext(iterator)])
        except StopAsyncIteration:
            await _close(iterator, None)
        except FAILURES as error:
            await _close(iterator, error)
            raise

    @abstractmethod
    def iterator(self, where: str) -> AsyncIterator[T]:
        """Give the iterator of a subscription; ``where`` is for its errors."""


@frozen
class FromAsyncIterable(Iterated[T]):
    """Source of ``Flow.from_async_iterable``."""

    items: AsyncIterable[T]
    _read: list[bool] = field(factory=list[bool], repr=False, eq=False)

    def iterator(self, where: str) -> AsyncIterator[T]:
        """Give a fresh iterator; or the iterator itself, the first time."""
        iterator = aiter(self.items)
        if iterator is self.items:
            if self._read:
                raise SourceConsumedError(
                    f"{self} was subscribed to a second time, but an async iterator can be read once only: "
                    "give from_async_iterable a function that makes it"
                )
            self._read.append(True)
        return iterator


@frozen
class FromAsyncMade(Iterated[T]):
    """Source of ``Flow.from_async_iterable`` with a function, which makes an async iterable for each subscription."""

    make: Callable[[], object]

    @property
    def name(self) -> str:
        """The name of the method."""
        return "from_async_iterable"

    def iterator(self, where: str) -> AsyncIterator[T]:
        """Have an async iterable made, and give its iterator."""
        items = self.make()
        if isinstance(items, AsyncIterable):
            return aiter(cast("AsyncIterable[T]", items))
        made = f"{label(self.make)} was to make an async iterable, and returned {label(items)}: {where}"
        raise TypeError(made + ("; use Flow.from_iterable" if isinstance(items, Iterable) else ""))


async def _close(iterator: AsyncIterator[Any], failure: BaseException | None) -> None:
    """Close an iterator; a failure of that is noted on the one before it, or raised where there is none."""
    close = getattr(iterator, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except FAILURES as another:
        if failure is None or another is failure:
            raise
        if isinstance(failure, (asyncio.CancelledError, GeneratorExit)):
            if isinstance(another, asyncio.CancelledError):
                # Not the cancel that was on its way: this one is the iterator's own.
                raise as_failure(another) from another
            raise
        also_failed(failure, another)
