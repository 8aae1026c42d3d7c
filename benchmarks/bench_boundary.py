"""A boundary within one event loop, and one between two loop threads, against the queues people use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import islice

import anyio

from reactive_aio import Flow, schedulers

from .harness import Bar, Row
from .workload import LoopFactory, Workload, peer

PREFETCH = 256
BY_HAND = "lists by hand"

IN_ONE_LOOP = Workload(
    f"boundary in one loop, prefetch {PREFETCH}",
    bars=(Bar(BY_HAND, at_most=1.3), Bar("asyncio.Queue", times_faster=8), Bar("anyio, nowait first", times_faster=2)),
    limit=BY_HAND,
)
BETWEEN_THREADS = Workload(
    f"boundary between two loop threads, prefetch {PREFETCH}",
    bars=(Bar(BY_HAND, at_most=1.3), Bar("culsans", times_faster=10)),
    limit=BY_HAND,
)


def rows(n: int) -> list[Row]:
    """On each kind of event loop."""
    return [*IN_ONE_LOOP.rows(n), *BETWEEN_THREADS.rows(n)]


# --- in one loop -----------------------------------------------------------------------------------------------------


@IN_ONE_LOOP.contestant("reactive_aio")
async def ours(n: int) -> int:
    return await Flow.range(n).publish_on(schedulers.current(), PREFETCH).count()


@IN_ONE_LOOP.contestant(BY_HAND)
async def lists_by_hand(n: int) -> int:
    """The limit: lists handed over by scheduled callbacks, with a request for each."""
    return await hand_over(n, asyncio.get_running_loop().call_soon, asyncio.get_running_loop().call_soon, 1)


async def hand_over(n: int, call_there: Callable[..., object], call_here: Callable[..., object], lists: int) -> int:
    """Make elements there and count them here, with so many lists of 256 asked for at any time."""
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    items = iter(range(n))
    total = 0

    def produce() -> None:
        call_here(consume, list(islice(items, PREFETCH)))

    def consume(chunk: list[int]) -> None:
        nonlocal total
        count = 0
        for _ in chunk:
            count += 1
        total += count
        if len(chunk) == PREFETCH:
            call_there(produce)
        elif not done.done():
            done.set_result(total)

    for _ in range(lists):
        call_there(produce)
    return await done


@IN_ONE_LOOP.contestant("asyncio.Queue")
async def asyncio_queue(n: int) -> int:
    queue: asyncio.Queue[int | None] = asyncio.Queue(PREFETCH)

    async def produce() -> None:
        for item in range(n):
            await queue.put(item)
        await queue.put(None)

    task = asyncio.create_task(produce())
    count = 0
    while await queue.get() is not None:
        count += 1
    await task
    return count


@IN_ONE_LOOP.contestant("anyio")
async def anyio_awaited(n: int) -> int:
    send, receive = anyio.create_memory_object_stream[int](PREFETCH)

    async def produce() -> None:
        async with send:
            for item in range(n):
                await send.send(item)

    count = 0
    async with anyio.create_task_group() as tasks, receive:
        tasks.start_soon(produce)
        async for _ in receive:
            count += 1
    return count


@IN_ONE_LOOP.contestant("anyio, nowait first")
async def anyio_nowait_first(n: int) -> int:
    send, receive = anyio.create_memory_object_stream[int](PREFETCH)

    async def produce() -> None:
        with send:
            for item in range(n):
                try:
                    send.send_nowait(item)
                except anyio.WouldBlock:
                    await send.send(item)

    count = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        with receive:
            while True:
                try:
                    receive.receive_nowait()
                except anyio.WouldBlock:
                    try:
                        await receive.receive()
                    except anyio.EndOfStream:
                        break
                except anyio.EndOfStream:
                    break
                count += 1
    return count


# --- between two loop threads ----------------------------------------------------------------------------------------


@BETWEEN_THREADS.contestant("reactive_aio")
async def ours_between_threads(n: int) -> int:
    return await Flow.range(n).publish_on(schedulers.thread("counting"), PREFETCH).count()


@BETWEEN_THREADS.contestant(BY_HAND)
async def lists_between_threads(n: int) -> int:
    """The limit with as much under way: one list, and one wake-up for it each way."""
    return await hand_over_between_threads(n, lists=1)


@BETWEEN_THREADS.contestant(f"{BY_HAND}, two under way", note="512 under way")
async def two_lists_between_threads(n: int) -> int:
    """What twice as much under way would buy."""
    return await hand_over_between_threads(n, lists=2)


async def hand_over_between_threads(n: int, lists: int) -> int:
    home = asyncio.get_running_loop()
    other: asyncio.AbstractEventLoop = type(home)()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    count = await hand_over(n, other.call_soon_threadsafe, home.call_soon_threadsafe, lists)
    other.call_soon_threadsafe(other.stop)
    thread.join()
    other.close()
    return count


@BETWEEN_THREADS.contestant("culsans", needs=("culsans",))
def culsans_between_threads(n: int, loop_factory: LoopFactory) -> int:
    queue = peer("culsans").Queue(PREFETCH)

    async def produce() -> None:
        for item in range(n):
            await queue.async_q.put(item)
        await queue.async_q.put(None)

    async def consume() -> int:
        count = 0
        while await queue.async_q.get() is not None:
            count += 1
        return count

    def other() -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(produce())

    thread = threading.Thread(target=other)
    thread.start()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        count = runner.run(consume())
    thread.join()
    return count
