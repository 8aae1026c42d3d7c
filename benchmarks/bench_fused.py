"""A region fused into one function, against the builtin chain written by hand."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import reduce
from itertools import accumulate, chain, groupby, islice, pairwise, takewhile
from time import perf_counter

from attrs import evolve

from reactive_aio import Flow

from .harness import Bar, Row
from .workload import Field, LoopFactory, Workload, peer

BUILTIN = "builtin chain"
ITERATORS = "chain of itertools"


def increment(n: int) -> int:
    return n + 1


def even(n: int) -> bool:
    return n % 2 == 0


def natural(n: int) -> bool:
    return n >= 0


def difference(pair: tuple[int, int]) -> int:
    return pair[1] - pair[0]


CHAIN = Field()
MIXED = Field()
MAPS = Field()


def rows(n: int) -> list[Row]:
    """Map, filter, sum; ten operators of many kinds; ten maps; and how the cost grows with the number of maps."""
    bars = (Bar(BUILTIN, at_most=1.1),)
    short = Workload(
        title="fused map + filter + sum",
        by=CHAIN,
        expect=lambda n: sum(filter(even, range(1, n + 1))),
        bars=bars,
        limit=BUILTIN,
    )
    mixed = Workload(
        title="ten fused operators of nine kinds + reduce",
        by=MIXED,
        share=0.5,
        expect=mixed_by_hand,
        bars=(Bar(ITERATORS, at_most=1.15),),
        limit=ITERATORS,
    )
    ten = _maps(10)
    found = [*short.rows(n), *mixed.rows(n), *evolve(ten, title="ten fused maps + reduce", bars=bars).rows(n)]
    for number in (1, 2, 5, 10, 20, 50):
        growing = evolve(
            _maps(number),
            share=0.1,
            rounds=3,
            loops=("asyncio",),
            only=("reactive_aio", BUILTIN, "chained generators", "reactivex", "aiostream"),
            series="by number of operators",
            x=number,
            x_name="operators",
        )
        found += growing.rows(n)
    return found


def _maps(number: int) -> Workload:
    return Workload(
        title=f"{number} fused maps + reduce",
        by=MAPS,
        given={"maps": number},
        expect=lambda n: n * (n - 1) // 2 + number * n,
        limit=BUILTIN,
    )


# --- map, filter, sum ------------------------------------------------------------------------------------------------


@CHAIN.contestant("reactive_aio")
async def ours(n: int) -> int:
    return await Flow.range(n).map(increment).filter(even).sum()


@CHAIN.contestant(BUILTIN)
def builtin_chain(n: int, _: LoopFactory) -> int:
    return sum(filter(even, map(increment, range(n))))


@CHAIN.contestant("plain loop")
def plain_loop(n: int, _: LoopFactory) -> int:
    total = 0
    for item in range(n):
        after = increment(item)
        if even(after):
            total += after
    return total


@CHAIN.contestant("plain loop in slices", note="128 at a time, with a look at the clock")
def plain_loop_in_slices(n: int, _: LoopFactory) -> int:
    """The cost of fairness to the event loop, in a loop by hand."""
    total = 0
    items = iter(range(n))
    while True:
        item = None
        for item in islice(items, 128):
            after = increment(item)
            if even(after):
                total += after
        if item is None:
            return total
        perf_counter()


@CHAIN.contestant("chained generators")
def generators(n: int, _: LoopFactory) -> int:
    incremented = (increment(item) for item in range(n))
    return sum(item for item in incremented if even(item))


async def numbers(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


@CHAIN.contestant("async generators")
async def async_generators(n: int) -> int:
    incremented = (increment(item) async for item in numbers(n))
    total = 0
    async for item in (item async for item in incremented if even(item)):
        total += item
    return total


@CHAIN.contestant("aiostream", needs="aiostream")
async def aiostream(n: int) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    chain = stream.iterate(range(n)) | pipe.map(increment) | pipe.filter(even) | pipe.reduce(operator.add, 0)
    total: int = await chain
    return total


@CHAIN.contestant("reactivex", needs="reactivex")
async def reactivex(n: int) -> int:
    operators = peer("reactivex.operators")
    source = peer("reactivex").from_iterable(range(n))
    chain = source.pipe(operators.map(increment), operators.filter(even), operators.sum())
    total: int = await chain
    return total


@CHAIN.contestant("streamable", needs="streamable")
def streamable(n: int, _: LoopFactory) -> int:
    total: int = sum(peer("streamable").stream(range(n)).map(increment).filter(even))
    return total


@CHAIN.contestant("streamz", needs="streamz")
def streamz(n: int, _: LoopFactory) -> int:
    total = 0

    def add(item: int) -> None:
        nonlocal total
        total += item

    source = peer("streamz").Stream()
    source.map(increment).filter(even).sink(add)
    for item in range(n):
        source.emit(item)
    return total


# --- ten operators of many kinds -------------------------------------------------------------------------------------


@MIXED.contestant("reactive_aio")
async def our_mixed(n: int) -> int:
    sums = Flow.range(n).map(increment).filter(even).skip(3).scan(operator.add).take_while(natural)
    changes = sums.pairwise().map(difference).filter(even).distinct_until_changed().start_with(0)
    return await changes.reduce(operator.add)


@MIXED.contestant(ITERATORS)
def mixed_by_iterators(n: int, _: LoopFactory) -> int:
    return mixed_by_hand(n)


def mixed_by_hand(n: int) -> int:
    sums = takewhile(natural, accumulate(islice(filter(even, map(increment, range(n))), 3, None)))
    changes = filter(even, map(difference, pairwise(sums)))
    return reduce(operator.add, chain((0,), (item for item, _ in groupby(changes))))


@MIXED.contestant("chained generators")
def mixed_generators(n: int, _: LoopFactory) -> int:
    def scanned(items: Iterable[int]) -> Iterator[int]:
        total = 0
        for item in items:
            total += item
            yield total

    def changed(items: Iterable[int]) -> Iterator[int]:
        before: int | None = None
        for item in items:
            if item != before:
                yield item
            before = item

    evens = (item for item in (increment(item) for item in range(n)) if even(item))
    sums = (item for item in scanned(islice(evens, 3, None)) if natural(item))
    changes = (item for item in (difference(pair) for pair in pairwise(sums)) if even(item))
    return reduce(operator.add, chain((0,), changed(changes)))


# --- any number of maps ----------------------------------------------------------------------------------------------


@MAPS.contestant("reactive_aio")
async def our_maps(n: int, maps: int) -> int:
    flow = Flow.range(n)
    for _ in range(maps):
        flow = flow.map(increment)
    return await flow.reduce(operator.add, 0)


@MAPS.contestant(BUILTIN)
def builtin_maps(n: int, _: LoopFactory, maps: int) -> int:
    items: Iterable[int] = range(n)
    for _number in range(maps):
        items = map(increment, items)
    return reduce(operator.add, items, 0)


@MAPS.contestant("chained generators")
def generated_maps(n: int, _: LoopFactory, maps: int) -> int:
    def mapped(items: Iterable[int]) -> Iterator[int]:
        return (increment(item) for item in items)

    items: Iterable[int] = range(n)
    for _number in range(maps):
        items = mapped(items)
    return reduce(operator.add, items, 0)


@MAPS.contestant("async generators")
async def async_generated_maps(n: int, maps: int) -> int:
    def mapped(items: AsyncIterator[int]) -> AsyncIterator[int]:
        return (increment(item) async for item in items)

    items = numbers(n)
    for _ in range(maps):
        items = mapped(items)
    total = 0
    async for item in items:
        total = operator.add(total, item)
    return total


@MAPS.contestant("aiostream", needs="aiostream")
async def aiostream_maps(n: int, maps: int) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    chain = stream.iterate(range(n))
    for _ in range(maps):
        chain |= pipe.map(increment)
    total: int = await (chain | pipe.reduce(operator.add, 0))
    return total


@MAPS.contestant("reactivex", needs="reactivex")
async def reactivex_maps(n: int, maps: int) -> int:
    operators = peer("reactivex.operators")
    chain = [operators.map(increment)] * maps
    source = peer("reactivex").from_iterable(range(n))
    total: int = await source.pipe(*chain, operators.reduce(operator.add, 0))
    return total


@MAPS.contestant("streamable", needs="streamable")
def streamable_maps(n: int, _: LoopFactory, maps: int) -> int:
    chain = peer("streamable").stream(range(n))
    for _number in range(maps):
        chain = chain.map(increment)
    return reduce(operator.add, chain, 0)
