"""One source for several subscribers: shared, against the same list handed to several callbacks, and against a queue for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from time import process_time

from attrs import evolve

from reactive_aio import Flow, Hub, schedulers

from .by_hand import counted
from .harness import Bar, Figures, Row
from .workload import Field, Workload

OURS = "reactive_aio"
BY_HAND = "lists by hand"
QUEUES = "an asyncio.Queue for each"
BOUNDARY = "a boundary for each"

STEP = "an asyncio.Queue(1) for each"
EACH_NS = "CPU ns an element and subscriber"

COUNTED, ALONE, READ, STEPPED, EMITTED, CROWD = Field(), Field(), Field(), Field(), Field(), Field()

EIGHT = Workload(
    title="8 subscribers that count, lag 256",
    by=COUNTED,
    given={"readers": 8, "size": 256},
    bars=(Bar(BY_HAND, at_most=1.5), Bar(QUEUES, times_faster=12)),
    limit=BY_HAND,
)
ONE = Workload(title="1 subscriber that counts, lag 256", by=ALONE, bars=(Bar(BOUNDARY, at_most=1.3),))
EACH = Workload(
    title="8 subscribers that read by async for, prefetch 256",
    by=READ,
    given={"readers": 8},
    share=0.05,
    bars=(Bar(BOUNDARY, at_most=1.2),),
)
STEPS = Workload(
    title="8 subscribers that read by async for, one at a time",
    by=STEPPED,
    given={"readers": 8},
    share=0.02,
    bars=(Bar(STEP, at_most=1.0),),
)
HUB = Workload(
    title="emitted one by one to 200 who read by async for",
    by=EMITTED,
    given={"readers": 200},
    fixed=1_000,  # with fewer it is the subscriptions that are measured
    bars=(Bar(QUEUES, at_most=1.0),),
)


def rows(n: int) -> list[Row]:
    """With lags of 256 and more, with many subscribers, with one; and elements that come one by one."""
    long = evolve(
        EIGHT,
        title="8 subscribers that count, lag 1,024",
        given={"readers": 8, "size": 1024},
        only=(OURS, BY_HAND),
        bars=(Bar(BY_HAND, at_most=1.3),),
    )
    found = EIGHT.rows(n) + long.rows(n) + ONE.rows(n) + EACH.rows(n) + STEPS.rows(n) + HUB.rows(n)
    for readers, fixed in ((1_000, 10_240), (10_000, 4_096)):
        crowd = Workload(
            title=f"{readers:,} subscribers that count, beyond their subscription",
            by=CROWD,
            given={"readers": readers},
            fixed=fixed,
            bars=(Bar(at_most=40),),
            rounds=3,
            metrics=(EACH_NS,),
        )
        found += crowd.rows(n)
    for readers in (1, 10, 100, 1000):
        workload = evolve(
            EIGHT,
            title=f"{readers} subscribers that count",
            given={"readers": readers, "size": 256},
            only=(OURS, BY_HAND),
            bars=(),
            rounds=3,
            share=1 / readers,
            series="one source for several subscribers",
            x=readers,
            x_name="subscribers",
        )
        found += workload.rows(n)
    return found


# -- all that comes, counted


@COUNTED.contestant(OURS)
async def shared(n: int, readers: int, size: int) -> int:
    flow = Flow.range(n).share(lag=size, start=readers)
    return (await asyncio.gather(*[flow.count() for _ in range(readers)]))[-1]


@COUNTED.contestant(BY_HAND, note="the same list to a callback for each")
async def lists_by_hand(n: int, readers: int, size: int) -> int:
    loop = asyncio.get_running_loop()
    items, totals, done = iter(range(n)), [0] * readers, loop.create_future()

    def produce() -> None:
        chunk = list(islice(items, size))
        for reader in range(readers):
            loop.call_soon(consume, reader, chunk)
        if chunk:
            loop.call_soon(produce)
        else:
            loop.call_soon(done.set_result, None)

    def consume(reader: int, chunk: list[int]) -> None:
        totals[reader] += counted(chunk)

    produce()
    await done
    return totals[-1]


@COUNTED.contestant(QUEUES)
async def queues(n: int, readers: int, size: int) -> int:
    return await _through_queues(n, readers, size)


# -- one subscriber


@ALONE.contestant(OURS)
async def shared_by_one(n: int) -> int:
    return await Flow.range(n).share().count()


@ALONE.contestant(BOUNDARY)
async def boundary(n: int) -> int:
    return await Flow.range(n).publish_on(schedulers.current()).count()


# -- one element at a time


@READ.contestant(OURS)
async def read_of_one_run(n: int, readers: int) -> int:
    flow = Flow.range(n).share(start=readers, prefetch=256)
    return await _read(flow, readers=readers)


@READ.contestant(BOUNDARY)
async def read_behind_boundaries(n: int, readers: int) -> int:
    flow = Flow.range(n).publish_on(schedulers.current())
    return await _read(*[flow] * readers, readers=readers)


@STEPPED.contestant(OURS)
async def read_step_by_step(n: int, readers: int) -> int:
    return await _read(Flow.range(n).share(start=readers), readers=readers)


@STEPPED.contestant(STEP)
async def queues_of_one(n: int, readers: int) -> int:
    return await _through_queues(n, readers, 1)


@CROWD.contestant(OURS)
async def crowd(n: int, readers: int) -> Figures:
    """Compare a stream with one of twice the length, so that what it takes to subscribe drops out."""
    spent: list[float] = []
    for length in (n, 2 * n):
        before = process_time()
        await shared(length, readers, 256)
        spent.append(process_time() - before)
    return Figures({EACH_NS: (spent[1] - spent[0]) / (n * readers) * 1e9}, n)


@EMITTED.contestant(OURS)
async def emitted(n: int, readers: int) -> int:
    hub: Hub[int] = Hub(idle="drop", prefetch=256)
    reading = asyncio.gather(*[_count(hub.flow) for _ in range(readers)])
    for _ in range(readers):  # turns enough for all to come
        await asyncio.sleep(0)
    for item in range(n):
        await hub.emit(item)
    hub.complete()
    return (await reading)[-1]


@EMITTED.contestant(QUEUES)
async def put_into_queues(n: int, readers: int) -> int:
    return await _through_queues(n, readers, 256)


async def _read(*flows: Flow[int], readers: int) -> int:
    return (await asyncio.gather(*[_count(flows[reader % len(flows)]) for reader in range(readers)]))[-1]


async def _count(flow: Flow[int]) -> int:
    count = 0
    async for _ in flow:
        count += 1
    return count


async def _through_queues(n: int, readers: int, size: int) -> int:
    each: list[asyncio.Queue[int | None]] = [asyncio.Queue(size) for _ in range(readers)]
    reading = asyncio.gather(*[_drained(queue.get) for queue in each])
    for item in (*range(n), None):
        for queue in each:
            if queue.full():
                await queue.put(item)
            else:
                queue.put_nowait(item)
    return (await reading)[-1]


async def _drained(get: Callable[[], Awaitable[int | None]]) -> int:
    count = 0
    while await get() is not None:
        count += 1
    return count
