"""The fixtures of the tests of resident regions."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from tests.spark.resident.by_hand import cluster

__all__ = ["cluster"]
