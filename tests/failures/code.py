"""The user's code of one cell: what it raises, how often it did, and what of it is open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any

from attrs import define, field

from reactive_aio import Flow

AnyFlow = Flow[Any]


class UpstreamError(Exception):
    """The first failure, where another one follows it."""


def nothing(*_: Any) -> Any:
    """Return nothing."""


@define(eq=False)
class Code:
    """The user's code of one cell."""

    error: BaseException
    armed: bool = True
    """Whether it raises."""
    endless: bool = False
    """Whether its sources wait for ever behind their first element."""
    before: Callable[[AnyFlow], AnyFlow] = lambda flow: flow
    """The operators between a source and the place."""
    first: UpstreamError = field(init=False, factory=lambda: UpstreamError("first"))
    raised: int = field(init=False, default=0)
    open: int = field(init=False, default=0)

    def trip(self) -> None:
        """Raise, if it is to."""
        if self.armed:
            self.raised += 1
            raise self.error

    def calls(self, gives: Callable[..., Any] = nothing) -> Callable[..., Any]:
        """Return a function that raises, or else does what ``gives`` does."""

        def function(*args: Any) -> Any:
            self.trip()
            return gives(*args)

        return function

    def awaits(self, gives: Callable[..., Any] = nothing, *, waits: bool = False) -> Callable[..., Awaitable[Any]]:
        """Return an async function that raises, or else does what ``gives`` does, or ``waits`` in an endless cell."""

        async def function(*args: Any) -> Any:
            await asyncio.sleep(0)
            self.trip()
            if waits and self.endless:
                await asyncio.Event().wait()
            return gives(*args)

        return function

    def numbers(self, *items: Any) -> AnyFlow:
        """Return a source of some elements, by default 0, 1, 2."""
        flow: AnyFlow = Flow.of(*(items or (0, 1, 2)))
        return self.before(flow.concat(Flow.never()) if self.endless else flow)

    def failing(self) -> AnyFlow:
        """Return a source that fails, with an error that does not matter here. In an endless cell it waits."""
        if self.endless:
            return self.before(Flow.of(0).concat(Flow.never()))
        return self.before(Flow.of(0).concat(Flow.error(self.first)))

    def failed(self) -> AnyFlow:
        """Return a source that fails at once."""
        return self.before(Flow.never() if self.endless else Flow.error(self.first))

    def fails(self, *_: Any) -> Any:
        """Fail as upstream does."""
        raise self.first

    async def waits(self) -> None:
        """Wait for ever, in an endless cell."""
        if self.endless:
            await asyncio.Event().wait()

    # -- sources of a user's

    def generator(self, *, finally_: bool = False) -> Iterator[int]:
        """Generate; raise behind an element, or in ``finally``."""
        self.open += 1
        try:
            yield 0
            if not finally_:
                self.trip()
            yield 1
            while self.endless and finally_:
                yield 2
        finally:
            self.open -= 1
            if finally_:
                self.trip()

    async def async_generator(self, *, finally_: bool = False, late: bool = False) -> AsyncIterator[int]:
        """Generate; raise behind an element, or in ``finally``, there a turn later if ``late``."""
        self.open += 1
        try:
            yield 0
            await self.waits()
            if not finally_:
                self.trip()
            yield 1
        finally:
            self.open -= 1
            if late:
                await asyncio.sleep(0)
            if finally_:
                self.trip()


@define(eq=False)
class Items:
    """An iterable, sync and async, with one method that raises."""

    code: Code
    bad: str
    left: int = 2
    entered: bool = False

    def _go(self, method: str) -> None:
        if method == self.bad:
            self.code.trip()

    def __iter__(self) -> Items:
        self._go("__iter__")
        return self

    def __next__(self) -> int:
        self._go("__next__")
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left

    def close(self) -> None:
        """Close the iterator."""
        self._go("close")

    def __aiter__(self) -> Items:
        self._go("__aiter__")
        return self

    async def __anext__(self) -> int:
        await asyncio.sleep(0)
        self._go("__anext__")
        if not self.left:
            raise StopAsyncIteration
        if self.left == 1:
            await self.code.waits()
        self.left -= 1
        return self.left

    async def aclose(self) -> None:
        """Close the async iterator."""
        self._go("aclose")


@define(eq=False)
class Resource:
    """A context manager, with one method that raises."""

    code: Code
    bad: str

    def __enter__(self) -> Resource:
        if self.bad == "enter":
            self.code.trip()
        self.code.open += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.code.open -= 1
        if self.bad == "exit":
            self.code.trip()


@define(eq=False)
class AsyncResource:
    """An async context manager, with one method that raises."""

    code: Code
    bad: str

    async def __aenter__(self) -> AsyncResource:
        await asyncio.sleep(0)
        if self.bad == "enter":
            self.code.trip()
        self.code.open += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.code.open -= 1
        await asyncio.sleep(0)
        if self.bad == "exit":
            self.code.trip()


@define(eq=False)
class Element:
    """An element with one special method that raises."""

    code: Code
    bad: str
    value: int = 0
    truth: bool = True

    def _go(self, method: str) -> None:
        if method == self.bad:
            self.code.trip()

    def __eq__(self, other: object) -> bool:
        self._go("__eq__")
        return isinstance(other, Element) and self.value == other.value

    def __hash__(self) -> int:
        self._go("__hash__")
        return self.value

    def __lt__(self, other: object) -> bool:
        self._go("__lt__")
        return isinstance(other, Element) and self.value < other.value

    def __gt__(self, other: object) -> bool:
        self._go("__lt__")
        return isinstance(other, Element) and self.value > other.value

    def __bool__(self) -> bool:
        self._go("__bool__")
        return self.truth

    def __add__(self, other: object) -> Element:
        self._go("__add__")
        return self

    __radd__ = __add__

    def __iter__(self) -> Iterator[int]:
        self._go("__iter__")
        return iter((1, 2))

    def __repr__(self) -> str:
        self._go("__repr__")
        return f"Element({self.value})"


@define(eq=False)
class Contract:
    """A publisher of somebody else's, and its subscription, with one method that raises."""

    code: Code
    bad: str
    items: tuple[int, ...] = (0, 1)
    at: int = 0
    wanted: int = 0
    over: bool = False
    sending: bool = False
    subscriber: Any = None

    def _go(self, method: str) -> None:
        if method == self.bad:
            self.code.trip()

    def subscribe(self, subscriber: Any) -> None:
        """Take the subscriber."""
        self.subscriber = subscriber
        subscriber.on_subscribe(self)
        self._go("subscribe")

    def request(self, n: int) -> None:
        """Send at once what is wanted."""
        self._go("request")
        self.wanted += n
        if self.sending:
            return
        self.sending = True
        while self.wanted and not self.over and self.at < len(self.items):
            self.wanted -= 1
            self.at += 1
            self.subscriber.on_next(self.items[self.at - 1])
        self.sending = False
        if self.at == len(self.items) and not self.over and not self.code.endless:
            self.over = True
            self.subscriber.on_complete()

    def cancel(self) -> None:
        """Stop."""
        self.over = True
        self._go("cancel")
