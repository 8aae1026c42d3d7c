"""What a flow costs before its first element: to build it, to subscribe to it, to have it end again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from reactive_aio import Flow, schedulers

from .by_hand import another_loop
from .harness import Row
from .workload import Field, LoopFactory, Workload, peer

OPERATORS = 10

BUILDING = Field()
FIRST = Field()
FIRST_OVER_BOUNDARY = Field()
FIRST_FROM_THREAD = Field()


def rows(n: int) -> list[Row]:
    """An element here is a whole flow."""
    building = Workload(
        title=f"building a flow of {OPERATORS} operators", by=BUILDING, share=0.02, loops=("asyncio",), expect=None
    )
    first = Workload(title="from subscribing to the first element, one region", by=FIRST, share=0.02)
    over = Workload(title="from subscribing to the first element, over a boundary", by=FIRST_OVER_BOUNDARY, share=0.02)
    thread = Workload(
        title="from subscribing to the first element, from a thread made for it",
        by=FIRST_FROM_THREAD,
        share=0.002,
        limit="a thread with a loop by hand",
    )
    return [row for workload in (building, first, over, thread) for row in workload.rows(n)]


def increment(n: int) -> int:
    return n + 1


# --- building --------------------------------------------------------------------------------------------------------


@BUILDING.contestant("reactive_aio")
def ours_built(n: int, _: LoopFactory) -> None:
    for _number in range(n):
        flow = Flow.range(3)
        for _operator in range(OPERATORS):
            flow = flow.map(increment)


@BUILDING.contestant("builtin chain")
def builtin_built(n: int, _: LoopFactory) -> None:
    for _number in range(n):
        items = iter(range(3))
        for _operator in range(OPERATORS):
            items = map(increment, items)


@BUILDING.contestant("aiostream", needs="aiostream")
def aiostream_built(n: int, _: LoopFactory) -> None:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    for _number in range(n):
        chain = stream.range(3)
        for _operator in range(OPERATORS):
            chain |= pipe.map(increment)


@BUILDING.contestant("reactivex", needs="reactivex")
def reactivex_built(n: int, _: LoopFactory) -> None:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    for _number in range(n):
        rx.range(3).pipe(*[operators.map(increment) for _ in range(OPERATORS)])


@BUILDING.contestant("streamable", needs="streamable")
def streamable_built(n: int, _: LoopFactory) -> None:
    stream = peer("streamable").stream
    for _number in range(n):
        chain = stream(range(3))
        for _operator in range(OPERATORS):
            chain = chain.map(increment)


# --- one region ------------------------------------------------------------------------------------------------------


@FIRST.contestant("reactive_aio")
async def our_first(n: int) -> int:
    flow = Flow.range(3).map(increment)
    count = 0
    for _ in range(n):
        count += await flow.first()
    return count


@FIRST.contestant("async generators")
async def async_generators_first(n: int) -> int:
    async def numbers() -> AsyncIterator[int]:
        for item in range(3):
            yield item

    count = 0
    for _ in range(n):
        generator = (increment(item) async for item in numbers())
        count += await anext(generator)
        await generator.aclose()
    return count


@FIRST.contestant("aiostream", needs="aiostream")
async def aiostream_first(n: int) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    chain = stream.range(3) | pipe.map(increment) | pipe.take(1)
    count = 0
    for _ in range(n):
        count += await chain
    return count


@FIRST.contestant("reactivex", needs="reactivex")
async def reactivex_first(n: int) -> int:
    operators = peer("reactivex.operators")
    chain = peer("reactivex").range(3).pipe(operators.map(increment), operators.first())
    count = 0
    for _ in range(n):
        count += await chain
    return count


# --- over a boundary -------------------------------------------------------------------------------------------------


@FIRST_OVER_BOUNDARY.contestant("reactive_aio")
async def our_first_over_boundary(n: int) -> int:
    flow = Flow.range(3).map(increment).publish_on(schedulers.current())
    count = 0
    for _ in range(n):
        count += await flow.first()
    return count


@FIRST_OVER_BOUNDARY.contestant("a task and an asyncio.Queue")
async def queue_first(n: int) -> int:
    async def produce(queue: asyncio.Queue[int]) -> None:
        for item in range(3):
            await queue.put(increment(item))

    count = 0
    for _ in range(n):
        queue: asyncio.Queue[int] = asyncio.Queue(256)
        task = asyncio.create_task(produce(queue))
        count += await queue.get()
        await task
    return count


@FIRST_OVER_BOUNDARY.contestant("reactivex", needs="reactivex")
async def reactivex_first_over_boundary(n: int) -> int:
    operators = peer("reactivex.operators")
    here = peer("reactivex.scheduler.eventloop").AsyncIOScheduler(asyncio.get_running_loop())
    chain = peer("reactivex").range(3).pipe(operators.map(increment), operators.observe_on(here), operators.first())
    count = 0
    for _ in range(n):
        count += await chain
    return count


@FIRST_OVER_BOUNDARY.contestant("streamable", needs="streamable")
async def streamable_first(n: int) -> int:
    async def numbers() -> AsyncIterator[int]:
        for item in range(3):
            yield item

    count = 0
    for _ in range(n):
        async for item in peer("streamable").stream(numbers()).map(increment).buffer(256).take(1):
            count += item
    return count


# --- from a thread ---------------------------------------------------------------------------------------------------


@FIRST_FROM_THREAD.contestant("reactive_aio")
async def our_first_from_thread(n: int) -> int:
    count = 0
    for _ in range(n):
        flow = Flow.range(3).subscribe_on(schedulers.thread("first")).map(increment)
        count += await flow.first()
    return count


@FIRST_FROM_THREAD.contestant("a thread with a loop by hand")
async def thread_first(n: int) -> int:
    home = asyncio.get_running_loop()
    count = 0
    for _ in range(n):
        future: asyncio.Future[int] = home.create_future()
        async with another_loop() as other:
            other.call_soon_threadsafe(home.call_soon_threadsafe, future.set_result, increment(0))
            count += await future
    return count
