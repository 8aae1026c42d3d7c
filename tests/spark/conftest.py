"""One session for all tests of the Spark engine: a session takes longer to start than all of them to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Three slots, so that one partition runs ahead, and four attempts for each task."""
    pytest.importorskip("pyspark")
    from reactive_aio.spark.session import local_session

    # Tasks are killed on purpose here, and what Spark has to say about that is not wanted.
    session = local_session("tests", "local[3,4]", spark__log__level="OFF", spark__sql__shuffle__partitions="3")
    yield session
    session.stop()


@pytest.fixture
def sc(spark: SparkSession) -> SparkContext:
    return spark.sparkContext


class Tally:
    """Counts calls in workers, across processes: a byte in a file for each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def counting(self, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Give the function, counted."""
        path = str(self.path)

        def counted(item: Any) -> Any:
            with open(path, "ab", buffering=0) as file:
                file.write(b".")
            return fn(item)

        return counted

    @property
    def count(self) -> int:
        return os.path.getsize(self.path)


@pytest.fixture
def tally(tmp_path: Path) -> Tally:
    return Tally(tmp_path / "tally")
