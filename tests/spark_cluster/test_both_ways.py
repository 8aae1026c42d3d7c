"""Regions fed from the loop, the sink and streams work on a cluster, also if a process of it is killed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, schedulers
from tests.spark_cluster.killing import deadly
from tests.spark_cluster.profile import MARKS

pytest.importorskip("pyspark")

from reactive_aio.spark.sink import Committed, Files
from reactive_aio.spark.streaming import feed

pytestmark = [*MARKS, pytest.mark.usefixtures("nothing_left")]

NOW = {"availableNow": True}


@attrs.frozen
class Reading:
    id: int
    name: str


def reading(n: int) -> Reading:
    return Reading(n, f"r{n}")


# -- regions fed from the loop


async def test_elements_go_through_the_executors_and_back_in_order(spark: Any) -> None:
    flow = Flow.range(5_000).publish_on(schedulers.spark(spark, 2), prefetch=512).map(lambda n: n * n)

    assert [n * n for n in range(5_000)] == await flow.to_list()


@pytest.mark.parametrize("executor", [False, True], ids=["worker", "executor"])
async def test_whoever_is_killed_every_result_comes_once_and_in_order(
    spark: Any, tmp_path: Path, executor: bool
) -> None:
    dying = deadly(tmp_path / "killed", lambda n: n == 1_234, executor=executor)
    flow = Flow.range(5_000).publish_on(schedulers.spark(spark, 2), prefetch=64).map(dying)

    assert [*range(5_000)] == await flow.to_list()
    assert (tmp_path / "killed").exists()


# -- the sink


async def test_a_flow_is_written_and_a_run_that_is_repeated_doubles_nothing(spark: Any, tmp_path: Path) -> None:
    for _ in range(2):
        done = await Flow.range(50).map(reading).to_spark(Files(spark, tmp_path / "out", run="a"), Reading, size=20)
        assert Committed("a", batches=3, rows=50) == done

    assert [*range(50)] == sorted(row.id for row in spark.read.parquet(str(tmp_path / "out")).collect())


# -- streams


async def test_micro_batches_whose_rows_go_through_a_killed_executor(spark: Any, tmp_path: Path) -> None:
    for part in range(3):
        spark.range(10 * part, 10 * part + 10).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    dying = deadly(tmp_path / "killed", lambda n: n == 15, executor=True)
    found: list[int] = []

    async def take(batch: Any) -> None:
        async with batch as rows:
            found.extend(await rows.map(lambda row: row[0]).map(dying).to_list())

    flow = Flow.from_spark(frame, as_=tuple, checkpoint=tmp_path / "checkpoint", trigger=NOW)
    await flow.for_each(take)

    assert (tmp_path / "killed").exists()
    assert [*range(30)] == sorted(found)


async def test_a_flow_read_as_a_stream_by_the_executors(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with feed(Flow.range(1_000).map(reading), spark, Reading, batch=300, partitions=2) as own:
        frame = await own.frame()
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(**NOW)
        query = await asyncio.to_thread(writer.format("parquet").start, str(out))
        await asyncio.to_thread(query.awaitTermination)

    assert [*range(1_000)] == sorted(row.id for row in spark.read.parquet(str(out)).collect())
