"""Batches that are written when their time is up, so that what a slow flow gives can be seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactive_aio import Flow

pytest.importorskip("pyspark")

from reactive_aio.spark.sink import Committed, Frames

pytestmark = pytest.mark.spark


async def test_a_batch_that_is_not_full_is_written_when_its_time_is_up(spark: Any) -> None:
    """The source goes on only when what it has given has been written."""
    loop, written = asyncio.get_running_loop(), asyncio.Event()
    batches: list[int] = []

    async def slow() -> AsyncIterator[int]:
        for n in range(3):
            yield n
            await written.wait()
            written.clear()

    def write(frame: Any, batch: int) -> None:
        batches.append(batch)
        loop.call_soon_threadsafe(written.set)

    async with asyncio.timeout(60):
        done = await Flow.from_async_iterable(slow()).to_spark(
            Frames(spark, write, run="a"), "n long", size=100, seconds=0.001
        )

    assert Committed("a", batches=3, rows=3) == done
    assert [0, 1, 2] == batches


async def test_a_batch_that_is_full_waits_for_no_time(spark: Any) -> None:
    done = await Flow.range(5).to_spark(Frames(spark, lambda *_: None, run="a"), "n long", size=2, seconds=1e6)

    assert Committed("a", batches=3, rows=5) == done


@pytest.mark.parametrize(("seconds", "error"), [(0, ValueError), (float("inf"), ValueError), ("1", TypeError)])
async def test_what_is_no_span_of_time_is_refused_before_the_flow_begins(
    spark: Any, seconds: Any, error: type[Exception]
) -> None:
    begun: list[int] = []

    with pytest.raises(error, match=r"to_spark\(seconds="):
        await Flow.range(1).do_on_next(begun.append).to_spark(Frames(spark, print), "n long", seconds=seconds)

    assert not begun
