"""Shared flows of Spark's data: one job for all who subscribe meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow, Hub, State, UnsupportedOnSparkError, schedulers
from tests.spark.jobs import jobs_begun
from tests.spark.tally import Tally

pytestmark = pytest.mark.spark


async def test_all_subscribers_have_one_job(sc: Any, tally: Tally) -> None:
    doubled = Flow.from_spark(sc.parallelize(range(100), 1)).map(tally.counting(lambda n: 2 * n))
    shared = doubled.share(start=3)
    before = jobs_begun(sc)
    results = await asyncio.gather(shared.sum(), shared.filter(lambda n: n < 10).to_list(), shared.count())

    assert [9900, [0, 2, 4, 6, 8], 100] == results
    assert (1, 100) == (jobs_begun(sc) - before, tally.count)


async def test_one_who_comes_behind_the_end_has_a_job_of_its_own_unless_it_is_a_cache(sc: Any) -> None:
    numbers = Flow.from_spark(sc.parallelize(range(10), 1))
    before = jobs_begun(sc)
    again, cache = numbers.share(), numbers.share(replay=10, restart="never")
    for shared, jobs in ((again, 2), (cache, 3)):
        assert [45, 45] == [await shared.sum(), await shared.sum()]
        assert jobs == jobs_begun(sc) - before


def capturing(held: object) -> Callable[[int], object]:
    return lambda n: (n, held)


def test_what_stays_in_this_process_is_told_as_such(spark: Any, sc: Any) -> None:
    hub: Hub[int] = Hub(idle="drop")
    places = [Flow.from_spark(sc.parallelize([1])), Flow.range(3).publish_on(schedulers.spark(spark, 1))]
    for words, held in (("a shared flow", Flow.of(1).share().map(str)), ("a hub", hub.flow), ("a State", State(1))):
        for place in places:
            with pytest.raises(UnsupportedOnSparkError, match=rf"can't be sent to Spark's workers: {words} can't be"):
                place.map(capturing(held))
