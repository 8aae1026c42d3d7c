"""A hub: elements that a program emits, on its event loop and from a thread."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from time import thread_time

from reactive_aio import Hub

from .bench_sharing import EMITTED, QUEUES
from .harness import Bar, Figures, Row
from .workload import Field, Workload

OURS = "reactive_aio"
PAIR = "a put and a get of an asyncio.Queue"
CALLBACK = "call_soon_threadsafe"
OFFER, TURN = "CPU us an offer", "p99 ms of CPU an iteration of the loop"
BURST = 1_000

ALONE, BURSTS, SINGLE, TURNS = Field(), Field(), Field(), Field()


def rows(n: int) -> list[Row]:
    """By emit to one, to hundreds and a thousand; by offer in bursts and one by one."""
    workloads = (
        Workload(title="emitted to one who counts", by=ALONE, share=0.1, bars=(Bar(PAIR, at_most=1.0),)),
        Workload(
            title="emitted one by one to 1,000 who read by async for",
            by=EMITTED,
            given={"readers": 1_000},
            fixed=300,
            bars=(Bar(QUEUES, at_most=1.0),),
            rounds=5,
        ),
        *(
            Workload(
                title=f"emitted one by one to {readers:,} who read by async for, the loop meanwhile",
                by=TURNS,
                given={"readers": readers},
                fixed=fixed,
                bars=(Bar(at_most=3.0),),
                rounds=3,
                metrics=(TURN,),
            )
            for readers, fixed in ((200, 1_000), (1_000, 300))
        ),
        Workload(
            title=f"offered from a thread in bursts of {BURST:,}",
            by=BURSTS,
            fixed=50 * BURST,
            bars=(Bar(at_most=1.0),),
            metrics=(OFFER,),
        ),
        Workload(
            title="offered from a thread one by one",
            by=SINGLE,
            fixed=2_000,
            bars=(Bar(CALLBACK, at_most=1.3),),
            metrics=(OFFER,),
        ),
    )
    return [row for workload in workloads for row in workload.rows(n)]


@ALONE.contestant(OURS)
async def emitted_to_one(n: int) -> int:
    hub: Hub[int] = Hub(idle="wait")
    counting = asyncio.ensure_future(hub.flow.count())
    await asyncio.sleep(0)
    for item in range(n):
        await hub.emit(item)
    hub.complete()
    return await counting


@ALONE.contestant(PAIR)
async def put_and_got(n: int) -> int:
    queue: asyncio.Queue[int] = asyncio.Queue(256)
    count = 0
    for item in range(n):
        await queue.put(item)
        await queue.get()
        count += 1
    return count


async def _measured(emit: Callable[[], asyncio.Future[int]]) -> Figures:
    """Note how long each iteration of the loop takes until all has been read."""
    loop, times, done = asyncio.get_running_loop(), [thread_time()], False

    def note() -> None:
        times.append(thread_time())
        if not done:
            loop.call_soon(note)

    loop.call_soon(note)
    count = await emit()
    done = True
    lengths = sorted(after - before for before, after in pairwise(times))
    return Figures({TURN: lengths[int(len(lengths) * 0.99)] * 1e3}, count)


@TURNS.contestant(OURS)
async def turns_while_emitting(n: int, readers: int) -> Figures:
    hub: Hub[int] = Hub(idle="drop", prefetch=256)
    reading = [asyncio.ensure_future(_count(hub)) for _ in range(readers)]
    await asyncio.sleep(0)

    async def emit() -> int:
        for item in range(n):
            await hub.emit(item)
        hub.complete()
        return (await asyncio.gather(*reading))[-1]

    return await _measured(lambda: asyncio.ensure_future(emit()))


async def _count(hub: Hub[int]) -> int:
    count = 0
    async for _ in hub.flow:
        count += 1
    return count


# -- from a thread


@BURSTS.contestant(OURS)
async def offered_in_bursts(n: int) -> Figures:
    hub: Hub[int] = Hub(idle="wait", lag=4 * BURST)
    counting = asyncio.ensure_future(hub.flow.count())
    await asyncio.sleep(0)
    spent: list[float] = []

    def offer() -> None:
        for _ in range(n // BURST):
            before = thread_time()
            for item in range(BURST):
                hub.offer(item)
            spent.append((thread_time() - before) / BURST)
            while hub.snapshot().kept:
                time.sleep(0.0005)

    await asyncio.to_thread(offer)
    hub.complete()
    return Figures({OFFER: statistics.median(spent) * 1e6}, await counting)


def _one_by_one(n: int, call: Callable[[int], object], seen: list[int]) -> Figures:
    """Call in this thread each time the loop has come to rest."""
    spent: list[float] = []
    for item in range(n):
        before = thread_time()
        call(item)
        spent.append(thread_time() - before)
        while len(seen) <= item:
            time.sleep(0.00002)
    return Figures({OFFER: statistics.median(spent) * 1e6}, len(seen))


@SINGLE.contestant(OURS)
async def offered_one_by_one(n: int) -> Figures:
    hub: Hub[int] = Hub(idle="wait", lag=4 * BURST)
    seen: list[int] = []
    reading = asyncio.ensure_future(hub.flow.for_each(seen.append))
    await asyncio.sleep(0)
    figures = await asyncio.to_thread(_one_by_one, n, hub.offer, seen)
    hub.complete()
    await reading
    return figures


@SINGLE.contestant(CALLBACK)
async def called_one_by_one(n: int) -> Figures:
    loop = asyncio.get_running_loop()
    seen: list[int] = []
    return await asyncio.to_thread(_one_by_one, n, lambda item: loop.call_soon_threadsafe(seen.append, item), seen)
