"""Single operators over what is ready, each against the loop one would write for it."""

from __future__ import annotations

import heapq
import operator
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from random import Random
from typing import Any

from attrs import evolve

from reactive_aio import Batches, Flow, Next

from .harness import Bar, Row
from .workload import Field, LoopFactory, Workload, peer

BY_HAND = "loop by hand"
NUMPY = "numpy over its own arrays"
BATCH = 65_536
WINDOW = 5
TOP = 10

SLIDING = Field()
TOP_K = Field()
FLATTENED = Field()
SCAN = Field()
SIGNALS = Field()
BATCHES = Field()
ARRAYS = Field()


def rows(n: int) -> list[Row]:
    """Those that are no plain map or filter."""
    found: list[Row] = []
    for workload in _workloads():
        found += workload.rows(n)
    return found


def _workloads() -> list[Workload]:
    sliding = Workload(
        title=f"sliding({WINDOW})",
        by=SLIDING,
        expect=_sliding_sum,
        bars=(Bar(BY_HAND, at_most=2),),
        limit=BY_HAND,
        loops=("asyncio",),
    )
    same = evolve(sliding, expect=None)
    return [
        sliding,
        evolve(sliding, title=f"top_k({TOP})", by=TOP_K, expect=_top),
        evolve(sliding, title="flat_map_iterable to pairs, twice", by=FLATTENED, expect=_four_each),
        evolve(sliding, title="scan", by=SCAN, expect=_same),
        evolve(sliding, title="materialize, dematerialize", by=SIGNALS, expect=_same),
        evolve(sliding, title="map_batches(1024)", by=BATCHES, expect=_summed),
        evolve(
            same,
            title=f"numpy batches of {BATCH}: square, filter, sum",
            by=ARRAYS,
            expect=_squares,
            bars=(Bar(NUMPY, at_most=1.3),),
            limit=NUMPY,
        ),
    ]


def _same(n: int) -> int:
    return n


def _summed(n: int) -> int:
    return n * (n - 1) // 2


def _four_each(n: int) -> int:
    return 4 * n


def _sliding_sum(n: int) -> int:
    """Sum up the first elements of the windows."""
    return _summed(n - WINDOW + 1)


