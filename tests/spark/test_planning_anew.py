"""A frame whose plan holds a failure is planned anew by the next flow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, SparkJobError
from tests.spark.tally import Tally
from tests.spark.waiting import until

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

SHAPES: dict[str, Callable[[Any], Any]] = {
    "sorted numbers": lambda rows: rows.orderBy("id"),
    "sorted texts": lambda rows: rows.selectExpr("id", "cast(id AS string) AS text").orderBy("id"),
    "a table that is broadcast": lambda rows: rows.sparkSession.range(6).join(rows.hint("broadcast"), "id"),
}
"""Frames that run stages before the flow's own tasks begin."""


def failing_until(mended: Path, frame: Any) -> Any:
    """Return the rows of a frame, behind a function that fails as long as a file is not there."""

    def fail(batches: Any) -> Iterator[Any]:
        if not mended.exists():
            raise OSError("the disk is busy")
        yield from batches

    return frame.mapInArrow(fail, "id long")


@pytest.fixture
def session(spark: Any) -> Any:
    """Make a session whose settings may be changed."""
    return spark.newSession()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("adaptive", ["true", "false"])
async def test_retry_runs_the_stages_before_again(session: Any, tmp_path: Path, adaptive: str, shape: str) -> None:
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    mended = tmp_path / "mended"
    frame = SHAPES[shape](failing_until(mended, session.range(0, 6, 1, 2)))
    failures: list[BaseException] = []

    def mend(error: BaseException) -> None:
        failures.append(error)
        mended.touch()

    rows = await Flow.from_spark(frame, as_=tuple).do_on_error(mend).retry(1).to_list()

    assert list(range(6)) == sorted(row[0] for row in rows)
    assert [SparkJobError] == [type(error) for error in failures]
    assert "the disk is busy" in str(failures[0])


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_flow_after_a_cancelled_one_has_all_rows(
    session: Any, tally: Tally, tmp_path: Path, shape: str
) -> None:
    count, mark = tally.counting(lambda n: n), tmp_path / "mark"

    def slow_once(batches: Any) -> Iterator[Any]:
        count(1)
        while not mark.exists():
            threading.Event().wait(0.01)
        yield from batches

    frame = SHAPES[shape](session.range(0, 6, 1, 2).mapInArrow(slow_once, "id long"))
    end = asyncio.create_task(Flow.from_spark(frame, as_=tuple).to_list())
    await until(lambda: tally.count)
    end.cancel()
    with pytest.raises(asyncio.CancelledError):
        await end

    mark.touch()
    rows = await Flow.from_spark(frame, as_=tuple).to_list()
    assert list(range(6)) == sorted(row[0] for row in rows)
