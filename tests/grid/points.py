"""The points of a run where somebody's code has its turn, so that it can be made to fail at each of them.

A flow is a value, and so are its operators. An operator holds functions, iterables and publishers. Each is replaced by
one that calls `Points` before each step. So no operator has to be known here.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager
from inspect import isawaitable
from typing import Any

import attrs
from attrs import define, field, frozen

from reactive_aio import Flow, Subscriber, Subscription, hooks
from reactive_aio._fusion import Placed
from reactive_aio._plan import Nodes
from reactive_aio.operators._fluent import is_flow
from reactive_aio.testing.leaks import _present
from tests.registry import REGISTRY, AnyFlow

HERE = [entry for entry in REGISTRY if not (entry.threaded or entry.pool)]
"""The entries in which no thread and no process takes part, so that turns of the loop can be counted."""


class InjectedError(Exception):
    """The error that is made to come out of the code of a user."""


@define(eq=False)
class Points:
    """Counts the steps of somebody's code, and has the one with a certain number fail."""

    fails_at: int = 0
    """The number of the step that fails, from 1."""
    passed: int = field(init=False, default=0)
    error: InjectedError = field(init=False, factory=lambda: InjectedError("injected"))

    def step(self) -> None:
        """Take a step, or fail."""
        self.passed += 1
        if self.passed == self.fails_at:
            raise self.error

    @property
    def failed(self) -> bool:
        """Whether the step that fails has been reached."""
        return 0 < self.fails_at <= self.passed

    def via(self, flow: AnyFlow) -> AnyFlow:
        """Watch what the operators of a flow hold, and each element that leaves it."""
        steps = tuple(Placed(self._operator(step.operator), step.origin) for step in flow.__nodes__.steps)
        source = Placed(self._operator(flow.__nodes__.source.operator), flow.__nodes__.source.origin)
        return Flow(Nodes(source, steps)).map(self.identity)

    def identity(self, item: Any) -> Any:
        """Do nothing, as a function of the user's."""
        self.step()
        return item

    def _operator(self, operator: Any) -> Any:
        changes: dict[str, Any] = {}
        for each in attrs.fields(type(operator)):
            watched = self._watched(getattr(operator, each.name)) if each.init else None
            if watched is not None:
                changes[each.alias] = watched
        return attrs.evolve(operator, **changes) if changes else operator

    def _watched(self, value: Any) -> Any:
        if is_flow(value) or isinstance(value, (BaseException, type)) or getattr(value, "is_watched", False):
            return None
        if callable(getattr(value, "subscribe", None)):
            return WatchedPublisher(self, value)
        if isinstance(value, AsyncIterable):
            return WatchedAsyncIterable(self, value)
        if isinstance(value, Iterator):
            return self._iterate(value)
        if callable(value) and value != self.identity:
            return self.function(value)
        return None

    def function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Watch the calls of a function, and the steps of what it gives."""

        @functools.wraps(fn, updated=())
        def call(*args: Any) -> Any:
            self.step()
            result = fn(*map(self._argument, args))
            if isawaitable(result):
                return self._await(result)
            return self._iterate(result) if isinstance(result, Generator) else result

        call.is_watched = True
        return call

    def _argument(self, value: Any) -> Any:
        """Watch what a coroutine of the user's awaits, such as the ``emit`` of a producer."""
        return self.function(value) if callable(value) and not isinstance(value, type) else value

    async def _await(self, awaited: Awaitable[Any]) -> Any:
        result = await awaited
        self.step()
        return result

    def _iterate(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self.step()
            yield item
        self.step()


@frozen(eq=False)
class WatchedAsyncIterable:
    """An async iterable each of whose steps is a point."""

    points: Points
    items: AsyncIterable[Any]
    is_watched = True

    async def __aiter__(self) -> AsyncIterator[Any]:
        items: Any = aiter(self.items)
        # Else what it iterates over is closed by the collector, in a task that comes when all is over.
        async with aclosing(items):
            async for item in items:
                self.points.step()
                await asyncio.sleep(0)
                self.points.step()
                yield item
        self.points.step()


@frozen(eq=False)
class WatchedPublisher:
    """A publisher each of whose signals is a point; where it fails it cancels and signals, as it has to."""

    points: Points
    publisher: Any
    is_watched = True

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        self.publisher.subscribe(WatchedSubscriber(self.points, subscriber))


@define(eq=False)
class WatchedSubscriber:
    points: Points
    subscriber: Subscriber[Any]
    subscription: Subscription | None = field(init=False, default=None)
    over: bool = field(init=False, default=False)

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.subscriber.on_subscribe(subscription)

    def on_next(self, item: Any) -> None:
        self._signal(lambda: self.subscriber.on_next(item), self.subscription)

    def on_error(self, error: BaseException) -> None:
        if not self.over:
            self.subscriber.on_error(error)

    def on_complete(self) -> None:
        self._signal(self.subscriber.on_complete, None)

    def _signal(self, signal: Callable[[], None], to_cancel: Subscription | None) -> None:
        if self.over:
            return
        try:
            self.points.step()
        except InjectedError as error:
            self.over = True
            if to_cancel is not None:
                to_cancel.cancel()
            self.subscriber.on_error(error)
        else:
            signal()


@define(eq=False)
class Books:
    """Where elements and errors have come to; at the end of a run each has come to one place."""

    made: Counter[str] = field(init=False, factory=Counter[str])
    taken: Counter[str] = field(init=False, factory=Counter[str])
    discarded: Counter[str] = field(init=False, factory=Counter[str])
    dropped: list[BaseException] = field(init=False, factory=list[BaseException])
    begun: bool = field(init=False, default=False)

    def via(self, flow: AnyFlow) -> AnyFlow:
        """Enter the elements of the first flow of a row."""
        if self.begun:
            return flow
        self.begun = True
        return flow.map(self.make)

    def make(self, item: Any) -> Any:
        """Enter an element that has left the source."""
        self.made[repr(item)] += 1
        return item

    def take(self, item: Any) -> None:
        """Enter an element that has come to the end."""
        self.taken[repr(item)] += 1

    def discard(self, item: Any) -> None:
        """Enter an element that the hook was told of."""
        self.discarded[repr(item)] += 1

    @contextmanager
    def open(self) -> Generator[None]:
        """Enter what the hooks are told in a block."""
        with hooks.using(on_error_dropped=self.dropped.append, on_discard=self.discard):
            yield

    @property
    def lost(self) -> Counter[str]:
        """The elements that came neither to the end nor to the hook."""
        return self.made - self.taken - self.discarded

    @property
    def twice(self) -> Counter[str]:
        """The elements that came to several places."""
        return self.taken + self.discarded - self.made


def around() -> set[int]:
    """Return what there is of tasks, timers, threads and open async generators, by identity."""
    return {id(thing) for thing, _ in _present()}


def left_since(before: set[int]) -> list[str]:
    """Return what there is now and was not before."""
    return [told for thing, told in _present() if id(thing) not in before]


def errors_in(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error with all that it tells of: its group, its cause, its context."""
    todo, seen = [error], set[int]()
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            todo += [*getattr(each, "exceptions", ()), each.__cause__, each.__context__]
