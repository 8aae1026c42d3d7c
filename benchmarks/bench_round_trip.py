"""One element under way: round trips, how long an element takes, and how soon an idle loop wakes up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from time import perf_counter
from typing import Any

import anyio
from attrs import define, field

from reactive_aio import Flow, schedulers
from reactive_aio.spec import Subscription

from . import queues
from .by_hand import another_loop
from .harness import Bar, Figures, Row
from .workload import Field, Workload, peer

MEDIAN, WORST = "p50 us", "p99 us"

TRIPS = Field()
TRIPS_ACROSS = Field()
LATENCY = Field()
WAKING = Field()


def rows(n: int) -> list[Row]:
    """Here and between threads."""
    here = Workload(
        title="round trip with one in flight, in one loop",
        by=TRIPS,
        share=0.1,
        bars=(
            Bar("asyncio.Queue(1) pair", at_most=1),
            Bar("asyncio.Queue(1) pair", at_most=1, of="reactive_aio, counted"),
        ),
        limit="asyncio.Queue(1) pair",
    )
    across = Workload(
        title="round trip with one in flight, between two loop threads",
        by=TRIPS_ACROSS,
        share=0.1,
        bars=(Bar("call_soon_threadsafe both ways", at_most=1.2),),
        limit="call_soon_threadsafe both ways",
    )
    latency = Workload(
        title="from making an element to having it, one at a time",
        by=LATENCY,
        share=0.01,
        metrics=(MEDIAN, WORST),
    )
    waking = Workload(
        title="an idle loop woken from a thread",
        by=WAKING,
        share=0.0005,
        metrics=(WORST, MEDIAN),
        bars=(Bar(at_most=5_000),),
        limit="call_soon_threadsafe",
    )
    return [row for workload in (here, across, latency, waking) for row in workload.rows(n)]


# --- round trips in one loop -----------------------------------------------------------------------------------------


@TRIPS.contestant("reactive_aio")
async def ours(n: int) -> int:
    """A consumer that awaits each element; the request travels up and the element down."""
    count = 0
    async for _ in Flow.range(n).publish_on(schedulers.current(), prefetch=1):
        count += 1
    return count


@TRIPS.contestant("reactive_aio, counted")
async def ours_counted(n: int) -> int:
    """A consumer that is a function of the region."""
    return await Flow.range(n).publish_on(schedulers.current(), prefetch=1).count()


@TRIPS.contestant("reactive_aio, async generator")
async def ours_from_generator(n: int) -> int:
    """Coroutines at both ends."""
    count = 0
    async for _ in Flow.from_async_iterable(_numbers(n)).publish_on(schedulers.current(), prefetch=1):
        count += 1
    return count


async def _numbers(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


async def there_and_back(
    n: int, there: queues.Queue, back: queues.Queue, other: AbstractAsyncContextManager[Any] | None = None
) -> int:
    """Send a number, wait for its answer, and so on; the other end runs in the loop ``other`` gives, or here."""

    async def answer() -> None:
        while (item := await there.get()) is not None:
            await back.put(item)

    async with other or nullcontext() as loop:
        running = loop or asyncio.get_running_loop()
        answering = asyncio.run_coroutine_threadsafe(answer(), running)
        count = 0
        for item in range(n):
            await there.put(item)
            await back.get()
            count += 1
        await there.put(None)
        await asyncio.wrap_future(answering)
    return count


@TRIPS.contestant("asyncio.Queue(1) pair")
async def queue_pair(n: int) -> int:
    there, back = asyncio.Queue[int | None](1), asyncio.Queue[int | None](1)
    return await there_and_back(n, there, back)


@TRIPS.contestant("two futures")
async def futures(n: int) -> int:
    """Two tasks: each makes a future that the other resolves."""
    loop = asyncio.get_running_loop()
    there: asyncio.Future[int] = loop.create_future()
    back: asyncio.Future[int] = loop.create_future()

    async def answer() -> None:
        nonlocal there
        for _ in range(n):
            item = await there
            there = loop.create_future()
            back.set_result(item)

    answering = asyncio.create_task(answer())
    count = 0
    for item in range(n):
        there.set_result(item)
        await back
        back = loop.create_future()
        count += 1
    await answering
    return count


@TRIPS.contestant("anyio pair")
async def anyio_pair(n: int) -> int:
    there, heard = anyio.create_memory_object_stream[int | None](1)
    back, answered = anyio.create_memory_object_stream[int | None](1)
    with there, heard, back, answered:
        pair = queues.Methods(there.send, heard.receive), queues.Methods(back.send, answered.receive)
        return await there_and_back(n, *pair)


@TRIPS.contestant("aiochan pair", needs="aiochan")
async def aiochan_pair(n: int) -> int:
    return await there_and_back(n, queues.AiochanQueue(1), queues.AiochanQueue(1))


@TRIPS.contestant("culsans pair", needs="culsans")
async def culsans_pair(n: int) -> int:
    return await there_and_back(n, queues.culsans_queue(1), queues.culsans_queue(1))


@TRIPS.contestant("janus pair", needs="janus")
async def janus_pair(n: int) -> int:
    return await there_and_back(n, queues.janus_queue(1), queues.janus_queue(1))


# --- round trips between two loops -----------------------------------------------------------------------------------


@TRIPS_ACROSS.contestant("reactive_aio")
async def ours_across(n: int) -> int:
    made = Flow.range(n).subscribe_on(schedulers.thread("making"))
    return await made.publish_on(schedulers.current(), prefetch=1).count()


@TRIPS_ACROSS.contestant("call_soon_threadsafe both ways")
async def call_soon_both_ways(n: int) -> int:
    return await _both_ways(n, 0)


@TRIPS_ACROSS.contestant("call_soon_threadsafe, 50 empty calls before each")
async def call_soon_after_calls(n: int) -> int:
    """The cost of a call before the other thread is woken."""
    return await _both_ways(n, 50)


async def _both_ways(n: int, calls: int) -> int:
    home = asyncio.get_running_loop()
    done: asyncio.Future[int] = home.create_future()
    count = 0

    def nothing() -> None:
        """Be called."""

    def ask() -> None:
        if count < n:
            for _ in range(calls):
                nothing()
            other.call_soon_threadsafe(answer, count)
        else:
            done.set_result(count)

    def answer(item: int) -> None:
        for _ in range(calls):
            nothing()
        home.call_soon_threadsafe(take, item)

    def take(_: int) -> None:
        nonlocal count
        count += 1
        ask()

    async with another_loop() as other:
        ask()
        return await done


@TRIPS_ACROSS.contestant("aiologic pair", needs="aiologic")
async def aiologic_across(n: int) -> int:
    return await there_and_back(n, queues.aiologic_queue(1), queues.aiologic_queue(1), another_loop())


@TRIPS_ACROSS.contestant("culsans pair", needs="culsans")
async def culsans_across(n: int) -> int:
    return await there_and_back(n, queues.culsans_queue(1), queues.culsans_queue(1), another_loop())


# --- latency ---------------------------------------------------------------------------------------------------------


def _figures(seconds: Sequence[float]) -> Figures:
    ordered = sorted(seconds)
    median, worst = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return Figures({MEDIAN: median * 1e6, WORST: worst * 1e6}, len(seconds))


def _moments(n: int) -> Iterator[float]:
    for _ in range(n):
        yield perf_counter()


async def _our_latency(flow: Flow[float]) -> Figures:
    seconds: list[float] = []
    await flow.for_each(lambda made: seconds.append(perf_counter() - made))
    return _figures(seconds)


async def _latency(n: int, there: queues.Queue, back: queues.Queue, other: AbstractAsyncContextManager[Any]) -> Figures:
    """Send the time, and wait for word that it has arrived."""
    seconds: list[float] = []

    async def take() -> None:
        while (made := await there.get()) is not None:
            seconds.append(perf_counter() - made)
            await back.put(True)

    async with other as loop:
        taking = asyncio.run_coroutine_threadsafe(take(), loop or asyncio.get_running_loop())
        for _ in range(n):
            await there.put(perf_counter())
            await back.get()
        await there.put(None)
        await asyncio.wrap_future(taking)
    return _figures(seconds)


@LATENCY.contestant("reactive_aio")
async def our_latency(n: int) -> Figures:
    return await _our_latency(Flow.from_iterable(_moments(n)).publish_on(schedulers.current(), prefetch=1))


@LATENCY.contestant("asyncio.Queue")
async def queue_latency(n: int) -> Figures:
    return await _latency(n, asyncio.Queue[Any](1), asyncio.Queue[Any](1), nullcontext())


@LATENCY.contestant("culsans", needs="culsans")
async def culsans_latency(n: int) -> Figures:
    return await _latency(n, queues.culsans_queue(1), queues.culsans_queue(1), nullcontext())


@LATENCY.contestant("reactive_aio, from a thread")
async def our_latency_across(n: int) -> Figures:
    flow = Flow.from_iterable(_moments(n)).subscribe_on(schedulers.thread("making"))
    return await _our_latency(flow.publish_on(schedulers.current(), prefetch=1))


@LATENCY.contestant("culsans, to a thread", needs="culsans")
async def culsans_latency_across(n: int) -> Figures:
    return await _latency(n, queues.culsans_queue(1), queues.culsans_queue(1), another_loop())


@LATENCY.contestant("aiologic, to a thread", needs="aiologic")
async def aiologic_latency_across(n: int) -> Figures:
    return await _latency(n, queues.aiologic_queue(1), queues.aiologic_queue(1), another_loop())


# --- waking ----------------------------------------------------------------------------------------------------------

PAUSE = 1e-3
"""Seconds in which the loop has gone to sleep for certain."""


def _pokes(n: int, poke: Callable[[float], object]) -> threading.Thread:
    """Poke again and again from a thread without a loop, each time at a loop that sleeps."""

    def run() -> None:
        for _ in range(n):
            time.sleep(PAUSE)
            poke(perf_counter())

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@define(eq=False)
class Waker:
    """Hears an element for each request, and notes how long that took."""

    n: int
    done: asyncio.Event
    seconds: list[float] = field(init=False, factory=list[float])
    subscription: Subscription = field(init=False)
    poked: float = field(init=False, default=0)

    def on_subscribe(self, subscription: Subscription) -> None:
        """Ask for nothing yet."""
        self.subscription = subscription

    def on_next(self, _: int) -> None:
        """Note when it came."""
        self.seconds.append(perf_counter() - self.poked)
        if len(self.seconds) == self.n:
            self.done.set()

    def on_error(self, error: BaseException) -> None:
        """Fail."""
        raise error

    def on_complete(self) -> None:
        """Nothing is left to wait for."""

    def poke(self, now: float) -> None:
        """Ask for an element from another thread."""
        self.poked = now
        self.subscription.request(1)


@WAKING.contestant("reactive_aio")
async def ours_woken(n: int) -> Figures:
    waker = Waker(n, asyncio.Event())
    Flow.range(n + 1).subscribe(waker)
    await asyncio.sleep(0)
    thread = _pokes(n, waker.poke)
    await waker.done.wait()
    thread.join()
    waker.subscription.cancel()
    return _figures(waker.seconds)


@WAKING.contestant("call_soon_threadsafe")
async def call_soon_woken(n: int) -> Figures:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    seconds: list[float] = []

    def hear(poked: float) -> None:
        seconds.append(perf_counter() - poked)
        if len(seconds) == n:
            done.set()

    thread = _pokes(n, lambda now: loop.call_soon_threadsafe(hear, now))
    await done.wait()
    thread.join()
    return _figures(seconds)


async def _woken(n: int, put: Callable[[float], object], queue: queues.Queue) -> Figures:
    thread = _pokes(n, put)
    seconds = [-(await queue.get() - perf_counter()) for _ in range(n)]
    thread.join()
    return _figures(seconds)


@WAKING.contestant("aiologic", needs="aiologic")
async def aiologic_woken(n: int) -> Figures:
    queue = peer("aiologic").SimpleQueue()
    return await _woken(n, queue.put, queues.Methods(queue.async_put, queue.async_get))


@WAKING.contestant("culsans", needs="culsans")
async def culsans_woken(n: int) -> Figures:
    queue = peer("culsans").Queue()
    return await _woken(n, queue.sync_q.put, queue.async_q)


@WAKING.contestant("janus", needs="janus")
async def janus_woken(n: int) -> Figures:
    queue = peer("janus").Queue()
    return await _woken(n, queue.sync_q.put, queue.async_q)
