"""The streaming service of the examples: each minute right, though it is stopped in the middle and run again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from examples import sensors

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("nothing_left")]
pytest.importorskip("pyspark")


def expected(readings: list[sensors.Reading]) -> list[sensors.Minute]:
    """The minutes, by hand."""
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for each in readings:
        values[each.sensor, int(each.at.timestamp()) // 60 * 60].append(each.celsius)
    return [
        sensors.Minute(*key, len(found), pytest.approx(sum(found) / len(found)), max(found))  # type: ignore[arg-type]
        for key, found in sorted(values.items())
    ]


async def test_every_minute_is_in_the_table(spark: Any, tmp_path: Path) -> None:
    readings = sensors.some_readings(600)

    async with sensors.serve(readings) as port:
        await sensors.run(spark, port, tmp_path, sensors.NOW)

    assert expected(readings) == sensors.stored(tmp_path)


async def test_stopped_between_the_table_and_the_acknowledgement_and_run_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = sensors.some_readings(600)
    stored: list[int] = []
    store, stop = sensors.store, asyncio.Event()

    async def noted(batch: Any, connection: sqlite3.Connection) -> None:
        await store(batch, connection)
        stored.append(batch.id)
        if len(stored) == 2:
            stop.set()
            await asyncio.Event().wait()  # and never comes back: nothing of this batch is recorded

    async with sensors.serve(readings) as port:
        with monkeypatch.context() as patch:
            patch.setattr(sensors, "store", noted)
            running = asyncio.create_task(sensors.run(spark, port, tmp_path, sensors.NOW, batch=200))
            await stop.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert expected(readings) != sensors.stored(tmp_path)

        await sensors.run(spark, port, tmp_path, sensors.NOW, batch=200)

    assert expected(readings) == sensors.stored(tmp_path)
