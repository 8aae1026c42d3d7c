"""The Spark that the benchmarks run on: that of this machine, with a JVM such as clusters have.

`local_session` by itself starts a JVM that is soon there and never compiles well, for examples and tests. Nobody's cluster
has such a one, and rows come out of it half as fast. Measured is in the flags that Spark has by default.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from reactive_aio.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cache
def session(master: str | None = None, heap: str = "4g") -> SparkSession:
    """Return the only session of this process. All chapters share it. The last one needs more than a gibibyte."""
    return local_session("benchmarks", master, quick_start=False, spark__driver__memory=heap)
