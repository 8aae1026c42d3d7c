"""Two flows paired element by element, against a loop over two async generators and the zips of other libraries."""

from __future__ import annotations

from collections.abc import AsyncIterator

from reactive_aio import Flow

from .harness import Bar, Row
from .workload import Field, Workload, peer

BY_HAND = "pair loop by hand"

FIELD = Field()
READY = Workload(title="zip of 2", by=FIELD, bars=(Bar(BY_HAND, at_most=2),), limit=BY_HAND)
ONE_BY_ONE = Workload(
    title="zip of 2 async generators",
    by=FIELD,
    given={"generated": True},
    only=("reactive_aio", BY_HAND, "asyncstdlib", "aioitertools", "aiostream"),
    rounds=3,
    bars=READY.bars,
    limit=BY_HAND,
)


def rows(n: int) -> list[Row]:
    """With sources that are ready, each library's own kind; with async generators, which give one element at a time."""
    return READY.rows(n) + ONE_BY_ONE.rows(n)


async def numbers(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


@FIELD.contestant("reactive_aio")
async def ours(n: int, *, generated: bool = False) -> int:
    def source() -> Flow[int]:
        return Flow.from_async_iterable(numbers(n)) if generated else Flow.range(n)

    return await source().zip(source()).count()


@FIELD.contestant(BY_HAND)
async def pairs_by_hand(n: int, *, generated: bool = False) -> int:
    left, right, count = numbers(n), numbers(n), 0
    while True:
        try:
            pair = (await anext(left), await anext(right))
        except StopAsyncIteration:
            break
        count += len(pair) - 1
    return count


@FIELD.contestant("asyncstdlib", needs="asyncstdlib")
async def asyncstdlib(n: int, *, generated: bool = False) -> int:
    return len([None async for _ in peer("asyncstdlib").zip(numbers(n), numbers(n))])


@FIELD.contestant("aioitertools", needs="aioitertools")
async def aioitertools(n: int, *, generated: bool = False) -> int:
    return len([None async for _ in peer("aioitertools").zip(numbers(n), numbers(n))])


@FIELD.contestant("aiostream", needs="aiostream")
async def aiostream(n: int, *, generated: bool = False) -> int:
    zipped = peer("aiostream.stream").zip(numbers(n), numbers(n))
    async with zipped.stream() as pairs:
        return len([None async for _ in pairs])


@FIELD.contestant("reactivex", needs="reactivex", note="without demand")
async def reactivex(n: int, *, generated: bool = False) -> int:
    operators, of = peer("reactivex.operators"), peer("reactivex").from_iterable
    counts: list[int] = []
    of(range(n)).pipe(operators.zip(of(range(n))), operators.count()).subscribe(counts.append)
    return counts[0]
