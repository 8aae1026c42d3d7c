"""The values of rows are those that Spark's own rows have, of all types that there are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from random import Random
from typing import Any, Final, cast

import attrs
import pytest

from reactive_aio import Flow

pytestmark = pytest.mark.spark
types: Any = pytest.importorskip("pyspark.sql.types")
pa: Any = pytest.importorskip("pyarrow")

from reactive_aio.spark._source.source import FromSpark  # noqa: E402
from reactive_aio.spark._task.rows import WIDE, Reading  # noqa: E402
from reactive_aio.spark._task.values import values_of  # noqa: E402
from reactive_aio.spark._task.worker import RegionTask  # noqa: E402
from reactive_aio.spark._task.zones import NAMES, zone_of  # noqa: E402

Row = types.Row
NEW_YORK: Final = "America/New_York"
SUMMER_ENDS: Final = (
    1_699_160_400  # 2023-11-05 05:00 UTC, 01:00 in New York, where it is one o'clock again an hour later
)
Made = Callable[[Flow[Any]], Flow[Any]]


class Celsius(types.UserDefinedType):  # type: ignore[misc]  # PySpark is imported as Any
    """A type of somebody's own."""

    @classmethod
    def sqlType(cls) -> Any:  # noqa: N802 - of PySpark
        return types.StructType([types.StructField("tenths", types.LongType())])

    @classmethod
    def module(cls) -> str:
        return __name__

    def serialize(self, obj: Degrees) -> Any:
        return (obj.tenths,)

    def deserialize(self, datum: Any) -> Degrees:
        if datum.tenths < -2731:
            raise ValueError(f"{datum.tenths} is too cold")
        return Degrees(datum.tenths)


@attrs.frozen
class Degrees:
    tenths: int
    __UDT__ = Celsius()


@pytest.fixture(params=["loop", "workers"])
def made_by(request: pytest.FixtureRequest) -> Made:
    """Rows are made by the loop where there is no function to call on them, else by the workers."""
    return (lambda flow: flow) if request.param == "loop" else (lambda flow: flow.map(lambda row: row))


# -- all types

FLAT: Final[tuple[tuple[str, Callable[[Random], Any]], ...]] = (
    ("byte", lambda random: random.randint(-128, 127)),
    ("short", lambda random: random.randint(-(2**15), 2**15 - 1)),
    ("int", lambda random: random.randint(-(2**31), 2**31 - 1)),
    ("long", lambda random: random.randint(-(2**63), 2**63 - 1)),
    ("float", lambda random: float(random.randint(-99, 99)) / 4),
    ("double", lambda random: random.gauss()),
    ("boolean", lambda random: random.random() < 0.5),
    ("string", lambda random: "é" * random.randrange(4)),
    ("binary", lambda random: random.randbytes(random.randrange(4))),
    ("date", lambda random: dt.date.fromordinal(random.randint(1, dt.date.max.toordinal()))),
    ("timestamp_ntz", lambda random: dt.datetime.min + dt.timedelta(microseconds=random.randrange(315 * 10**15))),
    ("interval day to second", lambda random: dt.timedelta(microseconds=random.randint(-(10**15), 10**15))),
    ("decimal(20,3)", lambda random: types.decimal.Decimal(random.randint(-(10**19), 10**19)).scaleb(-3)),
)
"""Texts of types, and what draws a value of each."""


