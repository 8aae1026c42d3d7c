"""Every way to run a workload derived from TPC-H gives the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.tpch import data, keyed, queries, vectorised, ways
from benchmarks.tpch.queries import QUERIES, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.made(0.01, tmp_path_factory.mktemp("tpch"))


@pytest.mark.costly
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name.partition(",")[0])
def test_each_way_gives_the_rows_of_sql(spark: SparkSession, folder: Path, query: Query) -> None:
    ways.tables(spark, folder)
    expected = ways.by_sql(spark, query)

    assert expected
    by_spark = ways.ways_of(query)
    assert dict.fromkeys(by_spark, expected) == {name: way(spark, query) for name, way in by_spark.items()}
    assert expected == ways.on_the_loop(folder, query)


def test_a_missing_generator_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    with pytest.raises(data.GeneratorMissingError, match="pip install 'tpchgen-cli>=4'"):
        data.made(0.01, tmp_path)


@pytest.mark.costly
def test_q1_by_columns_gives_the_rows_of_sql(spark: SparkSession, folder: Path) -> None:
    ways.tables(spark, folder)
    query = queries.q1()
    expected = ways.by_sql(spark, query)

    assert dict.fromkeys(vectorised.WAYS, expected) == {
        name: way(spark, query) for name, way in vectorised.WAYS.items()
    }


@pytest.mark.costly
@pytest.mark.parametrize("work", keyed.WORKS, ids=lambda work: work.name.replace(" ", "_"))
def test_keyed_work_gives_the_same_rows_in_each_way(spark: SparkSession, folder: Path, work: keyed.Work) -> None:
    ways.tables(spark, folder)
    expected = keyed.by_sql(spark, work)

    assert expected
    by_spark = keyed.ways_of(work)
    assert dict.fromkeys(by_spark, expected) == {name: way(spark, work) for name, way in by_spark.items()}
    assert expected == keyed.on_the_loop(folder, work)
