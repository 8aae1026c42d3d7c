"""Whether there is a cluster to test on: SPARK_CLUSTER is its master, which `dev.py test-spark-cluster` sets."""

from __future__ import annotations

import os
from typing import Final

import pytest

CLUSTER: Final = os.environ.get("SPARK_CLUSTER", "")

MARKS: Final = [
    pytest.mark.spark,
    pytest.mark.stress,
    pytest.mark.skipif(not CLUSTER, reason="a cluster takes long to start: python3 dev.py test-spark-cluster"),
]
