"""Eight async generators that are always ready, read at the same time and merged into one stream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from attrs import evolve

from reactive_aio import Flow

from .harness import Bar, Row
from .workload import Field, Workload, peer

SOURCES = 8
SIZE = 128
BY_HAND = "tasks, a shared deque"

FIELD = Field()


def rows(n: int) -> list[Row]:
    """Eight sources, with as many elements of each read ahead as `merge` does by itself; and how the cost falls with that number."""
    merged = Workload(
        title=f"merge of {SOURCES} ready async generators, prefetch {SIZE}",
        by=FIELD,
        given={"size": SIZE},
        expect=lambda n: n // SOURCES * SOURCES,
        bars=(Bar(BY_HAND, at_most=2.0),),
        limit=BY_HAND,
        share=0.5,
    )
    found = merged.rows(n)
    for size in (8, 32, 128, 512):
        growing = evolve(
            merged,
            title=f"merge of {SOURCES} ready async generators, prefetch {size}",
            given={"size": size},
            bars=(),
            share=0.2,
            rounds=3,
            loops=("asyncio",),
            only=("reactive_aio", BY_HAND, "asyncio.Queue"),
            series="by prefetch",
            x=size,
            x_name="prefetch",
        )
        found += growing.rows(n)
    return found


async def numbers(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


@FIELD.contestant("reactive_aio")
async def ours(n: int, size: int) -> int:
    first, *others = [Flow.from_async_iterable(numbers(n // SOURCES)) for _ in range(SOURCES)]
    return await first.merge(*others, prefetch=size).count()


@FIELD.contestant(BY_HAND)
async def tasks_on_a_deque(n: int, size: int) -> int:
    items: deque[int] = deque()
    ready = asyncio.Event()
    running = SOURCES

    async def read(source: AsyncIterator[int]) -> None:
        nonlocal running
        taken = 0
        async for item in source:
            items.append(item)
            taken += 1
            if taken == size:
                taken = 0
                ready.set()
                await asyncio.sleep(0)
        running -= 1
        ready.set()

    tasks = [asyncio.create_task(read(numbers(n // SOURCES))) for _ in range(SOURCES)]
    count = 0
    while running or items:
        await ready.wait()
        ready.clear()
        while items:
            items.popleft()
            count += 1
    await asyncio.gather(*tasks)
    return count


@FIELD.contestant("asyncio.Queue")
async def asyncio_queue(n: int, size: int) -> int:
    queue: asyncio.Queue[int | None] = asyncio.Queue(SOURCES * size)

    async def read(source: AsyncIterator[int]) -> None:
        async for item in source:
            await queue.put(item)
        await queue.put(None)

    tasks = [asyncio.create_task(read(numbers(n // SOURCES))) for _ in range(SOURCES)]
    count, running = 0, SOURCES
    while running:
        if await queue.get() is None:
            running -= 1
        else:
            count += 1
    await asyncio.gather(*tasks)
    return count


@FIELD.contestant("aioitertools", needs="aioitertools")
async def aioitertools(n: int, size: int) -> int:
    count = 0
    sources = [numbers(n // SOURCES) for _ in range(SOURCES)]
    async for _ in peer("aioitertools.asyncio").as_generated(sources):
        count += 1
    return count


@FIELD.contestant("aiostream", needs="aiostream")
async def aiostream(n: int, size: int) -> int:
    count = 0
    merged = peer("aiostream").stream.merge(*(numbers(n // SOURCES) for _ in range(SOURCES)))
    async with merged.stream() as items:
        async for _ in items:
            count += 1
    return count


@FIELD.contestant("streamable", needs="streamable")
async def streamable(n: int, size: int) -> int:
    count = 0
    sources = [numbers(n // SOURCES) for _ in range(SOURCES)]
    async for _ in peer("streamable").stream(sources).flatten(concurrency=SOURCES):
        count += 1
    return count


@FIELD.contestant("reactivex", needs="reactivex", note="of iterables, one after another")
async def reactivex(n: int, size: int) -> int:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    sources = [rx.from_iterable(range(n // SOURCES)) for _ in range(SOURCES)]
    count: int = await rx.merge(*sources).pipe(operators.count())
    return count
