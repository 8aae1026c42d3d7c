"""A driver that is killed at any step of a run: the run that is repeated loses nothing and doubles nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow

pytest.importorskip("pyspark")

from reactive_aio.spark.sink import Files
from tests.spark.sink.killed import COUNT, MOMENTS

pytestmark = [pytest.mark.spark, pytest.mark.skipif(sys.platform == "win32", reason="kills by a signal")]

ROOT = Path(__file__).parents[3]
COMMITTED = {"the commit", "the removal"}


async def killed(folder: Path, moment: str) -> int:
    """Run the program to its end; what it leaves running ends with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.spark.sink.killed", str(folder), moment),
        cwd=ROOT,
        start_new_session=True,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    code = await process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the JVM of a driver that was killed
    return code


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name[0] not in "_.")


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_run_whose_driver_was_killed_is_whole_when_it_is_repeated(
    spark: Any, tmp_path: Path, moment: str
) -> None:
    folder = tmp_path / "out"
    for old in ("old", "older"):
        await Flow.from_spark(spark.range(3), as_=tuple).to_spark(Files(spark, folder, run=old), "n long", size=None)

    assert -signal.SIGKILL == await killed(folder, moment)
    assert ("batch=new-all" in visible(folder)) is (moment in COMMITTED)
    if moment not in COMMITTED:
        assert ["batch=old-all", "batch=older-all"] == visible(folder)

    again = Flow.from_spark(spark.range(0, COUNT, 1, 4), as_=tuple)
    done = await again.to_spark(Files(spark, folder, run="new", mode="overwrite"), "n long", size=None)
    assert (COUNT, moment not in COMMITTED) == (done.rows, done.written)
    assert [*range(COUNT)] == sorted(row.n for row in spark.read.parquet(str(folder)).collect())
    assert ["batch=new-all"] == sorted(path.name for path in folder.iterdir())
    assert COUNT == json.loads((folder / "batch=new-all" / "_batch.json").read_text())["rows"]
