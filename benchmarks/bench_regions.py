"""Four regions, a function in each; how the cost grows with the number of boundaries; each region on its own loop."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

from attrs import evolve

from reactive_aio import Flow, schedulers

from . import queues
from .by_hand import another_loop, through_stages
from .harness import Row
from .workload import Field, Workload, peer

SIZE = 256
BY_HAND = "lists by hand"


def increment(n: int) -> int:
    return n + 1


IN_ONE_LOOP = Field()
ON_THREADS = Field()


def rows(n: int) -> list[Row]:
    """Four regions in one loop and on four; one to eight boundaries in one loop."""
    found = _workload(3).rows(n)
    on_threads = evolve(_workload(3), title="four regions, each on a loop of its own", by=ON_THREADS, rounds=5)
    found += on_threads.rows(n)
    for boundaries in (1, 2, 4, 8):
        growing = evolve(
            _workload(boundaries),
            title=f"boundaries: {boundaries}, each region with a function",
            share=0.2,
            rounds=3,
            loops=("asyncio",),
            only=("reactive_aio", BY_HAND, "asyncio.Queue"),
            series="by number of boundaries",
            x=boundaries,
            x_name="boundaries",
        )
        found += growing.rows(n)
    return found


def _workload(boundaries: int) -> Workload:
    return Workload(
        title="four regions in one loop, a function in each",
        by=IN_ONE_LOOP,
        given={"boundaries": boundaries},
        expect=lambda n: n * (n - 1) // 2 + (boundaries + 1) * n,
        limit=BY_HAND,
    )


# --- in one loop -----------------------------------------------------------------------------------------------------


@IN_ONE_LOOP.contestant("reactive_aio")
async def ours(n: int, boundaries: int) -> int:
    flow = Flow.range(n).map(increment)
    for _ in range(boundaries):
        flow = flow.publish_on(schedulers.current(), prefetch=SIZE).map(increment)
    return await flow.reduce(operator.add, 0)


@IN_ONE_LOOP.contestant(BY_HAND)
async def lists_by_hand(n: int, boundaries: int) -> int:
    return await through_stages(n, SIZE, [asyncio.get_running_loop()] * (boundaries + 1))


@IN_ONE_LOOP.contestant("asyncio.Queue")
async def asyncio_queue(n: int, boundaries: int) -> int:
    return await _relayed(n, [asyncio.Queue[int | None](SIZE) for _ in range(boundaries)])


@IN_ONE_LOOP.contestant("culsans", needs="culsans")
async def culsans(n: int, boundaries: int) -> int:
    return await _relayed(n, [queues.culsans_queue(SIZE) for _ in range(boundaries)])


@IN_ONE_LOOP.contestant("aiochan", needs="aiochan")
async def aiochan(n: int, boundaries: int) -> int:
    return await _relayed(n, [queues.AiochanQueue(SIZE) for _ in range(boundaries)])


async def _relayed(n: int, row: Sequence[queues.Queue]) -> int:
    """Through queues with a task between each two."""

    async def make() -> None:
        for item in range(n):
            await row[0].put(increment(item))
        await row[0].put(None)

    relays = [queues.relay(increment, before, after) for before, after in pairwise(row)]
    tasks = [asyncio.create_task(each) for each in (make(), *relays)]
    total = 0
    while (item := await row[-1].get()) is not None:
        total = operator.add(total, increment(item))
    await asyncio.gather(*tasks)
    return total


async def numbers(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


@IN_ONE_LOOP.contestant("pypeln.task", needs="pypeln")
async def pypeln(n: int, boundaries: int) -> int:
    items: Any = numbers(n)
    for _ in range(boundaries + 1):
        items = peer("pypeln").task.map(increment, items, maxsize=SIZE)
    total = 0
    async for item in items:
        total = operator.add(total, item)
    return total


@IN_ONE_LOOP.contestant("reactivex", needs="reactivex", note="unbounded")
async def reactivex(n: int, boundaries: int) -> int:
    operators = peer("reactivex.operators")
    here = peer("reactivex.scheduler.eventloop").AsyncIOScheduler(asyncio.get_running_loop())
    chain = [operators.map(increment), *[operators.observe_on(here), operators.map(increment)] * boundaries]
    total: int = await peer("reactivex").from_iterable(range(n)).pipe(*chain, operators.reduce(operator.add, 0))
    return total


@IN_ONE_LOOP.contestant("streamable", needs="streamable")
async def streamable(n: int, boundaries: int) -> int:
    chain = peer("streamable").stream(numbers(n)).map(increment)
    for _ in range(boundaries):
        chain = chain.buffer(SIZE).map(increment)
    total = 0
    async for item in chain:
        total = operator.add(total, item)
    return total


# --- on loops of their own -------------------------------------------------------------------------------------------


@ON_THREADS.contestant("reactive_aio")
async def ours_on_threads(n: int, boundaries: int) -> int:
    flow = Flow.range(n).subscribe_on(schedulers.thread("first")).map(increment)
    for number in range(boundaries - 1):
        flow = flow.publish_on(schedulers.thread(f"middle {number}"), prefetch=SIZE).map(increment)
    return await flow.publish_on(schedulers.current(), prefetch=SIZE).map(increment).reduce(operator.add, 0)


@ON_THREADS.contestant(BY_HAND)
async def lists_on_threads(n: int, boundaries: int) -> int:
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(another_loop()) for _ in range(boundaries)]
        return await through_stages(n, SIZE, [*others, asyncio.get_running_loop()])


@ON_THREADS.contestant("culsans", needs="culsans")
async def culsans_on_threads(n: int, boundaries: int) -> int:
    row = [queues.culsans_queue(SIZE) for _ in range(boundaries)]

    async def make() -> None:
        for item in range(n):
            await row[0].put(increment(item))
        await row[0].put(None)

    relays = [queues.relay(increment, before, after) for before, after in pairwise(row)]
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(another_loop()) for _ in range(boundaries)]
        works = zip((make(), *relays), others, strict=True)
        running = [asyncio.run_coroutine_threadsafe(work, other) for work, other in works]
        total = 0
        while (item := await row[-1].get()) is not None:
            total = operator.add(total, increment(item))
        await asyncio.gather(*map(asyncio.wrap_future, running))
    return total