def some_type(random: Random, deep: int, *, key: bool = False) -> tuple[str, Callable[[Random], Any]]:
    """Draw a type, and what draws its values."""
    shape = random.choice(["flat", "struct"] if key else ["flat", "array", "map", "struct"]) if deep else "flat"
    if shape == "flat":
        return random.choice(FLAT)
    if shape == "array":
        text, draw = some_type(random, deep - 1)
        return f"array<{text}>", lambda random: [some(random, draw) for _ in range(random.randrange(4))]
    if shape == "map":
        (key_text, draw_key), (text, draw) = some_type(random, deep - 1, key=True), some_type(random, deep - 1)
        return f"map<{key_text},{text}>", lambda random: {
            draw_key(random): some(random, draw) for _ in range(random.randrange(4))
        }
    fields = [some_type(random, deep - 1, key=key) for _ in range(random.randint(1, 3))]
    text = ",".join(f"f{at}:{text}" for at, (text, _) in enumerate(fields))
    return f"struct<{text}>", lambda random: tuple(draw(random) if key else some(random, draw) for _, draw in fields)


def some(random: Random, draw: Callable[[Random], Any]) -> Any:
    return None if random.random() < 0.2 else draw(random)


@pytest.mark.parametrize("seed", range(4))
async def test_rows_are_those_of_collect_whatever_their_types(spark: Any, made_by: Made, seed: int) -> None:
    random = Random(seed)
    columns = [*FLAT, *(some_type(random, 3) for _ in range(6))]
    schema = ", ".join(f"c{at} {text}" for at, (text, _) in enumerate(columns))
    data = [tuple(some(random, draw) for _, draw in columns) for _ in range(300)]
    frame = spark.createDataFrame(data, schema).coalesce(1)

    assert frame.collect() == await made_by(Flow.from_spark(frame)).to_list()


async def test_fields_of_a_struct_and_columns_may_have_any_names(spark: Any, made_by: Made) -> None:
    frame = spark.sql(
        "select 1 as `a``b`, 2 as `c.d`, 3 as `c.d`, named_struct('a', 1, 'A', 2, 'a', 3) as s, "
        "array(map(named_struct('a', 1, 'a', 2), 3)) as m"
    )
    (expected,) = frame.collect()

    assert [expected] == (found := await made_by(Flow.from_spark(frame)).to_list())
    assert expected.__fields__ == found[0].__fields__
    assert expected.s.__fields__ == found[0].s.__fields__


@pytest.mark.parametrize("name", ["a.b", "a`b", "`a.b`", "*", "", " ", "a[0]", "ß", "row", "true", "0"])
async def test_a_column_may_have_any_name(spark: Any, made_by: Made, name: str) -> None:
    frame = spark.createDataFrame([(1, 2)], types.StructType().add(name, "long").add("other", "long"))

    assert frame.collect() == await made_by(Flow.from_spark(frame)).to_list()
    assert [{name: 1, "other": 2}] == await made_by(Flow.from_spark(frame, as_=dict)).to_list()
    assert frame.collect() == Flow.from_spark(frame).to_frame(frame.schema).collect()


@attrs.frozen
class Upper:
    A: int
    b: int


async def test_a_class_has_the_column_of_its_field_where_another_one_differs_in_case(spark: Any) -> None:
    frame = spark.sql("select 1 as a, 2 as A, 3 as b")

    assert [Upper(2, 3)] == await Flow.from_spark(frame, as_=Upper).to_list()
    assert [(2, 3)] == [tuple(row) for row in Flow.from_spark(frame, as_=Upper).to_frame(Upper).collect()]


async def test_a_struct_that_is_the_key_of_a_map_is_a_row_where_rows_are_dicts(spark: Any, made_by: Made) -> None:
    frame = spark.sql("select map(named_struct('a', 1), named_struct('b', 2)) as m")

    assert [{"m": {Row(a=1): {"b": 2}}}] == await made_by(Flow.from_spark(frame, as_=dict)).to_list()


async def test_a_frame_of_very_many_columns(spark: Any, made_by: Made) -> None:
    columns = [f"id * {at} as c{at}" for at in range(150)]
    frame = spark.range(0, 300, 1, 2).selectExpr(
        *columns, "if(id = 7, null, array(named_struct('a', id))) as c150", "id as c1"
    )

    assert frame.collect() == await made_by(Flow.from_spark(frame)).to_list()
    assert [n * 149 for n in range(300)] == [row[149] for row in await Flow.from_spark(frame, as_=tuple).to_list()]