def _squares(n: int) -> int:
    """Sum up the even squares below that of ``n``."""
    evens = (n + 1) // 2
    return 4 * ((evens - 1) * evens * (2 * evens - 1) // 6)


# --- sliding ---------------------------------------------------------------------------------------------------------


def _first(window: list[int]) -> int:
    return window[0]


@SLIDING.contestant("reactive_aio")
async def our_sliding(n: int) -> int:
    return await Flow.range(n).sliding(WINDOW).map(_first).sum()


@SLIDING.contestant(BY_HAND)
def sliding_by_hand(n: int, _: LoopFactory) -> int:
    total = 0
    latest: deque[int] = deque(maxlen=WINDOW)
    for item in range(n):
        latest.append(item)
        if len(latest) == WINDOW:
            total += _first(list(latest))
    return total


# --- top_k -----------------------------------------------------------------------------------------------------------


@cache
def _shuffled(n: int) -> list[int]:
    items = list(range(n))
    Random(1).shuffle(items)
    return items


def _top(n: int) -> int:
    return sum(range(n - TOP, n))


@TOP_K.contestant("reactive_aio")
async def our_top(n: int) -> int:
    return sum(await Flow.from_iterable(_shuffled(n)).top_k(TOP))


@TOP_K.contestant(BY_HAND)
def top_by_hand(n: int, _: LoopFactory) -> int:
    items = iter(_shuffled(n))
    heap = [next(items) for _ in range(TOP)]
    heapq.heapify(heap)
    for item in items:
        if item > heap[0]:
            heapq.heapreplace(heap, item)
    return sum(heap)


@TOP_K.contestant("heapq.nlargest")
def top_by_heapq(n: int, _: LoopFactory) -> int:
    return sum(heapq.nlargest(TOP, _shuffled(n)))


# --- flat_map_iterable -----------------------------------------------------------------------------------------------


def pair(item: int) -> tuple[int, int]:
    return item, item + 1


@FLATTENED.contestant("reactive_aio")
async def our_flattened(n: int) -> int:
    return await Flow.range(n).flat_map_iterable(pair).flat_map_iterable(pair).count()


@FLATTENED.contestant(BY_HAND)
def flattened_by_hand(n: int, _: LoopFactory) -> int:
    count = 0
    for item in range(n):
        for one in pair(item):
            for _two in pair(one):
                count += 1
    return count


@FLATTENED.contestant("streamable", needs="streamable")
def streamable_flattened(n: int, _: LoopFactory) -> int:
    stream = peer("streamable").stream
    return sum(1 for _ in stream(range(n)).map(pair).flatten().map(pair).flatten())


# --- scan ------------------------------------------------------------------------------------------------------------


@SCAN.contestant("reactive_aio")
async def our_scan(n: int) -> int:
    return await Flow.range(n).scan(operator.add).count()


@SCAN.contestant(BY_HAND)
def scan_by_hand(n: int, _: LoopFactory) -> int:
    items = iter(range(n))
    total, count = next(items), 1
    for item in items:
        total = operator.add(total, item)
        count += 1
    return count


@SCAN.contestant("itertools.accumulate")
def accumulated(n: int, _: LoopFactory) -> int:
    return sum(1 for _ in accumulate(range(n), operator.add))


# --- materialize, dematerialize --------------------------------------------------------------------------------------


@SIGNALS.contestant("reactive_aio")
async def our_signals(n: int) -> int:
    return await Flow.range(n).materialize().dematerialize().count()


@SIGNALS.contestant(BY_HAND, note="makes the same signals")
def signals_by_hand(n: int, _: LoopFactory) -> int:
    def signals() -> Iterator[object]:
        for item in range(n):
            yield Next(item)

    count = 0
    for signal in signals():
        if isinstance(signal, Next):
            count += 1
    return count


# --- map_batches -----------------------------------------------------------------------------------------------------


def _turned(batch: list[int]) -> list[int]:
    return batch[::-1]


@BATCHES.contestant("reactive_aio")
async def our_batches(n: int) -> int:
    return await Flow.range(n).map_batches(_turned).sum()


@BATCHES.contestant(BY_HAND)
def batches_by_hand(n: int, _: LoopFactory) -> int:
    total = 0
    batch: list[int] = []
    for item in range(n):
        batch.append(item)
        if len(batch) == 1024:
            for result in _turned(batch):
                total += result
            batch = []
    return total + sum(_turned(batch))


def _even_squares(batch: Iterable[int]) -> Iterable[int]:
    numpy = peer("numpy")
    array = numpy.array(batch, dtype=numpy.int64)
    squares = array * array
    found: Iterable[int] = squares[squares % 2 == 0]
    return found


def _arrays(n: int) -> Iterator[Any]:
    numpy = peer("numpy")
    for start in range(0, n, BATCH):
        yield numpy.arange(start, min(start + BATCH, n), dtype=numpy.int64)


@ARRAYS.contestant("reactive_aio")
async def our_arrays(n: int) -> int:
    arrays = Flow.from_iterable(lambda: _arrays(n))
    batches = Batches(arrays).map(lambda batch: batch * batch).filter(lambda batch: batch % 2 == 0)
    return int(await batches.flow.map(peer("numpy").sum).sum())


@ARRAYS.contestant("reactive_aio, map_batches of elements")
async def our_batches_of_elements(n: int) -> int:
    return int(await Flow.range(n).map_batches(_even_squares, size=BATCH).sum())


@ARRAYS.contestant(NUMPY, needs="numpy")
def numpy_by_hand(n: int, _: LoopFactory) -> int:
    numpy = peer("numpy")
    total = 0
    for start in range(0, n, BATCH):
        array = numpy.arange(start, min(start + BATCH, n), dtype=numpy.int64)
        squares = array * array
        total += int(squares[squares % 2 == 0].sum())
    return total


@ARRAYS.contestant("numpy, each array let go of", needs="numpy")
def numpy_let_go_of(n: int, _: LoopFactory) -> int:
    def summed(array: Any) -> int:
        squares = array * array
        return int(squares[squares % 2 == 0].sum())

    # Nothing holds an array while the next one is made, so the C library may give the memory back to the system.
    return sum(map(summed, _arrays(n)))


@ARRAYS.contestant("numpy over lists of elements", needs="numpy")
def numpy_over_lists(n: int, _: LoopFactory) -> int:
    numpy = peer("numpy")
    total = 0
    for start in range(0, n, BATCH):
        array = numpy.array(list(range(start, min(start + BATCH, n))), dtype=numpy.int64)
        squares = array * array
        total += int(squares[squares % 2 == 0].sum())
    return total
