"""A coroutine function for each element, 64 of them in flight, against tasks and workers written by hand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from reactive_aio import Flow

from .harness import Bar, Row
from .workload import Field, Workload, peer

CONCURRENCY = 64
WINDOW = f"window of {CONCURRENCY} tasks"
WORKERS = f"{CONCURRENCY} bare workers"

Fn = Callable[[int], Awaitable[int]]

ORDERED = Field()
UNORDERED = Field()


async def one_turn(n: int) -> int:
    """Wait for a turn of the loop, as whatever is awaited does at least."""
    await asyncio.sleep(0)
    return n + 1


async def some_turns(n: int) -> int:
    """Wait for one to eight turns, so that elements do not come to their ends together."""
    for _ in range(n * 7919 % 8 + 1):
        await asyncio.sleep(0)
    return n + 1


def in_flight(order: str, by: Field, fn: Fn, what: str, only: tuple[str, ...] = ()) -> Workload:
    """Say what is done: the results of a coroutine function are added up."""
    return Workload(
        title=f"async map, {CONCURRENCY} in flight, {order}{what}",
        by=by,
        given={"fn": fn},
        only=only,
        share=0.1,
        expect=lambda n: n * (n + 1) // 2,
        bars=(Bar(WINDOW, at_most=1.2),),
        limit=WORKERS,
    )


def rows(n: int) -> list[Row]:
    """With results in order and as they come, of functions that take one turn of the loop, and of some that take several."""
    ours = ("reactive_aio", WINDOW, WORKERS)
    workloads = (
        in_flight("in order", ORDERED, one_turn, ""),
        in_flight("as completed", UNORDERED, one_turn, ""),
        in_flight("in order", ORDERED, some_turns, ", one to eight turns each", ours),
        in_flight("as completed", UNORDERED, some_turns, ", one to eight turns each", ours),
    )
    return [row for workload in workloads for row in workload.rows(n)]


# --- in order --------------------------------------------------------------------------------------------------------


@ORDERED.contestant("reactive_aio")
async def ours_in_order(n: int, fn: Fn) -> int:
    return await Flow.range(n).map_async(fn, max_concurrency=CONCURRENCY).sum()


@ORDERED.contestant(WINDOW)
async def window_in_order(n: int, fn: Fn) -> int:
    """A task for each element; the oldest is awaited, then another one is begun."""
    total = 0
    window: deque[asyncio.Task[int]] = deque()
    for item in range(n):
        if len(window) == CONCURRENCY:
            total += await window.popleft()
        window.append(asyncio.ensure_future(fn(item)))
    for task in window:
        total += await task
    return total


@ORDERED.contestant(WORKERS, note="no failure, cancellation or demand is seen to")
async def workers_in_order(n: int, fn: Fn) -> int:
    """Tasks that take one element after another; results that are out of turn are kept."""
    total = 0
    numbers = iter(range(n))
    results: dict[int, int] = {}
    turn = 0

    async def work() -> None:
        nonlocal total, turn
        for number in numbers:
            results[number] = await fn(number)
            while turn in results:
                total += results.pop(turn)
                turn += 1

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return total


@ORDERED.contestant("streamable", needs="streamable")
async def streamable_in_order(n: int, fn: Fn) -> int:
    return await _added_up(peer("streamable").stream(range(n)).map(fn, concurrency=CONCURRENCY))


@ORDERED.contestant("aiostream", needs="aiostream")
async def aiostream_in_order(n: int, fn: Fn) -> int:
    stream = peer("aiostream").stream
    mapped = stream.map(stream.iterate(range(n)), fn, ordered=True, task_limit=CONCURRENCY)
    async with mapped.stream() as items:
        return await _added_up(items)


@ORDERED.contestant("aiometer", needs="aiometer", note="reads all, gives a list")
async def aiometer_in_order(n: int, fn: Fn) -> int:
    tasks = [partial(fn, item) for item in range(n)]
    return sum(await peer("aiometer").run_all(tasks, max_at_once=CONCURRENCY))


# --- as completed ----------------------------------------------------------------------------------------------------


@UNORDERED.contestant("reactive_aio")
async def ours_as_completed(n: int, fn: Fn) -> int:
    return await Flow.range(n).map_async(fn, max_concurrency=CONCURRENCY, order="completion").sum()


@UNORDERED.contestant("reactive_aio, for_each")
async def ours_for_each(n: int, fn: Fn) -> int:
    """An end with as much in flight, which has no results."""
    total = 0

    async def add(item: int) -> None:
        nonlocal total
        result = await fn(item)
        total += result

    await Flow.range(n).for_each(add, max_concurrency=CONCURRENCY)
    return total


@UNORDERED.contestant(WINDOW)
async def window_as_completed(n: int, fn: Fn) -> int:
    """A task for each element; as many are begun as have ended."""
    total = 0
    window: set[asyncio.Future[int]] = set()
    for item in range(n):
        if len(window) == CONCURRENCY:
            done, window = await asyncio.wait(window, return_when=asyncio.FIRST_COMPLETED)
            total += sum(each.result() for each in done)
        window.add(asyncio.ensure_future(fn(item)))
    return total + sum(await asyncio.gather(*window))


@UNORDERED.contestant(WORKERS, note="no failure, cancellation or demand is seen to")
async def workers_as_completed(n: int, fn: Fn) -> int:
    """Tasks that take one element after another."""
    total = 0
    numbers: Iterator[int] = iter(range(n))

    async def work() -> None:
        nonlocal total
        for number in numbers:
            result = await fn(number)
            total += result

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return total


@UNORDERED.contestant("streamable", needs="streamable")
async def streamable_as_completed(n: int, fn: Fn) -> int:
    return await _added_up(peer("streamable").stream(range(n)).map(fn, concurrency=CONCURRENCY, as_completed=True))


@UNORDERED.contestant("aiostream", needs="aiostream")
async def aiostream_as_completed(n: int, fn: Fn) -> int:
    stream = peer("aiostream").stream
    mapped = stream.map(stream.iterate(range(n)), fn, ordered=False, task_limit=CONCURRENCY)
    async with mapped.stream() as items:
        return await _added_up(items)


@UNORDERED.contestant("aiometer", needs="aiometer", note="reads all")
async def aiometer_as_completed(n: int, fn: Fn) -> int:
    async with peer("aiometer").amap(fn, list(range(n)), max_at_once=CONCURRENCY) as results:
        return await _added_up(results)


async def _added_up(items: AsyncIterator[Any]) -> int:
    total = 0
    async for item in items:
        total += item
    return total
