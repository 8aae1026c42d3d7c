"""A session with Spark's own logging says nothing of flows that were cancelled, and all there is to say of others' jobs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")

PROGRAM = """
import asyncio, os, sys, tempfile
from pathlib import Path
from pyspark.sql import SparkSession
from reactive_aio import Flow
from tests.spark.jobs import active_jobs
from tests.spark.stuck import Stuck
from tests.spark.waiting import until

os.environ["PYSPARK_PYTHON"] = sys.executable
session = SparkSession.builder.master("local[3]").config("spark.driver.bindAddress", "127.0.0.1")
spark = session.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
sc = spark.sparkContext
one = sc.parallelize(range(9), 1)
print("begun", file=sys.stderr, flush=True)

async def leave(flow):
    async with flow.open() as items:
        for _ in range(300):
            await anext(items)
    assert not active_jobs(sc)

async def cut_off(name, flow):
    # Its worker is in the middle of a function, and is gone before Spark looks after it.
    met = Stuck(Path(tempfile.mkdtemp()) / name)
    end = asyncio.create_task(flow(met.function()).count())
    process = await met.begun()
    end.cancel()
    await asyncio.wait([end])
    assert not active_jobs(sc)
    await met.gone(process)

async def of_others():
    def job():
        sc.setJobGroup("of others", "")
        spark.range(0, 10**13, 1, 1).where("id % 7 = 8").count()

    end = asyncio.create_task(asyncio.to_thread(job))
    tracker = sc.statusTracker()
    await until(lambda: any(tracker.getStageInfo(n).numActiveTasks for n in tracker.getActiveStageIds()))
    sc.cancelJobGroup("of others")
    await asyncio.wait([end])
    end.exception()

for _ in range(3):
    asyncio.run(leave(Flow.from_spark(sc.range(10**6, numSlices=4))))
    asyncio.run(leave(Flow.from_spark(sc.range(10**6, numSlices=4), wire="results")))
asyncio.run(cut_off("tcp", lambda fn: Flow.from_spark(one).map(fn)))
asyncio.run(cut_off("results", lambda fn: Flow.from_spark(one, wire="results").map(fn)))
asyncio.run(cut_off("frame", lambda fn: Flow.from_spark(spark.range(0, 9, 1, 1), wire="results").map(fn)))
asyncio.run(cut_off("sort", lambda fn: Flow.from_spark(one).map(fn).sort_by(max_size=10**9)))
asyncio.run(cut_off("keys", lambda fn: Flow.from_spark(one).sort_by(fn, max_size=10**9)))
print("of others", file=sys.stderr, flush=True)
asyncio.run(of_others())
spark.stop()
print("ended")
"""


@pytest.mark.long
def test_nothing_is_said_of_what_was_cancelled_and_what_others_cancel_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )

    assert "ended\n" == done.stdout, done.stderr
    ours, _, theirs = done.stderr.partition("begun\n")[2].partition("of others\n")
    assert "" == ours
    assert re.fullmatch(r".* WARN TaskSetManager: Lost task .*TaskKilled.* job group of others .*\n", theirs)
