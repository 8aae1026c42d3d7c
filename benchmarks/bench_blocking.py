"""Blocking functions on eight threads, against executors and a window of `to_thread`; results in the order of the input."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

from attrs import evolve

from reactive_aio import Flow, schedulers
from reactive_aio.schedulers.threads import ThreadPool

from .harness import WALL, Bar, Row
from .workload import Field, LoopFactory, Workload, peer

THREADS = 8
PREFETCH = 256
BY_HAND = f"{THREADS} threads on one iterator"

FIELD = Field()


def waits(n: int) -> int:
    """Block, as a driver of a database does."""
    time.sleep(5e-4)
    return n


def returns(n: int) -> int:
    """Do nothing, so that what is left is the way there and back."""
    return n


WAITING = Workload(
    title=f"blocking functions of 0.5 ms on {THREADS} threads",
    by=FIELD,
    given={"fn": waits},
    share=0.02,
    expect=lambda n: n * (n - 1) // 2,
    bars=(Bar(BY_HAND, at_most=1.15, metric=WALL),),
    limit=BY_HAND,
    metrics=(WALL,),
    cpu=False,
    loops=("asyncio",),
)
RETURNING = evolve(
    WAITING,
    title=f"functions that return at once on {THREADS} threads",
    given={"fn": returns},
    share=0.1,
    bars=(Bar("ThreadPoolExecutor.map", times_faster=2, metric=WALL),),
)

Function = Callable[[int], int]


def rows(n: int) -> list[Row]:
    """Threads that have been started before; the wall clock counts, since the work is to wait."""
    return WAITING.rows(n) + RETURNING.rows(n)


@cache
def pool() -> ThreadPool:
    return schedulers.threads(THREADS).open()


@cache
def executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS)


@FIELD.contestant("reactive_aio", note=f"prefetch {PREFETCH}")
async def ours(n: int, fn: Function) -> int:
    return await Flow.range(n).publish_on(pool(), prefetch=PREFETCH).map(fn).sum()


@FIELD.contestant(BY_HAND, note="all results kept")
def threads_by_hand(n: int, _: LoopFactory, fn: Function) -> int:
    """The limit: each takes the next element and leaves the result in its place, without a word to anybody."""
    items, results = iter(range(n)), [0] * n

    def work() -> None:
        for item in items:
            results[item] = fn(item)

    team = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    return sum(results)


@FIELD.contestant("ThreadPoolExecutor.map", note="unbounded")
def mapped(n: int, _: LoopFactory, fn: Function) -> int:
    return sum(executor().map(fn, range(n)))


@FIELD.contestant("ThreadPoolExecutor, a window of 256")
def windowed(n: int, _: LoopFactory, fn: Function) -> int:
    window: deque[Future[int]] = deque()
    total = 0
    for item in range(n):
        if len(window) == PREFETCH:
            total += window.popleft().result()
        window.append(executor().submit(fn, item))
    return total + sum(future.result() for future in window)


@FIELD.contestant("run_in_executor, a window of 256")
async def in_executor(n: int, fn: Function) -> int:
    loop = asyncio.get_running_loop()
    window: deque[asyncio.Future[int]] = deque()
    total = 0
    for item in range(n):
        if len(window) == PREFETCH:
            total += await window.popleft()
        window.append(loop.run_in_executor(executor(), fn, item))
    for future in window:
        total += await future
    return total


@FIELD.contestant("pypeln.thread", needs="pypeln", note="not in order")
def pypeln(n: int, _: LoopFactory, fn: Function) -> int:
    stage: Any = peer("pypeln").thread.map(fn, range(n), workers=THREADS, maxsize=PREFETCH)
    return sum(stage)