def test_the_columns_of_a_wide_frame_are_not_looked_up_one_by_one(spark: Any) -> None:
    """Which takes seconds for two thousand of them."""
    frame = spark.range(1).selectExpr(*(f"id as c{at}" for at in range(WIDE + 1)))
    source = FromSpark(frame, Reading(tuple), 64)
    readable, task = source.readable(frame, RegionTask("", b"", Reading(tuple), address=cast("Any", None)))

    assert task.reading is not None
    assert (["row"], True, False) == (readable.columns, task.reading.packed, task.sliced)


async def test_an_empty_struct_is_an_empty_row(spark: Any, made_by: Made) -> None:
    frame = spark.sql("select named_struct() as v, array(named_struct()) as w")

    assert frame.collect() == await made_by(Flow.from_spark(frame)).to_list()


async def test_a_type_of_somebodys_own_arrives_as_its_values(spark: Any, made_by: Made) -> None:
    rows = [(Degrees(1), [Degrees(2)]), (None, [None])]
    schema = types.StructType([types.StructField("v", Celsius()), types.StructField("w", types.ArrayType(Celsius()))])
    frame = spark.createDataFrame(rows, schema).coalesce(1)

    assert rows == await made_by(Flow.from_spark(frame, as_=tuple)).to_list()


async def test_what_a_type_of_somebodys_own_raises_comes_behind_the_rows_before(spark: Any) -> None:
    schema = types.StructType([types.StructField("v", Celsius())])
    frame = spark.createDataFrame([(Degrees(n),) for n in (1, 2, -9999, 3)], schema).coalesce(1)
    found: list[Any] = []
    with pytest.raises(ValueError, match="-9999 is too cold"):
        await Flow.from_spark(frame, as_=tuple).for_each(found.append)

    assert [(Degrees(1),), (Degrees(2),)] == found


async def test_variants_and_places_arrive_as_their_values(spark: Any, made_by: Made) -> None:
    point = "x'0101000000000000000000f03f0000000000000040'"
    frame = spark.sql(
        f"select parse_json('[1]') as v, array(parse_json('2')) as w, st_geomfromwkb({point}) as m, st_geogfromwkb({point}) as g"
    )
    (expected,), (found,) = frame.collect(), await made_by(Flow.from_spark(frame)).to_list()

    assert ("[1]", "2") == (found.v.toJson(), found.w[0].toJson())
    assert [type(each) for each in expected] == [type(each) for each in found]
    assert (bytes(expected.m.wkb), expected.m.srid) == (found.m.wkb, found.m.srid)
    assert (bytes(expected.g.wkb), expected.g.srid) == (found.g.wkb, found.g.srid)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("interval '1' year", "v: Python has no values of type interval year"),
        ("array(make_interval(1, 2, 3))", "v: Python has no values of type interval"),
        ("map(array(1), 2)", "v: a key of type array<int> can't be the key of a dict"),
    ],
)
def test_what_has_no_value_in_python_is_refused_when_the_flow_is_built(spark: Any, column: str, told: str) -> None:
    frame = spark.sql(f"select 1 as a, {column} as v")

    with pytest.raises(TypeError) as refused:
        Flow.from_spark(frame)
    assert told in str(refused.value)


@attrs.frozen
class OnlyA:
    a: int


async def test_a_class_may_leave_out_what_has_no_value_in_python(spark: Any) -> None:
    frame = spark.sql("select 1 as a, interval '1' year as v")

    assert [OnlyA(1)] == await Flow.from_spark(frame, as_=OnlyA).to_list()


# -- dates and times beyond Python's


@attrs.frozen
class Dated:
    d: dt.date


