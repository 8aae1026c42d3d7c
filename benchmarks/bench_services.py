"""Streams of services: one awaited source, ready or suspended for each element, and a socket's lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from attrs import evolve

from reactive_aio import Flow

from . import by_hand_services as by_hand
from .by_hand_services import behind_futures, even, increment, increment_later, ready, suspended
from .harness import Bar, Row
from .workload import Field, Workload, peer

BY_HAND = "async for"
GENERATOR = "async generator"

Source = Callable[[int], AsyncGenerator[int]]

SUM = Field()
CHAIN = Field()
TAKE = Field()
FOR_EACH = Field()
FOR_EACH_ASYNC = Field()
ASYNC_FOR = Field()
RANGE = Field()
LINES_SUMMED = Field()
LINES_READ = Field()


def rows(n: int) -> list[Row]:
    """Ready sources, then suspended ones, then lines."""
    found: list[Row] = []
    for workload in (*_ready(), *_suspended(), *_lines()):
        found += workload.rows(n)
    return found


def _ready() -> list[Workload]:
    summed = Workload(
        title="ready async generator: sum",
        by=SUM,
        given={"source": ready},
        expect=_summed,
        bars=(Bar(BY_HAND, at_most=2.0),),
        limit=BY_HAND,
        loops=("asyncio",),
    )
    chained = evolve(summed, title="ready async generator: map, filter, sum", by=CHAIN, expect=_chained)
    handed = evolve(summed, title="ready async generator: for_each(f)", by=FOR_EACH)
    awaited = evolve(
        summed,
        title="ready async generator: for_each(async f)",
        by=FOR_EACH_ASYNC,
        expect=_summed_from_1,
        bars=(Bar(BY_HAND, at_most=6.0),),
    )
    read = evolve(summed, title="ready async generator: async for", by=ASYNC_FOR, bars=(Bar(BY_HAND, at_most=10.0),))
    numbers = evolve(
        summed,
        title="async for over a range",
        by=RANGE,
        given={},
        bars=(Bar(GENERATOR, at_most=2.5),),
        limit=GENERATOR,
    )
    return [summed, chained, handed, awaited, read, numbers]


def _suspended() -> list[Workload]:
    chained = Workload(
        title="suspended async generator: map, filter, sum",
        by=CHAIN,
        given={"source": suspended},
        expect=_chained,
        bars=(Bar(BY_HAND, at_most=1.3),),
        limit=BY_HAND,
        loops=("asyncio",),
        share=0.1,
    )
    taken = evolve(
        chained,
        title="suspended async generator without end: map, filter, take, sum",
        by=TAKE,
        given={},
        expect=_taken,
        bars=(Bar(BY_HAND, at_most=1.5),),
    )
    read = evolve(
        chained,
        title="suspended async generator: async for",
        by=ASYNC_FOR,
        expect=_summed,
        bars=(Bar(BY_HAND, at_most=3.0),),
    )
    waiting = evolve(
        read, title="async generator that awaits a future for each: async for", given={"source": behind_futures}
    )
    return [chained, taken, read, waiting]


def _lines() -> list[Workload]:
    summed = Workload(
        title=f"lines of a socket, {by_hand.LINES} at a time: sum of their lengths",
        by=LINES_SUMMED,
        expect=_lengths,
        bars=(Bar(BY_HAND, at_most=1.3),),
        limit=BY_HAND,
        loops=("asyncio",),
        share=0.1,
    )
    read = evolve(
        summed,
        title=f"lines of a socket, {by_hand.LINES} at a time: async for",
        by=LINES_READ,
        expect=_same,
        bars=(Bar(BY_HAND, at_most=3.0),),
    )
    return [summed, read]


def _same(n: int) -> int:
    return n


def _summed(n: int) -> int:
    return n * (n - 1) // 2


def _summed_from_1(n: int) -> int:
    return n * (n + 1) // 2


def _chained(n: int) -> int:
    return sum(filter(even, range(1, n + 1)))


def _taken(n: int) -> int:
    return _chained(n // 2 * 2)


def _lengths(n: int) -> int:
    return n * len(by_hand.LINE)


# --- sum -------------------------------------------------------------------------------------------------------------


@SUM.contestant("reactive_aio")
async def our_sum(n: int, source: Source) -> int:
    return await Flow.from_async_iterable(source(n)).sum()


@SUM.contestant(BY_HAND)
async def sum_by_hand(n: int, source: Source) -> int:
    return await by_hand.summed(source(n))


@SUM.contestant("asyncstdlib", needs="asyncstdlib")
async def asyncstdlib_sum(n: int, source: Source) -> int:
    total: int = await peer("asyncstdlib").sum(source(n))
    return total


@SUM.contestant("aioitertools", needs="aioitertools")
async def aioitertools_sum(n: int, source: Source) -> int:
    total: int = await peer("aioitertools").sum(source(n))
    return total


@SUM.contestant("aiostream", needs="aiostream")
async def aiostream_sum(n: int, source: Source) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    total: int = await (stream.iterate(source(n)) | pipe.reduce(_add, 0))
    return total


def _add(total: int, item: int) -> int:
    return total + item


# --- map, filter, sum ------------------------------------------------------------------------------------------------


@CHAIN.contestant("reactive_aio")
async def our_chain(n: int, source: Source) -> int:
    return await Flow.from_async_iterable(source(n)).map(increment).filter(even).sum()


@CHAIN.contestant(BY_HAND)
async def chain_by_hand(n: int, source: Source) -> int:
    return await by_hand.chained(source(n))


@CHAIN.contestant("async generator expressions")
async def chain_of_expressions(n: int, source: Source) -> int:
    incremented = (increment(item) async for item in source(n))
    return await by_hand.summed(item async for item in incremented if even(item))


@CHAIN.contestant("streamable", needs="streamable")
async def streamable_chain(n: int, source: Source) -> int:
    return await by_hand.summed(aiter(peer("streamable").stream(source(n)).map(increment).filter(even)))


@CHAIN.contestant("asyncstdlib", needs="asyncstdlib")
async def asyncstdlib_chain(n: int, source: Source) -> int:
    library = peer("asyncstdlib")
    total: int = await library.sum(library.filter(even, library.map(increment, source(n))))
    return total


@CHAIN.contestant("aiostream", needs="aiostream")
async def aiostream_chain(n: int, source: Source) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    chain = stream.iterate(source(n)) | pipe.map(increment) | pipe.filter(even) | pipe.reduce(_add, 0)
    total: int = await chain
    return total


# --- map, filter, take, sum ------------------------------------------------------------------------------------------


@TAKE.contestant("reactive_aio")
async def our_take(n: int) -> int:
    return await Flow.from_async_iterable(by_hand.endless()).map(increment).filter(even).take(n // 2).sum()


@TAKE.contestant(BY_HAND)
async def take_by_hand(n: int) -> int:
    return await by_hand.chained_until(by_hand.endless(), n // 2)


@TAKE.contestant("streamable", needs="streamable")
async def streamable_take(n: int) -> int:
    chain = peer("streamable").stream(by_hand.endless()).map(increment).filter(even).take(n // 2)
    return await by_hand.summed(aiter(chain))


@TAKE.contestant("asyncstdlib", needs="asyncstdlib")
async def asyncstdlib_take(n: int) -> int:
    library = peer("asyncstdlib")
    chain = library.filter(even, library.map(increment, by_hand.endless()))
    total: int = await library.sum(library.islice(chain, n // 2))
    return total


@TAKE.contestant("aiostream", needs="aiostream")
async def aiostream_take(n: int) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    chain = stream.iterate(by_hand.endless()) | pipe.map(increment) | pipe.filter(even) | pipe.take(n // 2)
    total: int = await (chain | pipe.reduce(_add, 0))
    return total


# --- for_each --------------------------------------------------------------------------------------------------------


class Adding:
    """Adds what it is called with to a total."""

    total = 0

    def add(self, item: int) -> None:
        """Add an element."""
        self.total += item

    async def add_later(self, item: int) -> None:
        """Add an element, by a coroutine that waits for another."""
        self.total += await increment_later(item)


@FOR_EACH.contestant("reactive_aio")
async def our_for_each(n: int, source: Source) -> int:
    adding = Adding()
    await Flow.from_async_iterable(source(n)).for_each(adding.add)
    return adding.total


@FOR_EACH.contestant(BY_HAND)
async def for_each_by_hand(n: int, source: Source) -> int:
    adding = Adding()
    await by_hand.handed(source(n), adding.add)
    return adding.total


@FOR_EACH.contestant("streamable", needs="streamable")
async def streamable_for_each(n: int, source: Source) -> int:
    adding = Adding()
    await peer("streamable").stream(source(n)).do(adding.add)
    return adding.total


@FOR_EACH_ASYNC.contestant("reactive_aio")
async def our_for_each_async(n: int, source: Source) -> int:
    adding = Adding()
    await Flow.from_async_iterable(source(n)).for_each(adding.add_later)
    return adding.total


@FOR_EACH_ASYNC.contestant(BY_HAND)
async def for_each_async_by_hand(n: int, source: Source) -> int:
    adding = Adding()
    async for item in source(n):
        await adding.add_later(item)
    return adding.total


@FOR_EACH_ASYNC.contestant("streamable", needs="streamable")
async def streamable_for_each_async(n: int, source: Source) -> int:
    adding = Adding()
    await peer("streamable").stream(source(n)).do(adding.add_later)
    return adding.total


# --- async for -------------------------------------------------------------------------------------------------------


@ASYNC_FOR.contestant("reactive_aio")
async def our_async_for(n: int, source: Source) -> int:
    return await by_hand.summed(aiter(Flow.from_async_iterable(source(n))))


@ASYNC_FOR.contestant(BY_HAND)
async def async_for_by_hand(n: int, source: Source) -> int:
    return await by_hand.summed(source(n))


@ASYNC_FOR.contestant("streamable", needs="streamable")
async def streamable_async_for(n: int, source: Source) -> int:
    return await by_hand.summed(aiter(peer("streamable").stream(source(n))))


@ASYNC_FOR.contestant("aiostream", needs="aiostream")
async def aiostream_async_for(n: int, source: Source) -> int:
    async with peer("aiostream").stream.iterate(source(n)).stream() as items:
        return await by_hand.summed(items)


@RANGE.contestant("reactive_aio")
async def our_range(n: int) -> int:
    return await by_hand.summed(aiter(Flow.range(n)))


@RANGE.contestant(GENERATOR)
async def generated_range(n: int) -> int:
    return await by_hand.summed(ready(n))


@RANGE.contestant("streamable", needs="streamable")
async def streamable_range(n: int) -> int:
    return await by_hand.summed(aiter(peer("streamable").stream(range(n))))


@RANGE.contestant("aiostream", needs="aiostream")
async def aiostream_range(n: int) -> int:
    async with peer("aiostream").stream.iterate(range(n)).stream() as items:
        return await by_hand.summed(items)


# --- lines of a socket -----------------------------------------------------------------------------------------------


@LINES_SUMMED.contestant("reactive_aio")
async def our_lines_summed(n: int) -> int:
    async with by_hand.lines(n) as reader:
        return await Flow.from_async_iterable(reader).map(len).sum()


@LINES_SUMMED.contestant(BY_HAND)
async def lines_summed_by_hand(n: int) -> int:
    total = 0
    async with by_hand.lines(n) as reader:
        async for line in reader:
            total += len(line)
    return total


@LINES_SUMMED.contestant("aiostream", needs="aiostream")
async def aiostream_lines_summed(n: int) -> int:
    stream, pipe = peer("aiostream").stream, peer("aiostream").pipe
    async with by_hand.lines(n) as reader:
        total: int = await (stream.iterate(reader) | pipe.map(len) | pipe.reduce(_add, 0))
    return total


@LINES_READ.contestant("reactive_aio")
async def our_lines(n: int) -> int:
    async with by_hand.lines(n) as reader:
        return await by_hand.counted(aiter(Flow.from_async_iterable(reader)))


@LINES_READ.contestant(BY_HAND)
async def lines_by_hand(n: int) -> int:
    async with by_hand.lines(n) as reader:
        return await by_hand.counted(aiter(reader))


@LINES_READ.contestant("aiostream", needs="aiostream")
async def aiostream_lines(n: int) -> int:
    async with by_hand.lines(n) as reader, peer("aiostream").stream.iterate(reader).stream() as items:
        return await by_hand.counted(items)
