"""Spark Connect, on a real server, which a process of its own starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark_cluster.profile import MARKS

pytest.importorskip("pyspark")
pytest.importorskip("grpc", reason="Spark Connect needs grpcio")

pytestmark = MARKS
ROOT = Path(__file__).parents[2]

SCRIPT = """
import asyncio, json, os, sys, threading, time
import attrs
from pyspark.sql import SparkSession
from reactive_aio import Flow, SparkJobError, UnsupportedOnSparkError, schedulers
from reactive_aio.spark.sink import Frames, Table

told = {}

@attrs.frozen
class Reading:
    id: int
    name: str

def check(row):
    if row.id == 700:
        raise LookupError("no", row.id)
    return row.id

def slow(row):
    import time
    time.sleep(0.2)
    return row

async def main(spark):
    frame = spark.range(0, 1000, 1, 4).selectExpr("id", "concat('r', id) AS name")
    rows = Flow.from_spark(frame, as_=Reading, prefetch=100)
    found = await rows.map(lambda row: (row.id, row.name, os.getpid())).to_list()
    told["rows"] = [(n, f"r{n}") for n in range(1000)] == [row[:2] for row in found]
    told["elsewhere"] = os.getpid() not in {row[2] for row in found}
    told["parts"] = await rows.map(lambda row: row.id).sum()
    told["taken"] = await Flow.from_spark(frame, as_=tuple).take(2).to_list()
    taken = []
    try:
        await rows.map(check).for_each(taken.append)
    except LookupError as error:
        told["failure"] = [error.args, len(taken)]
    again = rows.map(check).to_frame("id long").orderBy("id")
    try:
        await Flow.from_spark(again).to_list()
    except LookupError as error:
        told["through a frame"] = [error.args, any("in map(check)" in note for note in error.__notes__)]
    try:
        await Flow.from_spark(frame.selectExpr("assert_true(id < 5, 'too large') AS no", "id")).to_list()
    except SparkJobError as error:
        told["job"] = str(error)
    few = Flow.from_spark(spark.range(0, 100, 1, 50), as_=tuple).map(slow)
    async with few.open() as items:
        await anext(items)
        start = time.monotonic()
    told["left"] = time.monotonic() - start < 10
    done = await Flow.range(25).map(lambda n: Reading(n, f"r{n}")).to_spark(
        Table(spark, "readings", run="a"), Reading, size=10
    )
    told["table"] = [done.batches, done.rows, spark.table("readings").count()]
    try:
        schedulers.spark(spark)
    except UnsupportedOnSparkError as error:
        told["scheduler"] = str(error)
    told["plan"] = rows.describe().splitlines()[0]
    told["tasks"] = len(asyncio.all_tasks())
    told["threads"] = [each.name for each in threading.enumerate() if "reactive_aio" in each.name]

spark = SparkSession.builder.remote("local[2]").config("spark.sql.warehouse.dir", os.getcwd() + "/warehouse").getOrCreate()
asyncio.run(main(spark))
print(json.dumps(told))
sys.stdout.flush()
spark.stop()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The report of a client."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path_factory.mktemp("connect"),
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_rows_come_in_order_and_functions_run_in_the_workers(told: Any) -> None:
    assert told["rows"]
    assert told["elsewhere"]
    assert told["plan"].startswith("R1  Spark Connect")


def test_in_parts_and_not_to_the_end(told: Any) -> None:
    assert sum(range(1000)) == told["parts"]
    assert [[0, "r0"], [1, "r1"]] == told["taken"]


def test_failures_come_as_themselves_behind_the_elements_before_them(told: Any) -> None:
    assert [["no", 700], 700] == told["failure"]
    assert "too large" in told["job"]


def test_a_failure_comes_as_itself_through_a_frame(told: Any) -> None:
    assert [["no", 700], True] == told["through a frame"]


def test_leaving_early_interrupts_the_job_and_leaves_nothing(told: Any) -> None:
    assert told["left"]
    assert 1 == told["tasks"]
    assert [] == told["threads"]


def test_a_flow_is_written_to_a_table(told: Any) -> None:
    assert [3, 25, 25] == told["table"]


def test_a_region_fed_from_the_loop_is_refused(told: Any) -> None:
    assert "classic session" in told["scheduler"]


def test_the_table_of_the_page_is_what_a_server_does(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark_cluster.connect_table", "--check"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr
