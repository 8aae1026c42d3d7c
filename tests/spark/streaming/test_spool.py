"""The spool between a service and Spark: files that a flow writes and a stream reads. Either side may be restarted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow

pytest.importorskip("pyspark")

from reactive_aio.spark.sink import Committed, Files
from reactive_aio.spark.streaming import MicroBatch

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("nothing_left")]


async def test_what_has_been_read_of_it_is_deleted_and_its_run_goes_on_behind(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    spool = Files(spark, tmp_path / "spool", run="a")
    reader = spark.readStream.schema("n long").options(maxFilesPerTrigger="1", cleanSource="delete")
    found: list[int] = []

    async def take(batch: MicroBatch[Any]) -> None:
        async with batch as rows:
            found.extend(row[0] for row in await rows.to_list())

    async def read() -> None:
        stream = await asyncio.to_thread(reader.parquet, spool.path)
        flow = Flow.from_spark(stream, as_=tuple, checkpoint=checkpoint, trigger={"availableNow": True})
        await flow.for_each(take)

    await Flow.range(2).to_spark(spool, "n long", size=1)
    half = tmp_path / "spool" / "_writing-a-00000002"
    half.mkdir()
    (half / "part-0.parquet").write_bytes(b"PAR1, and no more")
    await read()
    assert [0, 1] == sorted(found)
    async with asyncio.timeout(120):
        while len([*tmp_path.glob("spool/batch=*/*.parquet")]) > 1:  # of the last one Spark can't be sure yet
            await asyncio.sleep(0.01)

    assert Committed("a", batches=3, rows=3) == await Flow.range(3).to_spark(spool, "n long", size=1)
    await read()
    assert [0, 1, 2] == sorted(found)
