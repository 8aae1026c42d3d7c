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

SLICES = 4


@cache
def numbers(n: int) -> RDD[int]:
    context = local_session("benchmarks").sparkContext
    return context.range(0, n, numSlices=SLICES)


def rows(n: int) -> list[Row]:
    """Map, filter, map in the workers; half of the elements come back, in order, and are counted."""

    def ours() -> int:
        async def main() -> int:
            flow = Flow.from_spark(numbers(n)).map(lambda x: x + 1).filter(lambda x: x % 2 == 0).map(lambda x: 3 * x)
            return await flow.count()

        return asyncio.run(main())

    def by_hand() -> int:
        def fused(items: Iterable[int]) -> Iterator[int]:
            for x in items:
                y = x + 1
                if y % 2 == 0:
                    yield 3 * y

        return len(numbers(n).mapPartitions(fused).collect())

    def chained_by_hand() -> int:
        def chain(items: Iterable[int]) -> Iterator[int]:
            return map(lambda x: 3 * x, filter(lambda x: x % 2 == 0, map(lambda x: x + 1, items)))

        return len(numbers(n).mapPartitions(chain).collect())

    def iterated() -> int:
        def chain(items: Iterable[int]) -> Iterator[int]:
            return map(lambda x: 3 * x, filter(lambda x: x % 2 == 0, map(lambda x: x + 1, items)))

        return sum(1 for _ in numbers(n).mapPartitions(chain).toLocalIterator(prefetchPartitions=True))

    return [
        Row(
            "region on Spark, in order to the loop",
            n,
            (
                Contestant("reactive_aio", ours),
                Contestant("mapPartitions of the chain, collect", chained_by_hand),
                Contestant("mapPartitions of a loop, collect", by_hand),
                Contestant("mapPartitions, toLocalIterator", iterated),
            ),
            (Bar("mapPartitions of the chain, collect", at_most=1.3),),
            rounds=5,
        )
    ]
