"""Elements as columns: what fits, and how what doesn't is named."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import attrs
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    DayTimeIntervalType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from reactive_aio import SchemaMismatchError
from reactive_aio.spark._task.zones import zone_of
from reactive_aio.spark.sink._columns import Columns
from reactive_aio.spark.sink._schema import struct_of

pytestmark = pytest.mark.spark

UTC = dt.UTC


@attrs.frozen
class Place:
    lat: float
    tags: list[str]


PLACE: Any = Place
"""The class by no type, to be given what is wrong."""


@attrs.frozen
class Visit:
    id: int
    name: str | None
    at: dt.datetime
    place: Place | None = None


def columns(schema: Any, zone: str = "UTC") -> Columns:
    return Columns(struct_of("to_spark", schema), schema if isinstance(schema, type) else None, ZoneInfo(zone))


class Turned(NamedTuple):
    name: str
    id: int


class Named(NamedTuple):
    number: int
    text: str


class Alone(NamedTuple):
    id: int


@dataclass
class Data:
    name: str
    id: int
    more: int = 0


@dataclass(frozen=True, slots=True)
class Slots:
    name: str
    id: int


TWO = StructType([StructField("id", LongType(), False), StructField("name", StringType())])
HERE = dt.datetime(2024, 7, 1, 12)


@pytest.mark.parametrize(
    "item",
    [
        (1, "a"),
        [1, "a"],
        {"name": "a", "id": 1, "more": 2},
        Row(name="a", id=1),
        Visit(1, "a", HERE),
        Turned("a", 1),
        Named(1, "a"),
        Data("a", 1),
        Slots("a", 1),
    ],
    ids=lambda item: type(item).__name__,
)
@pytest.mark.parametrize("beside", [[], [(2, "b")]], ids=["alike", "mixed"])
def test_a_row_is_a_sequence_or_has_the_fields_by_name(item: Any, beside: list[Any]) -> None:
    assert {"id": 1, "name": "a"} == columns(TWO).table([item, *beside], 0).to_pylist()[0]


@pytest.mark.parametrize("item", [Turned("a", 1), Data("a", 1), Slots("a", 1), Named(1, "a")])
def test_a_struct_inside_takes_its_fields_in_the_same_way(item: Any) -> None:
    schema = StructType([StructField("n", LongType()), StructField("one", TWO), StructField("some", ArrayType(TWO))])

    (made,) = columns(schema).table([(7, item, [item])], 0).to_pylist()

    assert {"n": 7, "one": {"id": 1, "name": "a"}, "some": [{"id": 1, "name": "a"}]} == made


@pytest.mark.parametrize(
    ("column", "made"),
    [
        (TimestampType(), lambda pandas: pandas.Timestamp(1000)),
        (TimestampType(), lambda pandas: pandas.Timestamp(1000, tz="UTC")),
        (TimestampNTZType(), lambda pandas: pandas.Timestamp(1000)),
        (DayTimeIntervalType(), lambda pandas: pandas.Timedelta(1000)),
    ],
)
def test_nanoseconds_are_refused_and_not_cut_off(column: Any, made: Any) -> None:
    pandas: Any = pytest.importorskip("pandas")
    value, finer = made(pandas), made(pandas) + pandas.Timedelta(1)
    schema = StructType([StructField("a", column), StructField("some", ArrayType(column))])

    assert 1 == columns(schema).table([(value, [value])], 0).num_rows
    with pytest.raises(SchemaMismatchError, match=r"element #1, field a: .* it has nanoseconds"):
        columns(schema).table([(value, []), (finer, [])], 0)
    with pytest.raises(SchemaMismatchError, match=r"element #0, field some: .* it has nanoseconds"):
        columns(schema).table([(value, [finer])], 0)


@pytest.mark.parametrize("column", [TimestampType(), TimestampNTZType()])
def test_a_time_of_pandas_that_is_none_is_not_told_to_have_nanoseconds(column: Any) -> None:
    pandas: Any = pytest.importorskip("pandas")

    with pytest.raises(SchemaMismatchError, match=r"element #0, field a: NaT is not .*: it is not a time. Use None"):
        columns(StructType([StructField("a", column)])).table([(pandas.NaT,)], 0)


@pytest.mark.parametrize("item", [(), [], {}, Row()])
def test_a_struct_without_fields_is_empty(item: Any) -> None:
    schema = StructType([StructField("n", LongType()), StructField("none", StructType([]))])

    assert [{"n": 7, "none": {}}] == columns(schema).table([(7, item)], 0).to_pylist()


@pytest.mark.parametrize("kind", [Visit, Data])
def test_an_object_that_lacks_a_field_is_told(kind: Any) -> None:
    item = Data("a", 1) if kind is Data else Visit(1, "a", HERE)
    schema = StructType([StructField("id", LongType()), StructField("other", LongType())])

    with pytest.raises(SchemaMismatchError, match=r"element #0, field other: .* it has no other"):
        columns(schema).table([item], 0)


@pytest.mark.parametrize("item", [Slots("a", 1), Alone(1), Visit(1, "a", HERE), (1,)])
def test_one_column_is_a_row_of_one_field(item: Any) -> None:
    one = StructType([StructField("id", LongType())])

    assert [{"id": 1}] == columns(one).table([item], 0).to_pylist()


def test_the_value_itself_is_a_row_of_one_column() -> None:
    one = StructType([StructField("n", LongType())])

    assert [{"n": 1}, {"n": 2}] == columns(one).table([1, 2], 0).to_pylist()


def test_objects_inside_objects_become_structs() -> None:
    items = [Visit(1, None, HERE, Place(1.5, ["x"])), Visit(2, "b", HERE)]

    made = columns(Visit).table(items, 0).to_pylist()

    assert [{"lat": 1.5, "tags": ["x"]}, None] == [row["place"] for row in made]


def test_a_time_without_a_zone_has_that_of_the_session_and_others_keep_theirs() -> None:
    items = [Visit(1, "a", HERE), Visit(2, "b", HERE.replace(tzinfo=UTC))]

    made = columns(Visit, "Europe/Berlin").table(items, 0).column("at").to_pylist()

    assert [HERE.replace(hour=10, tzinfo=UTC), HERE.replace(tzinfo=UTC)] == made


@pytest.mark.parametrize("offset", [dt.timedelta(hours=1, microseconds=5), dt.timedelta(seconds=-7, microseconds=-1)])
def test_an_offset_with_microseconds_is_exact(offset: dt.timedelta) -> None:
    at = HERE.replace(tzinfo=dt.timezone(offset))
    several = StructType().add("at", TimestampType()).add("several", ArrayType(TimestampType()))

    made = columns(several).table([(at, [at])], 0).to_pylist()

    assert [{"at": at, "several": [at]}] == made


def test_a_time_whose_zone_knows_no_offset_has_that_of_the_session() -> None:
    class Unknown(dt.tzinfo):
        def utcoffset(self, dt: dt.datetime | None, /) -> None:
            return None

        dst = utcoffset

        def tzname(self, dt: dt.datetime | None, /) -> None:
            return None

    struct = StructType().add("at", TimestampType())
    made = columns(struct, "Europe/Berlin").table([(HERE.replace(tzinfo=Unknown()),)], 0)

    assert [HERE.replace(hour=10, tzinfo=UTC)] == made.column("at").to_pylist()


def test_a_zone_may_be_an_offset() -> None:
    assert dt.timedelta(hours=2) == zone_of("+02:00").utcoffset(HERE)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ((1.5, "a"), r"element #12, field id: 1.5 is not bigint not null: it is of type float"),
        ((True, "a"), r"element #12, field id: True is not bigint not null: it is of type bool"),
        ((None, "a"), r"element #12, field id: None is not bigint not null: it must not be None"),
        ((2**70, "a"), r"element #12, field id: \d+ is not bigint not null: .*too large"),
        ((1, 5), r"element #12, field name: 5 is not string: it is of type int"),
        ((1,), r"element #12, field name: \(1,\) is not a row of 2 columns \(id, name\): it has no name"),
        ((1, "a", 2), r"element #12: .* is not a row of 2 columns"),
        ({"id": 1}, r"element #12, field name: .* it has no name"),
        (7, r"element #12: 7 is not a row of 2 columns"),
    ],
)
def test_what_does_not_fit_is_named_by_index_and_field(bad: Any, told: str) -> None:
    with pytest.raises(SchemaMismatchError, match=told):
        columns(TWO).table([(1, "a"), (2, None), bad, (4, "d")], 10)


def test_a_number_too_large_for_its_column_is_not_cut() -> None:
    small = StructType([StructField("n", IntegerType())])

    with pytest.raises(SchemaMismatchError, match=r"element #1, field n: 1099511627776 is not int"):
        columns(small).table([1, 2**40], 0)


def test_a_number_too_large_for_a_short_float_does_not_become_infinite() -> None:
    short = StructType([StructField("x", FloatType())])
    fit = [1.5, 3, 3.4028235e38, math.inf, -math.inf, None]

    assert fit[:2] == columns(short).table(fit, 0)["x"].to_pylist()[:2]
    for number in (1e39, -1e300):
        with pytest.raises(SchemaMismatchError, match=r"element #6, field x: .* is not float: it is too large"):
            columns(short).table([*fit, number], 0)


def test_a_time_of_a_zone_is_not_taken_for_one_without() -> None:
    struct = StructType([StructField("at", TimestampNTZType())])

    assert [HERE] == columns(struct).table([HERE], 0)["at"].to_pylist()
    with pytest.raises(SchemaMismatchError, match=r"element #1, field at: .* is not timestamp_ntz: it has a time zone"):
        columns(struct).table([HERE, HERE.replace(tzinfo=UTC)], 0)


NOON = dt.time(12, 30, 0, 5)


def test_a_time_of_day_is_no_number_and_has_no_zone() -> None:
    struct = StructType([StructField("at", TimeType())])

    assert [NOON] == columns(struct).table([NOON], 0)["at"].to_pylist()
    with pytest.raises(SchemaMismatchError, match=r"element #1, field at: 5 is not time\(6\): it is of type int"):
        columns(struct).table([NOON, 5], 0)
    with pytest.raises(SchemaMismatchError, match=r"element #1, field at: .* is not time\(6\): it has a time zone"):
        columns(struct).table([NOON, NOON.replace(tzinfo=UTC)], 0)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (PLACE("north", []), "it is of type str"),
        (PLACE(1.0, "tag"), "it is of type str"),
        (PLACE(1.0, [None]), "a value in it must not be None"),
        ((1.0,), "it has no tags"),
    ],
)
def test_what_does_not_fit_inside_is_named_by_the_field_of_the_element(place: Any, told: str) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"element #1, field place: .*: {told}"):
        columns(Visit).table([Visit(1, "a", HERE), Visit(2, "b", HERE, place)], 0)


def test_an_object_of_another_class_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"element #3: \(1, 'a'\) is not a Visit"):
        columns(Visit).table([(1, "a")], 3)
