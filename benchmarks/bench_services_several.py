"""Streams of services: several suspended sources, groups, and many flows at a time."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from time import thread_time
from typing import Any

from attrs import evolve

from reactive_aio import Flow

from . import by_hand_services as by_hand
from .by_hand_services import increment, suspended
from .harness import Bar, Contestant, Figures, Row
from .workload import Field, Workload, peer

SOURCES = 8
PREFETCH = 128
KEYS = 100
FLOWS = 5_000
LENGTH = 10
TASKS = "tasks by hand"
QUEUES = "tasks at queues"
BYTES = "bytes each, at most"
TURN, MEDIAN_TURN = "p99 ms of CPU a turn of the loop", "p50 ms"
TURNS = 200

MERGE = Field()
ZIP = Field()
COMBINE = Field()
GROUPS = Field()
CROWD = Field()


def rows(n: int) -> list[Row]:
    """An element of a crowd is a whole flow, and one of many groups a group."""
    found: list[Row] = []
    for workload in (*_combined(), *_grouped(), _crowd()):
        found += workload.rows(n)
    return [*found, _memory(), *(_busy(flows, milliseconds) for flows, milliseconds in ((10, 2), (100, 3)))]


def _combined() -> list[Workload]:
    merged = Workload(
        title=f"merge of {SOURCES} suspended async generators",
        by=MERGE,
        expect=_in_equal_parts,
        bars=(Bar(TASKS, at_most=1.5), Bar("aioitertools", at_most=1)),
        limit=TASKS,
        loops=("asyncio",),
        share=0.1,
    )
    bars = (Bar(TASKS, at_most=1.5),)
    zipped = evolve(merged, title="zip of 2 suspended async generators", by=ZIP, expect=_same, bars=bars)
    # Which comes first is up to the loop, but after the first pair each element makes one.
    combined = evolve(zipped, title="combine_latest of 2 suspended async generators", by=COMBINE, expect=_but_the_first)
    return [merged, zipped, combined]


def _grouped() -> list[Workload]:
    few = Workload(
        title=f"group_by with {KEYS} groups, each counted",
        by=GROUPS,
        given={"size": 0},
        expect=_keys,
        bars=(Bar(QUEUES, at_most=2.5),),
        limit=QUEUES,
        loops=("asyncio",),
        share=0.1,
    )
    many = evolve(
        few,
        title="group_by with 20,000 groups of 2, each counted",
        given={"size": 2},
        fixed=20_000,
        expect=_same,
        only=("reactive_aio", QUEUES),
        bars=(Bar(at_most=30_000),),
        rounds=1,
    )
    return [few, many]


def _crowd() -> Workload:
    return Workload(
        title=f"{FLOWS:,} flows at a time of {LENGTH} suspended elements",
        by=CROWD,
        fixed=FLOWS,
        bars=(Bar(TASKS, at_most=4),),
        limit=TASKS,
        loops=("asyncio",),
        rounds=3,
    )


def _same(n: int) -> int:
    return n


def _in_equal_parts(n: int) -> int:
    return n // SOURCES * SOURCES


def _but_the_first(n: int) -> int:
    return n // 2 * 2 - 1


def _keys(n: int) -> int:
    return min(n, KEYS)


# --- merge, zip, combine_latest --------------------------------------------------------------------------------------


def _sources(n: int) -> list[Flow[int]]:
    return [Flow.from_async_iterable(suspended(n // SOURCES)) for _ in range(SOURCES)]


@MERGE.contestant("reactive_aio")
async def our_merge(n: int) -> int:
    first, *others = _sources(n)
    return await first.merge(*others, prefetch=PREFETCH).count()


@MERGE.contestant(TASKS)
async def merge_by_hand(n: int) -> int:
    return await by_hand.merged([suspended(n // SOURCES) for _ in range(SOURCES)], PREFETCH)


@MERGE.contestant("aioitertools", needs="aioitertools")
async def aioitertools_merge(n: int) -> int:
    sources = [suspended(n // SOURCES) for _ in range(SOURCES)]
    return await by_hand.counted(peer("aioitertools.asyncio").as_generated(sources))


@MERGE.contestant("aiostream", needs="aiostream")
async def aiostream_merge(n: int) -> int:
    merged = peer("aiostream").stream.merge(*(suspended(n // SOURCES) for _ in range(SOURCES)))
    async with merged.stream() as items:
        return await by_hand.counted(items)


@MERGE.contestant("streamable", needs="streamable")
async def streamable_merge(n: int) -> int:
    sources = [suspended(n // SOURCES) for _ in range(SOURCES)]
    return await by_hand.counted(aiter(peer("streamable").stream(sources).flatten(concurrency=SOURCES)))


@ZIP.contestant("reactive_aio")
async def our_zip(n: int) -> int:
    left, right = (Flow.from_async_iterable(suspended(n)) for _ in range(2))
    return await left.zip(right).count()


@ZIP.contestant(TASKS, note="none: one after the other")
async def zip_by_hand(n: int) -> int:
    return await by_hand.zipped(suspended(n), suspended(n))


@ZIP.contestant("asyncstdlib", needs="asyncstdlib")
async def asyncstdlib_zip(n: int) -> int:
    return await by_hand.counted(aiter(peer("asyncstdlib").zip(suspended(n), suspended(n))))


@ZIP.contestant("aioitertools", needs="aioitertools")
async def aioitertools_zip(n: int) -> int:
    return await by_hand.counted(aiter(peer("aioitertools").zip(suspended(n), suspended(n))))


@ZIP.contestant("aiostream", needs="aiostream")
async def aiostream_zip(n: int) -> int:
    async with peer("aiostream").stream.zip(suspended(n), suspended(n)).stream() as items:
        return await by_hand.counted(items)


@COMBINE.contestant("reactive_aio")
async def our_combine(n: int) -> int:
    left, right = (Flow.from_async_iterable(suspended(n // 2)) for _ in range(2))
    return await left.combine_latest(right).count()


@COMBINE.contestant(TASKS)
async def combine_by_hand(n: int) -> int:
    return await by_hand.latest([suspended(n // 2), suspended(n // 2)], 32)


# --- groups ----------------------------------------------------------------------------------------------------------


def _keyed(n: int, size: int) -> tuple[int, Callable[[int], int]]:
    """Return the number of elements and their key: so many groups of a size, or all elements in so many groups."""
    return (n * size, lambda item: item // size) if size else (n, lambda item: item % KEYS)


@GROUPS.contestant("reactive_aio")
async def our_groups(n: int, size: int) -> int:
    elements, key = _keyed(n, size)
    groups = Flow.range(elements).group_by(key, max_groups=max(n, KEYS))
    tasks = [asyncio.create_task(group.count()) async for group in groups]  # as by hand
    assert sum(await asyncio.gather(*tasks)) == elements
    return len(tasks)


@GROUPS.contestant(QUEUES)
async def groups_by_hand(n: int, size: int) -> int:
    elements, key = _keyed(n, size)
    return await by_hand.grouped(elements, key, 256)


@GROUPS.contestant("reactivex", needs="reactivex", note="without demand")
async def reactivex_groups(n: int, size: int) -> int:
    elements, key = _keyed(n, size)
    operators = peer("reactivex.operators")
    counts: list[int] = []

    def count(group: Any) -> Any:
        return group.pipe(operators.count())

    peer("reactivex").from_iterable(range(elements)).pipe(operators.group_by(key), operators.flat_map(count)).subscribe(
        counts.append
    )
    assert sum(counts) == elements
    return len(counts)


# --- many flows ------------------------------------------------------------------------------------------------------


async def _all(n: int, one: Callable[[], Awaitable[int]]) -> int:
    """Run so many at a time, and give how many had the right result."""
    return (await asyncio.gather(*(one() for _ in range(n)))).count(LENGTH * (LENGTH + 1) // 2)


def _our_flow() -> Awaitable[int]:
    return Flow.from_async_iterable(suspended(LENGTH)).map(increment).sum()


async def _task() -> int:
    total = 0
    async for item in suspended(LENGTH):
        total += increment(item)
    return total


@CROWD.contestant("reactive_aio")
async def our_crowd(n: int) -> int:
    return await _all(n, _our_flow)


@CROWD.contestant(TASKS)
async def crowd_by_hand(n: int) -> int:
    return await _all(n, _task)


@CROWD.contestant("streamable", needs="streamable")
async def streamable_crowd(n: int) -> int:
    async def one() -> int:
        items: AsyncIterator[int] = aiter(peer("streamable").stream(suspended(LENGTH)).map(increment))
        return await by_hand.summed(items)

    return await _all(n, one)


def _memory() -> Row:
    """Compare what the flows of a crowd take while they are under way."""
    ones = {"reactive_aio": _our_flow, TASKS: _task}

    def peak(one: Callable[[], Awaitable[int]]) -> Figures:
        async def main() -> int:
            assert await _all(1, one) == 1  # what is made once and kept counts for nothing
            gc.collect()
            tracemalloc.start()
            assert await _all(FLOWS, one) == FLOWS
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return most

        return Figures({BYTES: asyncio.run(main()) / FLOWS})

    contestants = tuple(Contestant(name, partial(peak, one)) for name, one in ones.items())
    return Row(
        f"memory of {FLOWS:,} flows at a time",
        FLOWS,
        contestants,
        (Bar(at_most=4_096),),
        rounds=1,
        metrics=(BYTES,),
        limit=TASKS,
    )


# --- the loop beside busy flows --------------------------------------------------------------------------------------


def _busy(flows: int, milliseconds: int) -> Row:
    """Look how long a turn of the loop takes while so many flows are at work that never wait."""

    async def beside() -> Figures:
        endless = Flow.range(2**62).map(increment).filter(by_hand.even)
        tasks = [asyncio.create_task(endless.count()) for _ in range(flows)]
        await asyncio.sleep(0)
        seconds: list[float] = []
        before = thread_time()
        for _ in range(TURNS):
            await asyncio.sleep(0)
            now = thread_time()
            seconds.append(now - before)
            before = now
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return _turns(seconds)

    return Row(
        f"turns of the loop beside {flows} busy flows",
        TURNS,
        (Contestant("reactive_aio", lambda: asyncio.run(beside())),),
        (Bar(at_most=milliseconds),),
        rounds=3,
        metrics=(TURN, MEDIAN_TURN),
    )


def _turns(seconds: list[float]) -> Figures:
    ordered = sorted(seconds)
    return Figures(
        {TURN: ordered[int(len(ordered) * 0.99)] * 1e3, MEDIAN_TURN: ordered[len(ordered) // 2] * 1e3}, len(seconds)
    )
