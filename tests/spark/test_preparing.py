"""Snapshots of a flow on Spark before its first partition, and how long they ask Spark for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._plan import TasksSnapshot
from tests.spark.waiting import until

status = pytest.importorskip("pyspark.status")

NOTHING = TasksSnapshot(0, 0, 0, preparing=True)


def job(state: str, stages: list[int]) -> Any:
    return status.SparkJobInfo(0, stages, state)


def stage(tasks: int, running: int, done: int) -> Any:
    return status.SparkStageInfo(0, 0, "", tasks, running, done, 0)


def before(jobs: list[Any], stages: list[Any], *, prepared: bool = False) -> TasksSnapshot:
    from reactive_aio.spark._job.preparing import tasks_before

    tracker = SimpleNamespace(
        getJobIdsForGroup=lambda group: list(range(len(jobs))) if group == "ours" else [],
        getJobInfo=jobs.__getitem__,
        getStageInfo=stages.__getitem__,
    )
    context: Any = SimpleNamespace(statusTracker=lambda: tracker)
    return tasks_before(context, "ours", prepared=prepared)


def test_before_the_partitions_are_known_all_stages_come_before_them() -> None:
    found = before([job("SUCCEEDED", [0]), job("RUNNING", [2, 1])], [stage(4, 0, 4), stage(5, 3, 1), stage(2, 0, 0)])

    assert TasksSnapshot(total=11, running=3, done=5, preparing=True) == found


def test_of_a_job_that_is_over_only_what_it_has_run_counts() -> None:
    assert TasksSnapshot(4, 0, 4, preparing=True) == before(
        [job("SUCCEEDED", [0, 1])], [stage(7, 0, 0), stage(4, 0, 4)]
    )


def test_a_stage_that_two_jobs_need_counts_once() -> None:
    found = before(
        [job("RUNNING", [0, 1]), job("RUNNING", [0, 2])],
        [stage(4, 2, 1), stage(1, 0, 0), stage(1, 0, 0)],
        prepared=True,
    )

    assert TasksSnapshot(4, 2, 1, preparing=True) == found


def test_the_last_stage_of_a_job_is_a_partition_once_these_are_known() -> None:
    assert TasksSnapshot(4, 1, 3, preparing=True) == before(
        [job("RUNNING", [1, 0])], [stage(4, 1, 3), stage(1, 0, 0)], prepared=True
    )
    assert NOTHING == before([job("RUNNING", [0])], [stage(1, 1, 0)], prepared=True)


def test_stages_that_an_earlier_job_has_run_are_not_waited_for() -> None:
    jobs = [job("RUNNING", [0, 1]), job("RUNNING", [2, 3])]
    stages = [stage(4, 0, 0), stage(1, 1, 0), stage(5, 2, 1), stage(1, 0, 0)]

    assert TasksSnapshot(5, 2, 1, preparing=True) == before(jobs, stages, prepared=True)
    assert NOTHING == before([job("RUNNING", [0, 1])], [stage(4, 0, 0), stage(1, 0, 0)], prepared=True)
    assert NOTHING == before([job("SUCCEEDED", [0, 1])], [stage(4, 0, 4), stage(1, 0, 1)], prepared=True)


def test_what_spark_has_forgotten_does_not_count() -> None:
    assert NOTHING == before([None, job("RUNNING", [0])], [None])


def sorting(spark: Any, held: Callable[[int], int]) -> Flow[Any]:
    return Flow.from_spark(spark.sparkContext.parallelize(range(4), 4), prefetch=1).map(held).sort_by(max_size=10**9)


def shuffling(spark: Any, held: Callable[[int], int], wire: str = "tcp") -> Flow[Any]:
    pairs = spark.sparkContext.parallelize(range(4), 4).map(lambda n: (held(n), 1))
    return Flow.from_spark(pairs.reduceByKey(max, numPartitions=2), wire=wire)


def shuffling_by_results(spark: Any, held: Callable[[int], int]) -> Flow[Any]:
    return shuffling(spark, held, "results")


@pytest.mark.spark
@pytest.mark.parametrize("flow", [sorting, shuffling, shuffling_by_results])
async def test_a_snapshot_tells_of_the_tasks_that_come_before_the_partitions(
    spark: Any, tmp_path: Path, flow: Callable[[Any, Callable[[int], int]], Flow[Any]]
) -> None:
    gate = tmp_path / "gate"

    async with flow(spark, held_by(gate)).open() as items:
        reading = asyncio.ensure_future(anext(items))  # for jobs by results begin with the first demand
        await until(lambda: tasks_of(items) == TasksSnapshot(4, 1, 3, preparing=True))
        gate.touch()
        await reading
        assert not tasks_of(items).preparing
        await until(lambda: not looking())
        assert 3 == len([item async for item in items])


@pytest.mark.spark
async def test_who_leaves_before_the_partitions_begin_leaves_nobody_looking(spark: Any, tmp_path: Path) -> None:
    async with sorting(spark, held_by(tmp_path / "never")).open() as items:
        reading = asyncio.ensure_future(anext(items))
        await until(lambda: items.snapshot().regions[0].tasks)
        await until(lambda: tasks_of(items).running)
        assert looking()
        reading.cancel()

    assert not looking()


@pytest.mark.spark
async def test_nobody_looks_for_what_comes_before_unless_somebody_asks(
    sc: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reactive_aio.spark._job.preparing import Preparing

    def look(_: Preparing) -> None:
        raise AssertionError("nobody has asked")

    monkeypatch.setattr(Preparing, "so_far", look)

    assert [0, 1] == await Flow.from_spark(sc.parallelize(range(2), 2)).to_list()


def held_by(path: Path) -> Callable[[int], int]:
    gate = str(path)

    def held(n: int) -> int:
        import os
        import time

        while n == 3 and not os.path.exists(gate):
            time.sleep(0.01)
        return n

    return held


def looking() -> bool:
    return "reactive_aio-spark-preparing" in [thread.name for thread in threading.enumerate()]


def tasks_of(items: Any) -> TasksSnapshot:
    found: TasksSnapshot = items.snapshot().regions[0].tasks
    return found
