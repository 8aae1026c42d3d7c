"""The page on Spark Connect has the table that a test fills in by a server."""

from __future__ import annotations

from tests.spark_cluster.connect_table import table, written


def test_the_page_has_the_table_of_the_rows() -> None:
    assert table() == written(), "python -m tests.spark_cluster.connect_table, with the packages of Spark Connect"
