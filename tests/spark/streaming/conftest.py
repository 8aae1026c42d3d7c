"""The fixtures of the tests of streams."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LOOPS
from tests.spark.jobs import active_jobs
from tests.spark.streaming.files import Folder
from tests.spark.waiting import LIMIT


def pytest_asyncio_loop_factories(config: pytest.Config) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """On one loop: each query and each write costs Spark seconds, and how signals meet a loop is tested elsewhere."""
    wanted = config.getoption("--loop")
    name = "asyncio" if wanted == "all" else wanted
    return {name: LOOPS[name]}


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path / "in")


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a query take its time to stop: on a busy machine the workers that it waits for take ten seconds to start."""
    monkeypatch.setattr("reactive_aio.spark.streaming._query.STOP", LIMIT)


@pytest.fixture
def nothing_left(spark: Any) -> Iterator[None]:
    yield
    assert not spark.streams.active
    assert not [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]
    deadline = time.monotonic() + LIMIT  # Spark cancels the jobs of a query behind its back
    while active_jobs(spark.sparkContext) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not active_jobs(spark.sparkContext)
