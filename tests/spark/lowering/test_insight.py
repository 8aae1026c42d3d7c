"""A region on Spark is visible: in the plan before it runs, and in snapshots while it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, RegionSnapshot, Snapshot, schedulers
from reactive_aio._cli import words
from reactive_aio._plan import TasksSnapshot
from tests.spark.waiting import LIMIT

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

TCP = "pickled chunks over TCP to this process; where workers can't connect to it, wire='results'"
SLICES = f"Arrow into the workers and in slices, to be made rows here, {TCP.removeprefix('pickled chunks ')}"


def told(flow: Flow[Any]) -> list[str]:
    return flow.describe().splitlines()[3:]


def test_a_plan_tells_of_partitions_their_order_the_wire_and_the_ui(spark: Any, sc: Any) -> None:
    rdd, frame = sc.parallelize(range(9), 4), spark.range(9)

    assert [
        "R1  4 partitions, one after the other, up to 3 ahead",
        f"R1  {TCP}",
        "R1  the Spark UI is off",
    ] == told(Flow.from_spark(rdd).map(str))
    assert "R1  1 partition, side by side" == told(Flow.from_spark(sc.parallelize([1], 1), ordered=False))[0]
    assert "R1  4 partitions, side by side, combined in order" == told(Flow.from_spark(rdd).take_last(2))[0]
    assert [
        "R1  partitions as Spark plans them, one after the other, up to 3 ahead",
        f"R1  {SLICES}",
    ] == told(Flow.from_spark(frame))[:2]
    assert f"R1  Arrow into the workers, {TCP}" == told(Flow.from_spark(frame).map(str))[1]
    assert f"R1  Arrow into the workers, {TCP}" == told(Flow.from_spark(frame).sort_by(max_size=10**9))[1]
    for shuffled in (Flow.from_spark(frame), Flow.from_spark(rdd)):
        assert f"R1  Arrow into the workers, {TCP}" == told(shuffled.group_by_key(hash).count())[1]


def test_the_line_has_the_details_as_well(sc: Any) -> None:
    assert f"R1  {TCP}" in Flow.from_spark(sc.parallelize([1], 1)).describe("line").splitlines()


def test_a_plan_links_to_the_ui(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(sc), "uiWebUrl", "http://driver:4040")

    assert "R1  Spark UI http://driver:4040" == told(Flow.from_spark(sc.parallelize([1], 1)))[-1]


def test_a_plan_tells_of_each_region_on_spark_under_its_number(spark: Any, sc: Any) -> None:
    there = schedulers.spark(spark, 2, idle=0.5)
    flow = Flow.from_spark(sc.parallelize([1], 1)).take(1).publish_on(there).map(str)

    assert [
        "R1  1 partition, one after the other, up to 3 ahead",
        f"R1  {TCP}",
        "R1  the Spark UI is off",
        "R3  a task for each chunk that waits, up to 2, which ends after 0.5 s without work",
        "R3  pickled chunks over TCP to this process and back",
        "R3  the Spark UI is off",
    ] == [line for line in flow.describe().splitlines() if line.startswith(("R1  ", "R3  "))][2:]


def test_a_plan_of_a_stream_tells_how_its_rows_travel(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load()

    assert [
        "R1  Arrow into the workers, chunks over TCP to this process, when the rows of a batch are asked for",
        "R1  the Spark UI is off",
    ] == told(Flow.from_spark(stream, checkpoint=tmp_path / "kept"))


def test_a_plan_is_shown_though_the_data_can_not_be_looked_at(sc: Any, tmp_path: Path) -> None:
    rdd = sc.textFile(str(tmp_path / "not there"))

    assert told(Flow.from_spark(rdd))[0].startswith("R1  partitions not known")


async def test_a_snapshot_counts_the_tasks(sc: Any, tmp_path: Path) -> None:
    """One partition is held up; the one that runs ahead of it, on the third slot but one, gets done."""
    gate = str(tmp_path / "gate")

    def held(n: int) -> int:
        import os
        import time

        while n == 2 and not os.path.exists(gate):
            time.sleep(0.01)
        return n

    async with Flow.from_spark(sc.parallelize(range(4), 4)).map(held).open() as items:
        assert [0, 1] == [await anext(items), await anext(items)]
        async with asyncio.timeout(LIMIT):
            while (found := items.snapshot().regions[0].tasks) != TasksSnapshot(total=4, running=1, done=3):
                assert found is not None
                await asyncio.sleep(0.01)
        assert [(3, 4)] == [(job.done, job.total) for job in words.jobs(items.snapshot(), 1)]
        Path(gate).touch()
        assert [2, 3] == [item async for item in items]

        assert TasksSnapshot(4, 0, 4) == items.snapshot().regions[0].tasks


def test_nobody_knows_how_much_is_to_come_where_no_task_is_known() -> None:
    assert [] == words.jobs(Snapshot(()), 1)
    assert [] == words.jobs(of_tasks(TasksSnapshot(0, 0, 0)), 1)
    assert [(1, 3)] == [(job.done, job.total) for job in words.jobs(of_tasks(TasksSnapshot(3, 1, 1)), 1)]


def of_tasks(tasks: TasksSnapshot) -> Snapshot:
    return Snapshot((RegionSnapshot("a cluster", 0, tasks=tasks),))
