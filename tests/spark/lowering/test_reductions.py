"""Reductions in parts, one for each partition: what they give is what the event loop's engine gives."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactive_aio import EmptyFlowError, Flow, LimitExceededError

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

End = Callable[[Flow[Any]], Awaitable[Any]]


async def only(flow: Flow[int]) -> int | str | None:
    """The only element that is 50, or that there are more."""
    try:
        return await flow.filter(lambda n: n == 50).single(default=None)
    except LimitExceededError:
        return "more than one"


async def joined(flow: Flow[Any]) -> str | None:
    """Reduce by what is associative and nothing else; of no elements there is nothing."""
    try:
        return await flow.map(str).reduce(operator.add, combine=operator.add)
    except EmptyFlowError:
        return None


async def means(flow: Flow[int]) -> dict[int, float]:
    """An aggregate of groups: the sum and the count for each key travel, and no element."""
    folded = flow.reduce_by_key(
        lambda n: n % 3, lambda so_far, n: (so_far[0] + n, so_far[1] + 1), (0, 0), combine=added_up
    )
    return {key: total / count for key, (total, count) in (await folded).items()}


def added_up(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0] + right[0], left[1] + right[1]


async def doubled(n: int) -> int:
    import asyncio

    await asyncio.sleep(0.001 * (n % 3))
    return 2 * n


async def is_even(n: int) -> bool:
    return n % 2 == 0


# All of them over one job's worth of data: a job takes longer than what it does here.
ENDS: dict[str, End] = {
    "count": Flow.count,
    "sum": Flow.sum,
    "min": lambda flow: flow.min(key=lambda n: n % 7, default=None),
    "max": lambda flow: flow.max(default=None),
    "last": lambda flow: flow.last(default=None),
    "reduce": joined,
    "reduce, from a start": lambda flow: flow.reduce(lambda text, n: f"{text},{n}", "", combine=operator.add),
    "to_set": Flow.to_set,
    "to_dict": lambda flow: flow.to_dict(lambda n: n % 5, value=str),
    "all": lambda flow: flow.all(lambda n: n > -40),
    "any": lambda flow: flow.any(lambda n: n > 40),
    "contains": lambda flow: flow.contains(3),
    "is_empty": lambda flow: flow.filter(lambda n: n > 30).is_empty(),
    "top_k": lambda flow: flow.top_k(3, key=lambda n: n % 9),
    "to_sorted_list": lambda flow: flow.to_sorted_list(key=lambda n: n % 9, reverse=True),
    "count_by_key": lambda flow: flow.count_by_key(lambda n: n % 3),
    "reduce_by_key": lambda flow: flow.reduce_by_key(bool, lambda text, n: f"{text},{n}", "", combine=operator.add),
    "means_by_key": means,
    "flat_map_iterable": lambda flow: flow.flat_map_iterable(lambda n: range(n % 4)).filter(bool).to_list(),
    "single": only,
    "drain": Flow.drain,
    "first": lambda flow: flow.first(default=None),
    "element_at": lambda flow: flow.element_at(5, default=None),
    "collect": lambda flow: flow.collect(Counter, lambda all_, n: all_.update([n % 3]), combine=Counter.update),
    "distinct": lambda flow: flow.map(lambda n: n % 11).distinct(max_keys=100).to_list(),
    "take": lambda flow: flow.take(7).to_list(),
    "take_last": lambda flow: flow.take_last(7).to_list(),
    "take_while": lambda flow: flow.take_while(lambda n: n < 45).to_list(),
    "take_until": lambda flow: flow.take_until(lambda n: n > 45).to_list(),
    "slice": lambda flow: flow[2:20:3].to_list(),
    "sort_by": lambda flow: flow.sort_by(lambda n: n % 9, reverse=True).map(str).to_list(),
    "sort_by_pairs": lambda flow: flow.index().map(lambda pair: (pair[1] % 4, pair[0])).sort_by().to_list(),
    "map_batches": lambda flow: flow.map_batches(lambda items: [n + 1 for n in items], size=3).to_list(),
    "sample_fraction": lambda flow: flow.sample_fraction(0.5, seed=7).to_list(),
    "map_async": lambda flow: flow.map_async(doubled, max_concurrency=3).to_list(),
    "filter_when": lambda flow: flow.filter_when(is_even, max_concurrency=3).map(str).to_list(),
}
PARTS = st.lists(st.lists(st.integers(-50, 50), max_size=12), max_size=5)


def in_partitions(sc: Any, parts: list[list[Any]]) -> Any:
    """An RDD of these partitions."""
    return sc.parallelize(parts, len(parts)).flatMap(lambda part: part) if parts else sc.emptyRDD()


@pytest.mark.parametrize("name", ENDS)
@given(parts=PARTS)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_as_on_the_event_loop(sc: Any, name: str, parts: list[list[int]]) -> None:
    end = ENDS[name]
    local = Flow.from_iterable([n for part in parts for n in part])

    assert local.run_sync(end) == Flow.from_spark(in_partitions(sc, parts)).run_sync(end)


COMBINED: dict[str, Callable[[Flow[int], Flow[int]], Flow[int]]] = {
    "concat": lambda flow, other: flow.concat(other.map(operator.neg)),
    "repeat": lambda flow, _: flow.repeat(2),
}


@pytest.mark.parametrize("name", COMBINED)
@given(parts=PARTS, others=PARTS)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_flows_of_partitions_put_together_are_parts_as_well(
    sc: Any, name: str, parts: list[list[int]], others: list[list[int]]
) -> None:
    local = [Flow.from_iterable([n for part in each for n in part]) for each in (parts, others)]
    lowered = [Flow.from_spark(in_partitions(sc, each)) for each in (parts, others)]

    for end in (
        lambda flow: flow.map(lambda n: n + 1).to_list(),
        lambda flow: flow.take_while(lambda n: n < 40).count(),
    ):
        assert COMBINED[name](*local).run_sync(end) == COMBINED[name](*lowered).run_sync(end)
