"""The service of the examples, killed as often as one likes: KILLS=100 python3 dev.py test -k kills."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from examples import sensors
from tests.spark.streaming.test_sensors import expected

KILLS = int(os.environ.get("KILLS", "0"))
ROOT = Path(__file__).parents[3]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.stress,
    pytest.mark.skipif(not KILLS, reason="a quarter of a minute for each kill: ask for them by KILLS=..."),
]


def stored(folder: Path) -> int:
    """The readings that are in the table."""
    if not (folder / "minutes.db").exists():
        return 0
    with closing(sqlite3.connect(folder / "minutes.db")) as connection, suppress(sqlite3.OperationalError):
        (count,) = connection.execute("SELECT SUM(readings) FROM minutes").fetchone()
        return int(count or 0)
    return 0


async def run(port: int, folder: Path) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "tests.spark.streaming.service", str(port), str(folder)]
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, start_new_session=True)


async def test_each_minute_is_right_however_often_driver_and_cluster_are_killed(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    readings = sensors.some_readings(500 * KILLS + 500)

    async with sensors.serve(readings) as port:
        for _ in range(KILLS):
            process, before = await run(port, tmp_path), stored(tmp_path)
            while process.returncode is None and stored(tmp_path) <= before:
                await asyncio.sleep(0.02)
            await asyncio.sleep(chance.uniform(0, 1))  # the moment
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        process = await run(port, tmp_path)
        assert 0 == await process.wait()

    assert expected(readings) == sensors.stored(tmp_path)
