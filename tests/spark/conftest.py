"""The fixtures of the tests of the Spark engine. The session is that of all tests (tests/conftest.py)."""

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


ON_ONE_LOOP = (
    "test_results.py",
    "test_kinds.py",
    "test_slices.py",
    "test_progress.py",
    "test_preparing.py",
    "test_connect.py",
    "test_sorting.py",
    "test_numbering.py",
)
"""The modules whose tests take long and hardly use the loop."""


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    found = conftest.pytest_asyncio_loop_factories(config, item)
    first = next(iter(found))
    return {first: found[first]} if item.path.name in ON_ONE_LOOP else found


@pytest.fixture
def sc(spark: SparkSession) -> SparkContext:
    return spark.sparkContext


@pytest.fixture
def lenient_spark(sc: Any) -> Iterator[None]:
    """Have Spark give the workers of cancelled tasks more time than any test has, so that it is not Spark that ends them."""
    conf: Any = sc._jsc.sc().conf()
    before = conf.get("spark.python.task.killTimeout")
    conf.set("spark.python.task.killTimeout", "1h")
    yield
    conf.set("spark.python.task.killTimeout", before)


@pytest.fixture
def tally(tmp_path: Path) -> Tally:
    return Tally(tmp_path / "tally")