@pytest.mark.parametrize("as_", [tuple, Row, dict, Dated])
@pytest.mark.parametrize("column", ["date'+10000-01-01'", "date'-0001-01-01'"])
async def test_a_date_that_python_has_no_value_for_is_an_error(
    spark: Any, made_by: Made, as_: type[Any], column: str
) -> None:
    frame = spark.sql(f"select {column} as d")
    with pytest.raises(ValueError, match="is not a date of Python") as failed:
        await made_by(Flow.from_spark(frame, as_=as_)).to_list()

    assert "in column d" in failed.value.__notes__
    assert column.removeprefix("date'").strip("+'") in str(failed.value)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("inside", ["{}", "array({})", "map(1, named_struct('a', {}))"])
async def test_a_time_that_python_has_no_value_for_is_an_error(spark: Any, kind: str, inside: str) -> None:
    for year in ("+10000", "+200000", "-0044"):
        column = inside.format(f"{kind}'{year}-03-15 12:00:00'")
        frame = spark.sql(f"select {column} as t")

        with pytest.raises(ValueError, match="is not a datetime of Python"):
            await Flow.from_spark(frame, as_=tuple).to_list()


async def test_the_rows_before_a_date_beyond_pythons_come_before_the_error(spark: Any, made_by: Made) -> None:
    frame = spark.range(0, 3000, 1, 1).selectExpr("id", "if(id = 1234, date'+10000-01-01', date'2024-01-01') as d")
    found: list[int] = []
    with pytest.raises(ValueError, match="10000-01-01 is not a date"):
        await made_by(Flow.from_spark(frame, as_=tuple)).for_each(lambda row: found.append(row[0]))

    assert list(range(1234)) == found


def test_the_error_is_that_of_the_first_row_in_whichever_column() -> None:
    batch = pa.record_batch({"a": pa.array([0, 1, 2932897], pa.date32()), "b": pa.array([0, -719163, 0], pa.date32())})
    rows = Reading(tuple).elements(batch)

    assert (dt.date(1970, 1, 1), dt.date(1970, 1, 1)) == next(rows)
    with pytest.raises(ValueError, match="not a date of Python") as failed:
        next(rows)
    assert ["in column b"] == failed.value.__notes__


def test_the_first_and_the_last_that_python_has() -> None:
    for value in (dt.datetime.min, dt.datetime.max, None):
        assert [value] == values_of(pa.array([value], pa.timestamp("us")), tuple)
        assert [value and value.date()] == values_of(pa.array([value and value.date()], pa.date32()), tuple)


# -- time zones


def test_an_hour_that_comes_twice_has_a_fold_the_second_time() -> None:
    instants = [SUMMER_ENDS + 900 * at for at in range(-4, 12)] + [None]
    expected = [None if each is None else dt.datetime.fromtimestamp(each, zone_of(NEW_YORK)) for each in instants]
    column = pa.array([None if each is None else 10**6 * each for each in instants], pa.int64())
    column = column.cast(pa.timestamp("us", NEW_YORK))
    found = values_of(column, tuple)
    nested = values_of(pa.array([{"t": each} for each in column.to_pylist()], pa.struct({"t": column.type})), tuple)

    wanted = [each and (each.replace(tzinfo=None), each.fold) for each in expected]
    assert wanted == [each and (each, each.fold) for each in found]
    assert wanted == [t and (t, t.fold) for (t,) in nested]
    assert 1 in {each.fold for each in found if each}


@pytest.mark.parametrize("name", [NEW_YORK, "Australia/Sydney", "Africa/Casablanca"])
def test_summer_time_is_known_of_all_years(name: str) -> None:
    """Arrow does not know it beyond 2037."""
    years = (2, 1883, 1950, 2024, 2037, 2038, 2050, 9998)
    instants = [dt.datetime(year, month, 6, 5, 30, tzinfo=dt.UTC) for year in years for month in range(1, 13)]
    instants += [each + dt.timedelta(hours=1) for each in instants]
    expected = [each.astimezone(zone_of(name)).replace(tzinfo=None) for each in instants]

    found = values_of(pa.array(instants, pa.timestamp("us", name)), tuple)

    assert [(each, each.fold) for each in expected] == [(each, each.fold) for each in found]


