"""The columns of a frame that the functions of a flow read: ``columns=`` of ``to_frame``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from reactive_aio import Flow, UnsupportedOnSparkError

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql import Row

from tests.spark.frame.test_plan import plan_of

pytestmark = pytest.mark.spark

SCHEMA = "id long, name string"


@attrs.frozen
class Named:
    name: str
    id: int = -1


@pytest.fixture
def sales(spark: Any, tmp_path: Path) -> Any:
    path = str(tmp_path / "sales")
    columns = ("id", "id / 2 as price", "cast(id as string) as name", "id % 2 as `kind.of`")
    spark.range(4).selectExpr(*columns).write.parquet(path)
    return spark.read.parquet(path)


def shown(element: Any) -> tuple[int, str]:
    return 0, str(element)


def texts(frame: Any) -> list[str]:
    return sorted(row.name for row in frame.collect())


def test_spark_reads_only_the_named_columns(sales: Any) -> None:
    frame = Flow.from_spark(sales, as_=tuple).map(shown).to_frame(SCHEMA, columns=["name", "id"])

    assert "ReadSchema: struct<id:bigint,name:string>" in plan_of(frame)


def test_without_names_it_reads_all_of_them(sales: Any) -> None:
    frame = Flow.from_spark(sales, as_=tuple).map(shown).to_frame(SCHEMA)

    assert "ReadSchema: struct<id:bigint,price:double,name:string,kind.of:bigint>" in plan_of(frame)


@pytest.mark.parametrize(
    ("as_", "first"),
    [
        (tuple, "('0', 0)"),
        (dict, "{'name': '0', 'id': 0}"),
        (Row, "Row(name='0', id=0)"),
        (Named, "Named(name='0', id=0)"),
    ],
)
def test_the_elements_are_rows_of_these_columns_in_the_given_order(sales: Any, as_: Any, first: str) -> None:
    frame = Flow.from_spark(sales, as_=as_).map(shown).to_frame(SCHEMA, columns=["name", "id"])

    assert first == texts(frame)[0]


def test_batches_have_these_columns_only(sales: Any) -> None:
    def named(batch: pa.RecordBatch) -> list[tuple[int, str]]:
        return [(0, ",".join(batch.schema.names))]

    flow = Flow.from_spark(sales, as_=pa.RecordBatch).flat_map_iterable(named)

    assert {"kind.of,id"} == set(texts(flow.to_frame(SCHEMA, columns=("kind.of", "id"))))


async def shown_later(element: Any) -> tuple[int, str]:
    return shown(element)


def test_they_are_read_for_awaited_functions_too(sales: Any) -> None:
    frame = Flow.from_spark(sales, as_=tuple).map_async(shown_later, max_concurrency=2).to_frame(SCHEMA, columns=["id"])

    assert "(0,)" == texts(frame)[0]


def test_there_may_be_no_columns_at_all(sales: Any) -> None:
    assert ["()"] * 4 == texts(Flow.from_spark(sales, as_=tuple).map(shown).to_frame(SCHEMA, columns=[]))


def test_a_field_with_a_default_may_be_left_out(sales: Any) -> None:
    frame = Flow.from_spark(sales, as_=Named).map(shown).to_frame(SCHEMA, columns=["name"])

    assert "Named(name='0', id=-1)" == texts(frame)[0]
    assert "ReadSchema: struct<name:string>" in plan_of(frame)


def test_rows_are_told_apart_by_these_columns_alone(spark: Any) -> None:
    data = spark.createDataFrame([(1, 1), (1, 2), (2, 1)], "id long, other long")
    distinct = Flow.from_spark(data, as_=tuple, ordered=False).distinct().map(shown)

    assert ["(1,)", "(2,)"] == texts(distinct.to_frame(SCHEMA, columns=["id"]))
    assert 3 == distinct.to_frame(SCHEMA).count()


def test_each_of_several_flows_reads_these_columns_and_must_have_them(spark: Any, sales: Any) -> None:
    others = spark.createDataFrame([("x", True, 9)], "name string, more boolean, id long")
    both = Flow.from_spark(sales, as_=tuple).concat(Flow.from_spark(others, as_=tuple)).map(shown)

    assert "('x', 9)" == texts(both.to_frame(SCHEMA, columns=["name", "id"]))[-1]
    with pytest.raises(ValueError, match=r"there is no column 'price'\. .* has the columns name, more, id"):
        both.to_frame(SCHEMA, columns=["price"])


def test_both_sides_of_a_join_read_these_columns(sales: Any) -> None:
    def first(row: tuple[int, str]) -> int:
        return row[0]

    left, right = (Flow.from_spark(sales, as_=tuple).group_by_key(first) for _ in "lr")
    frame = left.join(right).map(shown).to_frame(SCHEMA, columns=["id", "name"])

    assert 2 == plan_of(frame).count("ReadSchema: struct<id:bigint,name:string>")
    assert "(0, ((0, '0'), (0, '0')))" == texts(frame)[0]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (["ID"], r"there is no column 'ID'\. from_spark\(DataFrame, as_=tuple\) has the columns id, price, name, kind"),
        (["id", "x", "y"], "there is no column 'x', 'y'"),
        (["id", "id"], "a column is named twice"),
    ],
)
def test_names_that_the_frame_does_not_have_are_refused_when_the_frame_is_made(
    sales: Any, columns: list[str], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        Flow.from_spark(sales, as_=tuple).map(shown).to_frame(SCHEMA, columns=columns)


@pytest.mark.parametrize("columns", ["id", [1], {"id"}])
def test_other_things_than_a_list_of_names_are_refused(sales: Any, columns: Any) -> None:
    with pytest.raises(TypeError, match=r"to_frame\(columns=.*\): a list of the names of columns is needed"):
        Flow.from_spark(sales, as_=tuple).map(shown).to_frame(SCHEMA, columns=columns)


def test_a_name_that_two_columns_have_is_refused(spark: Any) -> None:
    data = spark.createDataFrame([(1, 2)], "id long, id long")
    with pytest.raises(ValueError, match="there is more than one column 'id'"):
        Flow.from_spark(data, as_=tuple).map(shown).to_frame(SCHEMA, columns=["id"])


@pytest.mark.parametrize(("columns", "text"), [(["id"], "needs name too"), (["name", "price"], "has no field price")])
def test_a_class_must_have_these_columns_as_its_fields(sales: Any, columns: list[str], text: str) -> None:
    with pytest.raises(ValueError, match=f"the class Named of from_spark.* {text}. .* leave the argument out"):
        Flow.from_spark(sales, as_=Named).map(shown).to_frame(SCHEMA, columns=columns)


def test_an_rdd_has_no_columns(spark: Any) -> None:
    with pytest.raises(UnsupportedOnSparkError, match=r"from_spark\(RDD\) has no columns. Leave the argument out"):
        Flow.from_spark(spark.sparkContext.parallelize([1])).map(shown).to_frame(SCHEMA, columns=["id"])
