"""A function of 5 us on two worker processes, against the same over pipes by hand."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing.connection import Connection, wait
from time import process_time
from typing import cast

from reactive_aio import Flow, schedulers
from reactive_aio.schedulers.processes import ProcessPool

from .harness import WALL, Bar, Row
from .workload import Field, LoopFactory, Workload

WORKERS = 2
LIST = 256
MICROSECONDS = 5.0
PREFETCH = 2 * WORKERS * LIST
"""As much under way as by hand: for each worker the list that it works on and the next."""
BY_HAND = f"two workers over pipes, lists of {LIST}"

FIELD = Field()
PROCESSES = Workload(
    title=f"processes, {MICROSECONDS:.0f} us function, {WORKERS} workers",
    by=FIELD,
    share=0.1,
    expect=lambda n: n * (n - 1) // 2,
    bars=(Bar(BY_HAND, at_most=1.15, metric=WALL),),
    limit=BY_HAND,
    metrics=(WALL,),
    cpu=False,
    loops=("asyncio",),
)


def rows(n: int) -> list[Row]:
    """Workers that have been started before; the wall clock counts, since the work is done elsewhere."""
    return PROCESSES.rows(n)


@cache
def turns() -> int:
    """Return how often `spin` has to turn for its time, on this machine: called for so short a time, as it will be."""
    calls, times, best = 256, 200, 1.0
    for _ in range(10):
        started = process_time()
        for _ in range(calls):
            spin(times)
        best = min(best, process_time() - started)
    return round(times * calls * MICROSECONDS * 1e-6 / best)


def spin(times: int) -> int:
    total = 0
    for n in range(times):
        total += n & 3
    return total


def work(pair: tuple[int, int]) -> int:
    n, times = pair
    return n if spin(times) >= 0 else -1


def pairs(n: int) -> Iterator[tuple[int, int]]:
    times = turns()
    return ((k, times) for k in range(n))


@cache
def pool() -> ProcessPool:
    return schedulers.processes(WORKERS).open()


@FIELD.contestant("reactive_aio", note="chunks of 4 ms")
async def ours(n: int) -> int:
    return await Flow.from_iterable(pairs(n)).publish_on(pool()).map(work).sum()


@FIELD.contestant(f"reactive_aio, prefetch {PREFETCH}", note="as much as by hand")
async def ours_as_by_hand(n: int) -> int:
    return await Flow.from_iterable(pairs(n)).publish_on(pool(), prefetch=PREFETCH).map(work).sum()


@FIELD.contestant("reactive_aio, prefetch 256")
async def ours_with_less(n: int) -> int:
    return await Flow.from_iterable(pairs(n)).publish_on(pool(), prefetch=LIST).map(work).sum()


def serve(pipe: Connection) -> None:
    while (items := pipe.recv()) is not None:
        pipe.send([work(item) for item in items])


@cache
def pipes() -> list[Connection]:
    context = multiprocessing.get_context("spawn")
    ours: list[Connection] = []
    for _ in range(WORKERS):
        here, there = context.Pipe()
        context.Process(target=serve, args=(there,), daemon=True).start()
        ours.append(here)
    return ours


@FIELD.contestant(BY_HAND)
def pipes_by_hand(n: int, _: LoopFactory) -> int:
    """The limit: two lists under way for each worker, results as they come."""
    items = pairs(n)
    total = under_way = 0
    for pipe in pipes() * 2:
        if chunk := list(islice(items, LIST)):
            pipe.send(chunk)
            under_way += 1
    while under_way:
        for ready in wait(pipes()):
            pipe = cast("Connection", ready)
            total += sum(pipe.recv())
            under_way -= 1
            if chunk := list(islice(items, LIST)):
                pipe.send(chunk)
                under_way += 1
    return total


@FIELD.contestant("serial loop")
def serial(n: int, _: LoopFactory) -> int:
    return sum(work(item) for item in pairs(n))


@cache
def executor() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn"))


@FIELD.contestant(f"ProcessPoolExecutor.map, chunksize={LIST}", note="unbounded")
def mapped(n: int, _: LoopFactory) -> int:
    return sum(executor().map(work, pairs(n), chunksize=LIST))
