"""A service on Spark that is stopped finishes the elements that have arrived, and ends the job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from tests.spark.jobs import active_jobs

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

MANY = 10**7


async def test_a_flow_from_spark_that_is_stopped_ends_and_leaves_no_job(sc: Any) -> None:
    taken, stop = list[int](), asyncio.Event()

    async def work(n: int) -> None:
        taken.append(n)
        if len(taken) == 3:
            stop.set()

    await Flow.from_spark(sc.parallelize(range(MANY), 2)).map(abs).for_each(work, stop=stop)

    assert list(range(len(taken))) == taken
    assert 3 <= len(taken) < MANY
    assert not active_jobs(sc)


async def test_what_has_come_from_spark_is_finished_behind_a_boundary(sc: Any) -> None:
    come, taken, stop = list[int](), list[list[int]](), asyncio.Event()

    def note(n: int) -> int:
        come.append(n)
        if n == 100:
            stop.set()
        return n

    flow = Flow.from_spark(sc.parallelize(range(MANY), 2)).map(abs).publish_on(schedulers.current(), prefetch=16)
    await flow.map(note).buffer(MANY).for_each(taken.append, stop=stop)

    assert [come] == taken
    assert 100 < len(come) < MANY
    assert not active_jobs(sc)
