"""A region on Spark, its elements brought to the event loop, against the same functions in a hand-written job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from reactive_aio import Flow
from reactive_aio.spark.session import local_session

from .harness import Bar, Contestant, Row

if TYPE_CHECKING:
    from pyspark import RDD


@cache
def numbers(n: int, partitions: int) -> RDD[int]:
    return local_session("benchmarks").sparkContext.range(0, n, numSlices=partitions)


def rows(n: int) -> list[Row]:
    """Map, filter, map in the workers; half of the elements come back, in order, and are counted.

    The bar is on one partition, where both sides use one core, so that it compares elements. With four the
    hand-written job computes two at a time and collects everything, which a stream in order under bounded demand
    can't; that row is for orientation.
    """
    one = Bar("mapPartitions of the chain, collect", at_most=1.3)
    return [_row(3 * n, 1, (one,)), _row(3 * n, 4, ())]


def _row(n: int, partitions: int, bars: tuple[Bar, ...]) -> Row:
    # Defined in here, so that they travel to the workers by value.
    def increment(x: int) -> int:
        return x + 1

    def even(x: int) -> bool:
        return x % 2 == 0

    def triple(x: int) -> int:
        return 3 * x

    def chain(items: Iterable[int]) -> Iterator[int]:
        return map(triple, filter(even, map(increment, items)))

    def loop(items: Iterable[int]) -> Iterator[int]:
        for x in items:
            y = x + 1
            if y % 2 == 0:
                yield 3 * y

    def ours() -> int:
        async def main() -> int:
            return await Flow.from_spark(numbers(n, partitions)).map(increment).filter(even).map(triple).count()

        return asyncio.run(main())

    def chained_by_hand() -> int:
        return len(numbers(n, partitions).mapPartitions(chain).collect())

    def looped_by_hand() -> int:
        return len(numbers(n, partitions).mapPartitions(loop).collect())

    def iterated() -> int:
        return sum(1 for _ in numbers(n, partitions).mapPartitions(chain).toLocalIterator(prefetchPartitions=True))

    return Row(
        f"region on Spark, in order to the loop, partitions: {partitions}",
        n,
        (
            Contestant("reactive_aio", ours),
            Contestant("mapPartitions of the chain, collect", chained_by_hand),
            Contestant("mapPartitions of a loop, collect", looped_by_hand),
            Contestant("mapPartitions, toLocalIterator", iterated),
        ),
        bars,
        rounds=5,
    )
