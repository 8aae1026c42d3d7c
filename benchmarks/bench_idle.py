"""What subscriptions cost that wait for an element that does not come."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import partial
from time import process_time

from reactive_aio import Flow, schedulers
from reactive_aio.spec import Subscription

from .harness import Contestant, Figures, Row

ELEMENTS = 100_000
"""How many of them go through a busy flow beside the idle ones."""

SUBSCRIBE, CANCEL, BYTES, BESIDE = (
    "CPU us to subscribe",
    "CPU us to cancel",
    "bytes each",
    "CPU ns an element beside them",
)

Stop = Callable[[], Awaitable[object]]


def rows(n: int) -> list[Row]:
    """One to a hundred thousand of them."""
    found: list[Row] = []
    for number in (1, 10, 100, 1_000, 10_000, 100_000):
        if number <= 1_000 or n >= 1_000_000:
            starts = {"reactive_aio": ours, "a task at an asyncio.Queue": queues}
            contestants = tuple(Contestant(name, partial(measure, start, number)) for name, start in starts.items())
            row = Row(
                f"idle subscribers: {number:,}",
                number,
                contestants,
                rounds=3 if number < 10_000 else 1,
                metrics=(BESIDE, SUBSCRIBE, CANCEL, BYTES),
                series="by number of idle subscribers",
                x=number,
                x_name="idle subscribers",
            )
            found.append(row)
    return found


def measure(start: Callable[[int], Stop], number: int) -> Figures:
    """Subscribe so many times, run a busy flow beside them, and cancel them; then once more for the memory."""

    async def times() -> tuple[float, float, float]:
        await Flow.range(ELEMENTS).publish_on(schedulers.current()).count()  # what is loaded at the first use
        began = process_time()
        stop = start(number)
        for _ in range(20 + number // 20):  # a turn of the loop has time for some hundred subscriptions
            await asyncio.sleep(0)
        subscribed = process_time()
        assert await Flow.range(ELEMENTS).publish_on(schedulers.current()).count() == ELEMENTS
        counted = process_time()
        await stop()
        return subscribed - began, counted - subscribed, process_time() - counted

    async def memory() -> int:
        gc.collect()
        tracemalloc.start()
        stop = start(number)
        await asyncio.sleep(0)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await stop()
        return size

    subscribing, counting, cancelling = asyncio.run(times())
    return Figures(
        {
            BESIDE: counting / ELEMENTS * 1e9,
            SUBSCRIBE: subscribing / number * 1e6,
            CANCEL: cancelling / number * 1e6,
            BYTES: asyncio.run(memory()) / number,
        }
    )


class Idle:
    """Waits for an element."""

    def on_subscribe(self, subscription: Subscription) -> None:
        """Ask for it."""
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, item: object) -> None:
        """It does not come."""

    def on_error(self, error: BaseException) -> None:
        """Nothing fails."""

    def on_complete(self) -> None:
        """Nothing ends."""


def ours(number: int) -> Stop:
    """Subscribe over a boundary."""
    flow = Flow.never().map(str).publish_on(schedulers.current())
    subscribers = [Idle() for _ in range(number)]
    for each in subscribers:
        flow.subscribe(each)

    async def stop() -> None:
        for each in subscribers:
            each.subscription.cancel()
        await asyncio.sleep(0)

    return stop


def queues(number: int) -> Stop:
    """Wait in tasks."""

    async def wait() -> None:
        await asyncio.Queue[object](256).get()

    tasks = [asyncio.create_task(wait()) for _ in range(number)]

    async def stop() -> None:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)

    return stop
