"""A boundary within one event loop, against the queues and channels people use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio
from attrs import evolve

from reactive_aio import Flow, schedulers

from . import queues
from .by_hand import counted_in_slices, hand_over
from .harness import Bar, Row
from .workload import Field, Workload, peer

BY_HAND = "lists by hand"

FIELD = Field()
BOUNDARY = Workload(
    title="boundary in one loop, prefetch 256",
    by=FIELD,
    given={"size": 256},
    bars=(Bar(BY_HAND, at_most=1.3), Bar("asyncio.Queue", times_faster=8), Bar("anyio, nowait first", times_faster=2)),
    limit=BY_HAND,
)


def rows(n: int) -> list[Row]:
    """With a prefetch of 256 all of them; with others a few."""
    found = BOUNDARY.rows(n)
    for size in (1, 16, 256, 4096):
        workload = evolve(
            BOUNDARY,
            title=f"prefetch {size}, boundary in one loop",
            given={"size": size},
            only=("reactive_aio", BY_HAND, "asyncio.Queue", "anyio, nowait first"),
            bars=(),
            rounds=3,
            series="boundary in one loop, by prefetch",
            x=size,
            x_name="prefetch",
        )
        found += workload.rows(n)
    return found


@FIELD.contestant("reactive_aio")
async def ours(n: int, size: int) -> int:
    return await Flow.range(n).publish_on(schedulers.current(), prefetch=size).count()


@FIELD.contestant(BY_HAND)
async def lists_by_hand(n: int, size: int) -> int:
    call = asyncio.get_running_loop().call_soon
    return await hand_over(n, size, call, call)


@FIELD.contestant(f"{BY_HAND}, in slices", note="64 at a time, with a look at the clock")
async def lists_in_slices(n: int, size: int) -> int:
    """The cost of fairness to the event loop."""
    call = asyncio.get_running_loop().call_soon
    return await hand_over(n, size, call, call, count=counted_in_slices)


@FIELD.contestant("asyncio.Queue")
async def asyncio_queue(n: int, size: int) -> int:
    queue: asyncio.Queue[int | None] = asyncio.Queue(size)
    return await queues.through(n, queue)


@FIELD.contestant("anyio, nowait first")
async def anyio_nowait_first(n: int, size: int) -> int:
    send, receive = anyio.create_memory_object_stream[int](size)

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


@FIELD.contestant("anyio, awaited")
async def anyio_awaited(n: int, size: int) -> int:
    send, receive = anyio.create_memory_object_stream[int](size)

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


@FIELD.contestant("aiochan", needs="aiochan")
async def aiochan(n: int, size: int) -> int:
    return await queues.through(n, queues.AiochanQueue(size))


@FIELD.contestant("aiologic", needs="aiologic")
async def aiologic(n: int, size: int) -> int:
    return await queues.through(n, queues.aiologic_queue(size))


@FIELD.contestant("culsans", needs="culsans")
async def culsans(n: int, size: int) -> int:
    return await queues.through(n, queues.culsans_queue(size))


@FIELD.contestant("janus", needs="janus")
async def janus(n: int, size: int) -> int:
    return await queues.through(n, queues.janus_queue(size))


async def numbers(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


@FIELD.contestant("pypeln.task", needs="pypeln")
async def pypeln(n: int, size: int) -> int:
    def same(item: int) -> int:
        return item

    return len([None async for _ in peer("pypeln").task.map(same, numbers(n), maxsize=size)])


@FIELD.contestant("reactivex", needs="reactivex", note="unbounded")
async def reactivex(n: int, size: int) -> int:
    operators, scheduler = peer("reactivex.operators"), peer("reactivex.scheduler.eventloop").AsyncIOScheduler
    here = scheduler(asyncio.get_running_loop())
    source = peer("reactivex").from_iterable(range(n))
    count: int = await source.pipe(operators.observe_on(here), operators.count())
    return count


@FIELD.contestant("streamable", needs="streamable")
async def streamable(n: int, size: int) -> int:
    count = 0
    async for _ in peer("streamable").stream(numbers(n)).buffer(size):
        count += 1
    return count


@FIELD.contestant("streamz", needs="streamz")
async def streamz(n: int, size: int) -> int:
    count = 0
    done = asyncio.Event()

    def take(_: int) -> None:
        nonlocal count
        count += 1
        if count == n:
            done.set()

    source = peer("streamz").Stream(asynchronous=True)
    source.buffer(size).sink(take)
    for item in range(n):
        await source.emit(item)
    await done.wait()
    return count
