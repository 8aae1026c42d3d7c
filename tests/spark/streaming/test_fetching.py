"""A feed answers the reader of a query, which here is on a thread of the test."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from reactive_aio import Flow, SparkJobError

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadMaxRows

from reactive_aio.spark.streaming import feed
from reactive_aio.spark.streaming._arrow import in_arrow
from reactive_aio.spark.streaming._datasource import FlowReader, Rows

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("nothing_left")]

N = 20_000
T = TypeVar("T")


def rows(reader: FlowReader, start: int, end: int) -> list[int]:
    return [row["n"] for batch in reader.read(Rows(start, end)) for row in batch.to_pylist()]


async def asked(reader: FlowReader, question: Callable[..., T], *given: Any) -> T:
    """Ask as the process of a query does, which hangs up in the end."""
    try:
        return await asyncio.to_thread(question, *given)
    finally:
        reader.stop()


async def test_the_loop_neither_puts_many_rows_together_nor_copies_them_at_once(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    sizes: list[int] = []
    write = asyncio.StreamWriter.write

    def noted(batches: Any) -> memoryview:
        threads.append(threading.get_ident())
        return in_arrow(batches)

    def measured(writer: asyncio.StreamWriter, data: Any) -> None:
        sizes.append(len(data))
        write(writer, data)

    module = sys.modules["reactive_aio.spark.streaming._feed"]
    monkeypatch.setattr(module, "in_arrow", noted)
    monkeypatch.setattr(module, "SENT", 4096)
    monkeypatch.setattr(asyncio.StreamWriter, "write", measured)
    async with feed(Flow.range(N), spark, "n long", ahead=N, batch=N) as own:
        reader = FlowReader(own.options)
        end = await asked(reader, reader.latestOffset, {"feed": own.options["feed"], "offset": 0}, ReadMaxRows(N))
        assert 0 < end["offset"] <= N
        assert [*range(N)] == await asked(reader, rows, reader, 0, N)

    assert threads
    assert threading.get_ident() not in threads
    assert sum(sizes) > 8 * N
    assert max(sizes) <= 4096


async def test_the_checkpoint_of_another_source_is_refused(spark: Any) -> None:
    async with feed(Flow.range(3), spark, "n long") as own:
        reader = FlowReader(own.options)
        with pytest.raises(SparkJobError, match=r"belongs to another source.*another checkpoint for this query"):
            await asked(reader, reader.latestOffset, {"logOffset": 0}, ReadMaxRows(3))


async def test_rows_that_another_query_has_had_are_refused(spark: Any) -> None:
    async with feed(Flow.range(3), spark, "n long") as own:
        reader = FlowReader(own.options)
        start = {"feed": own.options["feed"], "offset": 0}
        end = await asyncio.to_thread(reader.latestOffset, start, ReadMaxRows(2))
        await asked(reader, reader.commit, end)
        other = FlowReader(own.options)
        with pytest.raises(SparkJobError, match=r"are committed and gone\. Use a feed for one query"):
            await asked(other, rows, other, 0, 1)


async def test_a_new_query_does_not_begin_behind_what_another_query_has_had(spark: Any) -> None:
    async with feed(Flow.range(3), spark, "n long") as own:
        reader, other, late = FlowReader(own.options), FlowReader(own.options), FlowReader(own.options)
        start = await asyncio.to_thread(reader.initialOffset)
        end = await asyncio.to_thread(reader.latestOffset, start, ReadMaxRows(2))
        assert 0 == (await asked(other, other.initialOffset))["offset"]  # nothing is gone
        await asked(reader, reader.commit, end)
        with pytest.raises(SparkJobError, match=r"rows from 0, .* are committed and gone\. Use a feed for one query"):
            await asked(late, late.initialOffset)


def _no_flow(_: int) -> Any:
    return [1, 2]


def _lost(offset: int) -> Flow[int]:
    raise KeyError(offset)


@pytest.mark.parametrize(
    ("begin", "told", "error"),
    [
        (_no_flow, r"could not begin at row 5: TypeError: .* must return a flow, but returned list", TypeError),
        (_lost, r"could not begin at row 5: KeyError: 5", KeyError),
    ],
)
async def test_a_function_that_gives_no_flow_is_named_to_the_query_and_the_feed_keeps_its_error(
    spark: Any, begin: Callable[[int], Flow[int]], told: str, error: type[Exception]
) -> None:
    async with feed(begin, spark, "n long", name="numbers") as own:
        reader = FlowReader(own.options)
        with pytest.raises(SparkJobError, match=told):
            await asked(reader, reader.latestOffset, {"feed": "numbers", "offset": 5}, ReadMaxRows(3))
        assert error is type(own.error)
