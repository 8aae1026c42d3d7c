"""Subscribers and publishers written by hand, as somebody else's would be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from reactive_aio import Flow, Subscriber, Subscription


class Recorder:
    """Records every signal. It requests as many elements as the test says, at once or later."""

    def __init__(self, request: int = 0) -> None:
        self.signals: list[tuple[str, Any]] = []
        self.subscription: Subscription | None = None
        self.first = request
        self.over = asyncio.Event()

    @property
    def items(self) -> list[Any]:
        return [value for kind, value in self.signals if kind == "next"]

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.signals]

    @property
    def error(self) -> BaseException:
        kind, value = self.signals[-1]
        assert kind == "error", self.signals
        assert isinstance(value, BaseException)
        return value

    def request(self, n: int) -> None:
        assert self.subscription is not None
        self.subscription.request(n)

    def cancel(self) -> None:
        assert self.subscription is not None
        self.subscription.cancel()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.signals.append(("subscribe", None))
        self.subscription = subscription
        if self.first:
            subscription.request(self.first)

    def on_next(self, item: Any) -> None:
        self.signals.append(("next", item))

    def on_error(self, error: BaseException) -> None:
        self.signals.append(("error", error))
        self.over.set()

    def on_complete(self) -> None:
        self.signals.append(("complete", None))
        self.over.set()


async def ended_by(flow: Flow[Any]) -> BaseException:
    """Return the error by which a flow ends, of whatever class it is."""
    recorder = Recorder(1_000_000)
    flow.subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), 60.0)
    return recorder.error


class ByHand:
    """A publisher that is driven by the test, and records what is asked of it."""

    def __init__(self) -> None:
        self.subscribers: list[Subscriber[Any]] = []
        self.requests: list[int] = []
        self.sent = 0
        self.cancels = 0

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        self.subscribers.append(subscriber)
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1

    def next(self, *items: Any) -> None:
        for item in items:
            self.sent += 1
            self.subscribers[-1].on_next(item)

    def complete(self) -> None:
        self.subscribers[-1].on_complete()

    def error(self, error: BaseException) -> None:
        self.subscribers[-1].on_error(error)


@asynccontextmanager
async def others() -> AsyncGenerator[list[int]]:
    """Have another task on the loop; the list grows by one for each turn that it gets."""
    turns: list[int] = []

    async def take_turns() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(len(turns))

    task = asyncio.create_task(take_turns())
    try:
        yield turns
    finally:
        task.cancel()


async def idle(turns: int = 60) -> None:
    """Run the loop for enough turns to run all that is scheduled on it, even one callback a turn."""
    for _ in range(turns):
        await asyncio.sleep(0)
