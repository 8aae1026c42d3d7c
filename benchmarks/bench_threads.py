"""A boundary between two loops, each in a thread of its own, against what people put between threads."""

from __future__ import annotations

import asyncio
import threading

from attrs import evolve

from reactive_aio import Flow, schedulers

from . import queues
from .by_hand import another_loop, hand_over
from .harness import Bar, Row
from .workload import Field, LoopFactory, Workload, peer

BY_HAND = "lists by hand"

FIELD = Field()


def between_threads(size: int, *near: Bar) -> Workload:
    """Say what is done: made on one loop, at most so many on the way, and counted on the other."""
    return Workload(
        title=f"boundary between two loop threads, prefetch {size}",
        by=FIELD,
        given={"size": size},
        bars=(*near, Bar("culsans", times_faster=10)),
        limit=BY_HAND,
    )


def rows(n: int) -> list[Row]:
    """With a prefetch of 256 all of them; with four times as much those that lists are for."""
    more = evolve(between_threads(1024), only=("reactive_aio", BY_HAND, "culsans"))
    return between_threads(256, Bar(BY_HAND, at_most=1.3)).rows(n) + more.rows(n)


@FIELD.contestant("reactive_aio")
async def ours(n: int, size: int) -> int:
    made = Flow.range(n).subscribe_on(schedulers.thread("making"))
    return await made.publish_on(schedulers.current(), prefetch=size).count()


@FIELD.contestant(BY_HAND)
async def lists_by_hand(n: int, size: int) -> int:
    """The limit with as much under way: one list, and one wake-up for it each way."""
    async with another_loop() as other:
        home = asyncio.get_running_loop()
        return await hand_over(n, size, other.call_soon_threadsafe, home.call_soon_threadsafe)


@FIELD.contestant(f"{BY_HAND}, two under way", note="twice as much under way")
async def two_lists_by_hand(n: int, size: int) -> int:
    """The gain of twice as many calls under way."""
    async with another_loop() as other:
        home = asyncio.get_running_loop()
        return await hand_over(n, size, other.call_soon_threadsafe, home.call_soon_threadsafe, 2)


@FIELD.contestant("asyncio.Queue, call_soon_threadsafe", note="unbounded")
async def asyncio_queue(n: int, size: int) -> int:
    home = asyncio.get_running_loop()
    queue: asyncio.Queue[int | None] = asyncio.Queue()

    def make() -> None:
        for item in range(n):
            home.call_soon_threadsafe(queue.put_nowait, item)
        home.call_soon_threadsafe(queue.put_nowait, None)

    async with another_loop() as other:
        other.call_soon_threadsafe(make)
        return await queues.count(queue)


async def between(n: int, queue: queues.Queue) -> int:
    """Put on one loop what is counted on another."""
    async with another_loop() as other:
        made = asyncio.run_coroutine_threadsafe(queues.produce(n, queue), other)
        number = await queues.count(queue)
        await asyncio.wrap_future(made)
        return number


@FIELD.contestant("aiologic", needs="aiologic")
async def aiologic(n: int, size: int) -> int:
    return await between(n, queues.aiologic_queue(size))


@FIELD.contestant("aiologic, SimpleQueue", needs="aiologic", note="unbounded")
async def aiologic_simple(n: int, size: int) -> int:
    queue = peer("aiologic").SimpleQueue()

    def make() -> None:
        for item in range(n):
            queue.put(item)
        queue.put(None)

    async with another_loop() as other:
        other.call_soon_threadsafe(make)
        count = 0
        while await queue.async_get() is not None:
            count += 1
        return count


@FIELD.contestant("culsans", needs="culsans")
async def culsans(n: int, size: int) -> int:
    return await between(n, queues.culsans_queue(size))


@FIELD.contestant("janus", needs="janus", note="from a thread without a loop")
async def janus(n: int, size: int) -> int:
    queue = peer("janus").Queue(size)

    def make() -> None:
        for item in range(n):
            queue.sync_q.put(item)
        queue.sync_q.put(None)

    thread = threading.Thread(target=make)
    thread.start()
    count = await queues.count(queue.async_q)
    thread.join()
    await queue.aclose()
    return count


@FIELD.contestant("pypeln.thread", needs="pypeln", note="threads without loops")
def pypeln(n: int, _: LoopFactory, size: int) -> int:
    def same(item: int) -> int:
        return item

    return sum(1 for _ in peer("pypeln").thread.map(same, range(n), maxsize=size))


@FIELD.contestant("reactivex", needs="reactivex", note="unbounded")
async def reactivex(n: int, size: int) -> int:
    operators, schedulers = peer("reactivex.operators"), peer("reactivex.scheduler")
    here = peer("reactivex.scheduler.eventloop").AsyncIOThreadSafeScheduler(asyncio.get_running_loop())
    source = peer("reactivex").from_iterable(range(n))
    there = operators.subscribe_on(schedulers.NewThreadScheduler())
    count: int = await source.pipe(there, operators.observe_on(here), operators.count())
    return count
