"""A boundary within one event loop, and one between two loop threads, against the queues people use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Any

import anyio
import culsans

from reactive_aio import Flow, schedulers

from .harness import Bar, Contestant, Row

PREFETCH = 256


def run(main: Callable[[], Coroutine[Any, Any, int]], loop_factory: Callable[[], Any]) -> Callable[[], int]:
    def call() -> int:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(main())

    return call


def rows(n: int, loop_name: str, loop_factory: Callable[[], Any]) -> list[Row]:
    """The two rows on one kind of event loop."""

    def contestant(name: str, main: Callable[[int], Coroutine[Any, Any, int]]) -> Contestant:
        return Contestant(name, run(lambda: main(n), loop_factory))

    return [
        Row(
            f"boundary in one loop, prefetch {PREFETCH}, {loop_name}",
            n,
            (
                contestant("reactive_aio", ours),
                contestant("lists by hand", lists_by_hand),
                contestant("anyio nowait-first", anyio_nowait_first),
                contestant("asyncio.Queue", asyncio_queue),
            ),
            (Bar("asyncio.Queue", times_faster=8), Bar("anyio nowait-first", times_faster=2)),
        ),
        Row(
            f"boundary between two loop threads, prefetch {PREFETCH}, {loop_name}",
            n,
            (
                contestant("reactive_aio", ours_between_threads),
                Contestant("lists by hand", lambda: lists_between_threads(n, loop_factory)),
                Contestant("culsans", lambda: culsans_between_threads(n, loop_factory)),
            ),
            (Bar("culsans", times_faster=10),),
            rounds=5,
        ),
    ]


async def ours(n: int) -> int:
    return await Flow.range(n).publish_on(schedulers.current(), PREFETCH).count()


async def ours_between_threads(n: int) -> int:
    return await Flow.range(n).publish_on(schedulers.thread("counting"), PREFETCH).count()


async def lists_by_hand(n: int) -> int:
    """The limit: lists handed over by scheduled callbacks, with a request for each."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[int] = loop.create_future()
    items = iter(range(n))
    count = 0

    def produce() -> None:
        loop.call_soon(consume, list(islice(items, PREFETCH)))

    def consume(chunk: list[int]) -> None:
        nonlocal count
        for _ in chunk:
            count += 1
        if len(chunk) < PREFETCH:
            done.set_result(count)
        else:
            loop.call_soon(produce)

    loop.call_soon(produce)
    return await done


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


def lists_between_threads(n: int, loop_factory: Callable[[], Any]) -> int:
    """The limit between threads: one wake-up each way for a list of elements."""
    home, other = loop_factory(), loop_factory()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    items = iter(range(n))
    done: asyncio.Future[int] = home.create_future()
    count = 0

    def produce() -> None:
        home.call_soon_threadsafe(consume, list(islice(items, PREFETCH)))

    def consume(chunk: list[int]) -> None:
        nonlocal count
        for _ in chunk:
            count += 1
        if len(chunk) < PREFETCH:
            done.set_result(count)
        else:
            other.call_soon_threadsafe(produce)

    other.call_soon_threadsafe(produce)
    home.run_until_complete(done)
    other.call_soon_threadsafe(other.stop)
    thread.join()
    other.close()
    home.close()
    return count


def culsans_between_threads(n: int, loop_factory: Callable[[], Any]) -> int:
    queue: culsans.Queue[int | None] = culsans.Queue(PREFETCH)

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
