"""Which columns a schema stands for."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import attrs
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import ArrayType, NullType, StructType

from reactive_aio.spark.sink._schema import check_schema, struct_of

pytestmark = pytest.mark.spark


@attrs.frozen
class Place:
    lat: float
    lon: float


@attrs.frozen
class Everything:
    id: int
    name: str | None
    ok: bool
    raw: bytes
    price: Decimal
    at: dt.datetime
    day: dt.date
    opens: dt.time
    took: dt.timedelta
    tags: list[str]
    path: tuple[Place, ...]
    counts: dict[str, int | None]
    place: Place | None = None


def test_an_attrs_class_gives_its_fields(spark: Any) -> None:
    assert (
        "struct<id:bigint,name:string,ok:boolean,raw:binary,price:decimal(38,18),at:timestamp,day:date,opens:time(6),"
        "took:interval day to second,tags:array<string>,path:array<struct<lat:double,lon:double>>,"
        "counts:map<string,bigint>,place:struct<lat:double,lon:double>>"
    ) == struct_of("to_spark", Everything).simpleString()


def test_what_may_be_none_is_nullable_and_nothing_else() -> None:
    struct: Any = struct_of("to_spark", Everything)

    assert ["name", "place"] == [each.name for each in struct.fields if each.nullable]
    assert struct["counts"].dataType.valueContainsNull
    assert not struct["tags"].dataType.containsNull


def test_a_text_is_read_by_spark(spark: Any) -> None:
    assert "struct<id:bigint,name:string>" == struct_of("to_spark", "id long, name string").simpleString()


def test_a_text_that_is_no_schema_is_refused(spark: Any) -> None:
    with pytest.raises(ValueError, match=r"to_spark\(schema='id lng'\): .*"):
        struct_of("to_spark", "id lng")


def test_a_class_with_a_field_that_is_no_column_is_refused_by_the_field() -> None:
    @attrs.frozen
    class Wrong:
        id: int
        lock: object

    with pytest.raises(TypeError, match=r"to_spark\(schema=Wrong\), field lock: <class 'object'> has no column type"):
        check_schema("to_spark", Wrong)


@pytest.mark.parametrize("schema", [int, 5, None, ["id long"]])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(TypeError, match="a StructType, or an attrs class"):
        check_schema("to_spark", schema)


@pytest.mark.parametrize("schema", [StructType([]), ""])
def test_no_columns_are_refused(spark: Any, schema: Any) -> None:
    with pytest.raises(ValueError, match="no columns"):
        struct_of("to_spark", schema)


def test_a_column_that_does_not_travel_is_refused_by_its_name(spark: Any) -> None:
    with pytest.raises(TypeError, match=r"to_spark\(schema=\.\.\.\), column short: .*VarcharType\(2\)"):
        struct_of("to_spark", "id long, short varchar(2)")


def test_columns_of_one_name_are_refused(spark: Any) -> None:
    with pytest.raises(
        ValueError, match=r"to_frame\(schema=\.\.\.\): the schema has more than one column named a\. Rename"
    ):
        struct_of("to_frame", StructType().add("a", "long").add("b", "long").add("a", "string"))


def test_an_array_of_nothing_that_must_not_be_null_is_refused_by_its_name(spark: Any) -> None:
    with pytest.raises(TypeError, match=r"to_frame\(schema=\.\.\.\), column none: A null type field"):
        struct_of("to_frame", StructType().add("none", ArrayType(NullType(), containsNull=False)))


@attrs.frozen
class Node:
    id: int
    next: Node | None = None


@attrs.frozen
class Tree:
    name: str
    children: list[Tree]


@attrs.frozen
class Holder:
    tree: dict[str, Tree]


@pytest.mark.parametrize(("kind", "named"), [(Node, "Node"), (Tree, "Tree"), (Holder, "Tree")])
def test_a_class_that_contains_itself_is_refused_by_its_name(kind: Any, named: str) -> None:
    with pytest.raises(
        TypeError, match=rf"schema={kind.__name__}\), field .*an object of {named} may contain another one"
    ):
        check_schema("to_frame", kind)


@attrs.frozen
class Two:
    left: Place
    right: Place


def test_a_class_may_be_in_several_fields() -> None:
    assert ["left", "right"] == struct_of("to_frame", Two).names


def test_annotations_that_can_not_be_read_are_told() -> None:
    @attrs.frozen
    class Hidden:
        next: Missing  # type: ignore[name-defined]  # noqa: F821 - it is the case

    with pytest.raises(TypeError, match=r"schema=Hidden\): the annotations of the class can't be read: .*Missing"):
        check_schema("to_frame", Hidden)
