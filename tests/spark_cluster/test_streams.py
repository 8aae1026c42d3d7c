"""Streams both ways, on a cluster, while those are killed who read and write them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow
from tests.spark_cluster.killing import deadly
from tests.spark_cluster.profile import HOSTS, MARKS

pytest.importorskip("pyspark")

from reactive_aio.spark.streaming import Consumable, feed, inbox

pytestmark = [*MARKS, pytest.mark.usefixtures("nothing_left")]

NOW = {"availableNow": True}
KILLED = pytest.mark.parametrize("executor", [False, True], ids=["worker", "executor"])


async def taken(flow: Flow[Any]) -> list[list[int]]:
    """Consume all; the rows of each micro-batch."""
    found: list[list[int]] = []

    async def take(batch: Consumable[Any]) -> None:
        async with batch as rows:
            found.append(sorted(row[0] for row in await rows.to_list()))

    await flow.for_each(take)
    return found


@KILLED
async def test_rows_that_tasks_write_to_an_inbox(spark: Any, tmp_path: Path, executor: bool) -> None:
    from pyspark.sql.functions import udf

    for part in range(3):
        frame = spark.range(10 * part, 10 * part + 10).coalesce(1)
        await asyncio.to_thread(frame.write.mode("append").parquet, str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    dying = udf(deadly(tmp_path / "killed", lambda n: n == 15, executor=executor), "long", useArrow=False)

    async with inbox(tuple, host="driver" if HOSTS else "localhost") as own:
        await own.start(stream.select(dying("id").alias("id")), checkpoint=tmp_path / "checkpoint", trigger=NOW)
        found = await taken(own.batches)

    assert (tmp_path / "killed").exists()
    assert [[*range(at, at + 10)] for at in (0, 10, 20)] == sorted(found)


@KILLED
async def test_rows_that_tasks_read_from_a_feed(spark: Any, tmp_path: Path, executor: bool) -> None:
    from pyspark.sql.functions import udf

    dying = udf(deadly(tmp_path / "killed", lambda n: n == 450, executor=executor), "long", useArrow=False)
    async with feed(Flow.range(1_000), spark, "n long", batch=300, partitions=2) as own:
        frame = (await own.frame()).select(dying("n").alias("n"))
        found = await taken(Flow.from_spark(frame, as_=tuple, checkpoint=tmp_path / "checkpoint", trigger=NOW))

    assert (tmp_path / "killed").exists()
    assert [*range(1_000)] == [n for batch in found for n in batch]
