"""One session for all tests of the Spark engine: a session takes longer to start than all of them to run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import conftest
from tests.spark.tally import Tally

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


ON_ONE_LOOP = ("test_results.py", "test_progress.py", "test_connect.py")
"""What takes long and hardly meets the loop."""


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    found = conftest.pytest_asyncio_loop_factories(config, item)
    first = next(iter(found))
    return {first: found[first]} if item.path.name in ON_ONE_LOOP else found


def no_word(*_: object) -> None:
    """Keep what PySpark's server of accumulators would print out of what tests capture."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Three slots, so that one partition runs ahead, and four attempts for each task."""
    pytest.importorskip("pyspark")
    from pyspark import accumulators

    from reactive_aio.spark.session import local_session

    # Tasks are killed on purpose here, and what Spark has to say about that is not wanted.
    session = local_session("tests", "local[3,4]", spark__log__level="OFF", spark__sql__shuffle__partitions="3")
    with pytest.MonkeyPatch.context() as patch:
        for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
            patch.setattr(server, "handle_error", no_word)  # the JVM hangs up on it now and then
        yield session
        session.stop()


@pytest.fixture
def sc(spark: SparkSession) -> SparkContext:
    return spark.sparkContext


@pytest.fixture
def lenient_spark(sc: Any) -> Iterator[None]:
    """Have Spark give the workers of cancelled tasks more time than any test has, so that it is not Spark that ends them."""
    conf: Any = sc._jsc.sc().conf()
    conf.set("spark.python.task.killTimeout", "1h")
    yield
    conf.remove("spark.python.task.killTimeout")


@pytest.fixture
def tally(tmp_path: Path) -> Tally:
    return Tally(tmp_path / "tally")
