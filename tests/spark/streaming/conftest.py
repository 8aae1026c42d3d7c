"""What the tests of streams begin with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.streaming.files import Folder


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path / "in")


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture
def nothing_left(spark: Any) -> Iterator[None]:
    yield
    assert not spark.streams.active
    assert not [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
