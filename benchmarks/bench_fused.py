"""A region fused into one function, against the builtin chain written by hand."""

from __future__ import annotations

import asyncio
import operator
from functools import reduce

from reactive_aio import Flow

from .harness import Bar, Contestant, Row


def increment(n: int) -> int:
    return n + 1


def even(n: int) -> bool:
    return n % 2 == 0


def rows(n: int) -> list[Row]:
    """Map, filter, reduce; and ten maps."""

    def ours() -> int:
        return asyncio.run(Flow.range(n).map(increment).filter(even).reduce(operator.add, 0))

    def by_hand() -> int:
        return reduce(operator.add, filter(even, map(increment, range(n))), 0)

    def ten_of_ours() -> int:
        flow = Flow.range(n)
        for _ in range(10):
            flow = flow.map(increment)
        return asyncio.run(flow.reduce(operator.add, 0))

    def ten_by_hand() -> int:
        items = iter(range(n))
        for _ in range(10):
            items = map(increment, items)
        return reduce(operator.add, items, 0)

    return [
        Row(
            "fused map + filter + reduce",
            n,
            (Contestant("reactive_aio", ours), Contestant("builtin chain", by_hand)),
            (Bar("builtin chain", at_most=1.1),),
            cpu=True,
            limit="builtin chain",
        ),
        Row(
            "ten fused maps + reduce",
            n,
            (Contestant("reactive_aio", ten_of_ours), Contestant("builtin chain", ten_by_hand)),
            (Bar("builtin chain", at_most=1.1),),
            cpu=True,
            limit="builtin chain",
        ),
    ]
