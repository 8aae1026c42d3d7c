"""Whether there is a cluster to test on: SPARK_CLUSTER is its master, which `dev.py test-spark-cluster` sets."""

from __future__ import annotations

import os
from typing import Final

import pytest

CLUSTER: Final = os.environ.get("SPARK_CLUSTER", "")
HOSTS: Final = os.environ.get("SPARK_HOSTS", "")
"""Whether the cluster is one of hosts of their own, and which."""

MARKS: Final = [
    pytest.mark.spark,
    pytest.mark.stress,
    pytest.mark.skipif(not CLUSTER, reason="a cluster takes long to start: python3 dev.py test-spark-cluster"),
]

ON_HOSTS: Final = [
    *MARKS,
    pytest.mark.skipif(
        not HOSTS,
        reason="needs several machines: python3 dev.py test-spark-cluster makes them, or says what it lacks for that",
    ),
]
"""Whether there are several machines to test on."""
