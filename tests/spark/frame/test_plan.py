"""Spark's plan of a frame made from a flow: it shows our operators, and how few columns and rows are read for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow

pytest.importorskip("pyspark")

from reactive_aio.spark._frame.shuffling import parts_for

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "spark.md"


@attrs.frozen
class Sold:
    id: int
    price: float


@pytest.fixture
def sales(spark: Any, tmp_path: Path) -> Any:
    path = str(tmp_path / "sales")
    spark.range(9).selectExpr("id", "id / 2 as price", "cast(id as string) as name", "id % 2 as kind").write.parquet(
        path
    )
    return spark.read.parquet(path)


def plan_of(frame: Any) -> str:
    plan: str = frame._jdf.queryExecution().executedPlan().toString()
    return plan


def test_the_plan_names_the_operators(sales: Any) -> None:
    frame = Flow.from_spark(sales, as_=Sold).map(attrs.astuple).filter(all).to_frame("id long, price double")

    assert "MapInArrow from_spark(DataFrame, as_=Sold) -> map(astuple) -> filter(all)(" in plan_of(frame)


def test_only_the_columns_of_the_class_are_read(sales: Any) -> None:
    frame = Flow.from_spark(sales, as_=Sold).to_frame(Sold)

    assert "ReadSchema: struct<id:bigint,price:double>" in plan_of(frame)
    assert [Sold(n, n / 2) for n in range(9)] == Flow.from_spark(frame.orderBy("id"), as_=Sold).run_sync()


def test_a_condition_on_columns_before_the_flow_is_pushed_to_the_file(sales: Any) -> None:
    frame = Flow.from_spark(sales.where("kind = 1"), as_=Sold).to_frame(Sold)

    assert "PushedFilters: [IsNotNull(kind), EqualTo(kind,1)]" in plan_of(frame)


def test_a_shuffle_stands_once_on_each_of_its_sides(sales: Any) -> None:
    counted = Flow.from_spark(sales, as_=Sold).group_by_key(hash).reduce(max, any_order=True)
    plan = plan_of(counted.to_frame("key long, sold string"))

    assert "MapInArrow from_spark(DataFrame, as_=Sold) -> group_by_key(hash -> reduce(max))(" in plan
    assert 2 == plan.count("group_by_key")


def test_flows_in_a_row_are_a_union(sales: Any) -> None:
    sold = Flow.from_spark(sales, as_=Sold)
    plan = plan_of(sold.map(attrs.evolve).concat(sold).filter(bool).to_frame(Sold))

    assert "Union" in plan
    assert "MapInArrow from_spark(DataFrame, as_=Sold) -> map(evolve) -> filter(bool)(" in plan
    assert "MapInArrow from_spark(DataFrame, as_=Sold) -> filter(bool)(" in plan


def test_columns_of_flows_in_a_row_may_differ_by_the_case_of_a_letter(spark: Any) -> None:
    ones, twos = (Flow.from_spark(spark.range(n, n + 1)).map(lambda row: (row.id, -row.id)) for n in (1, 2))
    frame = ones.concat(twos).to_frame("n long, N long")

    assert ["n", "N"] == frame.columns
    assert [(1, -1), (2, -2)] == sorted(map(tuple, frame.collect()))


@attrs.frozen
class Reading:
    """As on the page."""

    sensor: str
    value: float


def test_the_example_of_the_page_runs(spark: Any, tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Back into Spark's plan")[1].split("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    source, out = str(tmp_path / "readings"), str(tmp_path / "out")
    rows = [("s1", 30.0, 1), ("s1", 10.0, 2), ("s2", -1.0, 3), ("s2", 21.0, 4)]
    spark.createDataFrame(rows, "sensor string, value double, other long").write.parquet(source)
    frame = spark.read.parquet(source)
    names: dict[str, Any] = {"frame": frame, "session": spark, "Reading": Reading, "Flow": Flow, "attrs": attrs}

    exec(block.replace('"out/', f'"{out}/'), names)

    written = spark.read.parquet(f"{out}/levels").orderBy("place", "level").collect()
    assert [("cellar", "high", 1), ("cellar", "low", 1), ("roof", "high", 1)] == [tuple(row) for row in written]
    plan = plan_of(names["levels"])
    shown = re.findall(r"^```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[0]
    numbered = re.compile(r"#\d+")
    assert numbered.sub("", shown.splitlines()[0]) == numbered.sub("", plan.splitlines()[0])
    assert "ReadSchema: struct<sensor:string,value:double>" in plan


@pytest.mark.parametrize(("partitions", "parts"), [("200", 1600), ("3", 24), ("auto", 1600)])
def test_a_shuffle_has_parts_for_the_partitions_of_the_session_and_of_one_that_chooses_them(
    partitions: str, parts: int
) -> None:
    assert parts == parts_for(partitions)
