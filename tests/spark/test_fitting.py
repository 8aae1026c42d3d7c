"""Whether a class fits the columns of a frame, told when the flow is built."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, NewType, Protocol, Union

import attrs
import pytest

from reactive_aio import Flow

pytestmark = pytest.mark.spark
types: Any = pytest.importorskip("pyspark.sql.types")

from reactive_aio.spark._task.fitting import check_fit  # noqa: E402

Metres = NewType("Metres", float)


class Sized(Protocol):
    def __len__(self) -> int: ...


LONG, DOUBLE, STRING = types.LongType(), types.DoubleType(), types.StringType()
TAKEN: Final[list[tuple[Any, Any]]] = [
    (int, LONG),
    (int, types.ByteType()),
    (int, types.BooleanType()),
    (float, LONG),
    (complex, DOUBLE),
    (Metres, DOUBLE),
    (Annotated[int, "id"], LONG),
    (int | None, LONG),
    (Union[str, None], types.NullType()),  # noqa: UP007 - as it was once written
    (Any, types.BinaryType()),
    (object, types.MapType(STRING, LONG)),
    (Hashable, STRING),
    (Sized, STRING),
    (Literal["a", "b"], STRING),
    (dt.date, types.DateType()),
    (dt.date, types.TimestampType()),
    (dt.datetime, types.TimestampNTZType()),
    (dt.timedelta, types.DayTimeIntervalType()),
    (Decimal, types.DecimalType(10, 2)),
    (list, types.ArrayType(LONG)),
    (list[int], types.ArrayType(LONG)),
    (Sequence[int | None], types.ArrayType(LONG)),
    (Mapping[str, list[float]], types.MapType(STRING, types.ArrayType(LONG))),
    (dict[str, Any], types.StructType().add("a", LONG)),
]
REFUSED: Final[list[tuple[Any, Any, str]]] = [
    (int, STRING, "declared as int, but string arrives as str"),
    (int, DOUBLE, "declared as int, but double arrives as float"),
    (bool, LONG, "declared as bool, but bigint arrives as int"),
    (str, types.NullType(), "declared as str, but void arrives as NoneType"),
    (float, types.DecimalType(10, 2), r"declared as float, but decimal\(10,2\) arrives as Decimal"),
    (dt.datetime, types.DateType(), "declared as datetime, but date arrives as date"),
    (str | None, LONG, r"declared as str \| None, but bigint arrives as int"),
    (Literal["a"], LONG, "declared as .*Literal"),
    (tuple, types.ArrayType(LONG), r"declared as tuple, but array<bigint> arrives as list\[int\]"),
    (list[str], types.ArrayType(LONG), r"declared as list\[str\], but array<bigint> arrives as list\[int\]"),
    (dict[str, int], types.MapType(STRING, STRING), r"arrives as dict\[str, str\]"),
    (Metres, STRING, "arrives as str"),
]


def one_field(hint: Any) -> type[Any]:
    return attrs.make_class("One", {"a": attrs.field(type=hint)})


@pytest.mark.parametrize(("hint", "found"), TAKEN, ids=str)
def test_a_field_takes_what_arrives_as_its_type_or_stands_in_for_it(hint: Any, found: Any) -> None:
    check_fit(one_field(hint), types.StructType().add("a", found))


@pytest.mark.parametrize(("hint", "found", "told"), REFUSED, ids=str)
def test_a_column_of_another_type_is_refused(hint: Any, found: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        check_fit(one_field(hint), types.StructType().add("a", found))


@attrs.frozen
class Flight:
    carrier: str
    year: int
    month: int
    tail: str = "none"
    day: int = 1
    hour: int = attrs.field(default=0, converter=int)
    label: str = attrs.field(init=False, default="")


def test_every_misfit_is_listed_in_one_error(spark: Any) -> None:
    frame = spark.createDataFrame([], "year string, month long, day double, hour string, label long")

    with pytest.raises(TypeError) as raised:
        Flow.from_spark(frame, as_=Flight)

    assert [
        "from_spark(as_=Flight): the class does not fit the frame",
        "  carrier: the frame has no such column",
        "  year: declared as int, but string arrives as str",
        "  day: declared as int, but double arrives as float",
        "The columns are year string, month bigint, day double, hour string, label bigint",
    ] == str(raised.value).splitlines()


def test_what_nobody_can_check_is_taken() -> None:
    @attrs.frozen
    class Here:
        a: NowhereToBeFound  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    check_fit(Here, types.StructType().add("a", LONG))


def test_columns_of_one_name_are_refused_where_one_would_be_lost(spark: Any) -> None:
    frame = spark.range(3).selectExpr("id", "id + 1 as id", "1 as a")

    with pytest.raises(TypeError, match=r"as_=dict\): the frame has more than one column named id\."):
        Flow.from_spark(frame, as_=dict)
    with pytest.raises(TypeError, match="id: the frame has more than one such column"):
        Flow.from_spark(frame, as_=attrs.make_class("Twice", ["id"]))


@pytest.mark.parametrize("as_", [None, tuple])
def test_columns_of_one_name_keep_their_places(spark: Any, as_: Any) -> None:
    frame = spark.range(1).selectExpr("id", "id + 1 as ID", "2 as a")

    (row,) = Flow.from_spark(frame, **({"as_": as_} if as_ else {})).run_sync()

    assert (0, 1, 2) == row
    assert as_ or frame.first().__fields__ == row.__fields__