@pytest.mark.parametrize("name", [NEW_YORK, "Australia/Sydney", "+02:00"])
def test_the_last_times_of_python_are_read_in_any_zone(name: str) -> None:
    last = dt.datetime.max.replace(microsecond=0)
    offset = zone_of(name).utcoffset(last)
    assert offset is not None
    instants = pa.array([last], pa.timestamp("us")).view(pa.int64()).to_numpy() - offset // dt.timedelta(microseconds=1)

    assert [last] == values_of(pa.array(instants).view(pa.timestamp("us", name)), tuple)
    with pytest.raises(ValueError, match=r"10000"):
        values_of(pa.array(instants + 10**6).view(pa.timestamp("us", name)), tuple)


async def test_instants_are_the_same_there_and_back(spark: Any, tmp_path: Any, made_by: Made) -> None:
    from reactive_aio.spark.sink import Files

    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
    try:
        frame = spark.range(0, 16, 1, 1).selectExpr(f"timestamp_seconds({SUMMER_ENDS - 3600} + 900 * id) as t")
        flow = made_by(Flow.from_spark(frame, as_=tuple))
        await flow.to_spark(Files(spark, tmp_path / "there"), "t timestamp")
        back = spark.read.parquet(str(tmp_path / "there")).selectExpr("unix_seconds(t)").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    assert [SUMMER_ENDS - 3600 + 900 * at for at in range(16)] == sorted(row[0] for row in back)


@pytest.mark.parametrize(
    "name", ["PST", "EST", "Z", "GMT", "UTC", "UT", "+8", "-03:30", "UTC+8", "GMT-11:15", "+0530", NEW_YORK]
)
async def test_every_name_of_a_zone_means_what_it_means_to_spark(spark: Any, tmp_path: Any, name: str) -> None:
    from reactive_aio.spark.sink import Files

    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        frame = spark.sql(
            f"select timestamp_seconds({SUMMER_ENDS}) as t, cast(timestamp_seconds({SUMMER_ENDS}) as string) as s"
        )
        ((found, shown),) = await Flow.from_spark(frame, as_=tuple).to_list()
        await Flow.of((found,)).to_spark(Files(spark, tmp_path / "there"), "t timestamp")
        back = spark.read.parquet(str(tmp_path / "there")).selectExpr("unix_seconds(t)").first()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    assert (shown, SUMMER_ENDS) == (str(found), back[0])


def test_short_names_are_those_of_java(sc: Any) -> None:
    java = dict(sc._jvm.java.time.ZoneId.SHORT_IDS)
    here = {name: NAMES[name] for name in java}
    then = dt.datetime(2024, 7, 1)

    for name, zone in java.items():
        assert (name, zone_of(zone).utcoffset(then)) == (name, zone_of(here[name]).utcoffset(then))


# -- slices of columns


def test_nested_values_of_a_slice_are_those_of_its_rows() -> None:
    rows = [None, [(1, {"a": [1]})], [], [(2, None), (3, {"a": None})], [(4, {"a": [4, None]})]]
    column = pa.array(rows, pa.map_(pa.int32(), pa.struct({"a": pa.list_(pa.int64())})))
    expected = [None if each is None else dict(each) for each in rows]

    assert expected == values_of(column, dict)
    assert expected[2:4] == values_of(column.slice(2, 2), dict)
    assert [] == values_of(column.slice(2, 0), dict)


def test_a_zone_that_only_java_knows_is_told_with_the_setting_and_a_way_out() -> None:
    with pytest.raises(ValueError, match=r"spark.sql.session.timeZone is 'SystemV/PST8PDT', .* Set it to a region"):
        zone_of("SystemV/PST8PDT")
