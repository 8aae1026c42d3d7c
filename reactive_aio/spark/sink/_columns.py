"""Turns elements into columns, and names the place of a value that does not fit.

Types are checked by column, so that an element costs only what its values cost. Only a column that does not fit is
searched for its first wrong value.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import lru_cache, partial
from math import isinf, isnan
from operator import attrgetter, itemgetter
from typing import Any, Final

from attrs import field, frozen
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    FloatType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from ..._fusion import label
from ...errors import SchemaMismatchError
from .._job.told import text_of

# Here `Any` stands for the values of elements, and for Arrow, whose stubs know it by halves.

ACCEPTED: Final[tuple[tuple[type[DataType], tuple[type, ...], tuple[type, ...]], ...]] = (
    (IntegralType, (numbers.Integral,), (bool,)),
    (DecimalType, (Decimal, int), (bool,)),
    (FractionalType, (numbers.Real,), (bool,)),
    (StringType, (str,), ()),
    (BinaryType, (bytes, bytearray), ()),
    (DateType, (date,), (datetime,)),
    (TimestampType, (datetime,), ()),
    (TimestampNTZType, (datetime,), ()),
    (TimeType, (time,), ()),
    (DayTimeIntervalType, (timedelta,), ()),
    (ArrayType, (Sequence,), (str, bytes)),
    (MapType, (Mapping,), ()),
)
"""The Python types that a column takes, and subtypes of these that it does not take.

Arrow alone would cut 1.5 down to 1 for a column of whole numbers, and a string into letters for an array.
"""


NANOSECONDS: Final = {datetime: "nanosecond", timedelta: "nanoseconds"}
"""The attributes that subclasses of these have in pandas."""
INFINITE: Final = 2.0**128 - 2.0**103
"""The least number that a float of four bytes has no room for."""
PLAIN: Final = frozenset({bool, int, float, str, bytes, type(None)})
"""Types that are not a row, but the value of the only column."""


def _arrow() -> Any:
    import pyarrow as pa

    return pa


@frozen
class Columns:
    """Turns elements into a table of Arrow."""

    struct: StructType
    kind: type[Any] | None
    """The class of all elements, if the schema is one."""
    zone: tzinfo
    """The zone of times that name none, as those have none that are read from Spark."""
    schema: Any = field(init=False, repr=False)
    """The schema in Arrow's types."""

    def __attrs_post_init__(self) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        schema: Any = to_arrow_schema(self.struct, timezone="UTC")
        object.__setattr__(self, "schema", schema)

    def table(self, items: Sequence[Any], first: int) -> Any:
        """Return the table of elements. The first of them has the index ``first``."""
        if not items:
            return self.schema.empty_table()
        pa = _arrow()
        arrays = [self._array(at, column, first) for at, column in enumerate(self._columns(items, first))]
        return pa.table(arrays, schema=self.schema)

    def _columns(self, items: Sequence[Any], first: int) -> Sequence[Sequence[Any]]:
        """Return the values of each column."""
        kinds = set(map(type, items))
        if self.kind is None and kinds == {tuple}:
            with suppress(ValueError):  # they have not all the same length
                columns = [*zip(*items, strict=True)]
                if len(columns) == len(self.struct.names):
                    return columns
        return [*zip(*self._rows(items, kinds, first), strict=True)]

    def _rows(self, items: Sequence[Any], kinds: set[type], first: int) -> Iterable[tuple[Any, ...]]:
        names = tuple(self.struct.names)
        if self.kind is None:
            rows = _alike(items, kinds, names)
            return [_row(item, names, first + at) for at, item in enumerate(items)] if rows is None else rows
        if kinds != {self.kind}:
            for at, item in enumerate(items):
                if not isinstance(item, self.kind):
                    raise _mismatch(first + at, None, f"a {self.kind.__name__}", item)
        if len(names) == 1:
            return [(getattr(item, names[0]),) for item in items]
        return map(attrgetter(*names), items)

    def _array(self, at: int, values: Sequence[Any], first: int) -> Any:
        try:
            return self._made(at, values)
        except Exception as error:
            for place, value in enumerate(values):
                try:
                    self._made(at, [value])
                except Exception as own:
                    column = self.struct.fields[at]
                    cause = None if isinstance(own, _Unfit) else own
                    needed = column.dataType.simpleString() + ("" if column.nullable else " not null")
                    raise _mismatch(first + place, column.name, needed, value, text_of(own)) from cause
            raise error

    def _made(self, at: int, values: Sequence[Any]) -> Any:
        pa = _arrow()
        column = self.struct.fields[at]
        kinds = set(map(type, values))
        if type(None) in kinds and not column.nullable:
            raise _Unfit("it must not be None")
        check_types(column.dataType, kinds)
        check_nanoseconds(values, kinds)
        convert = converter(column.dataType, self.zone)
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        return pa.array(values, type=self.schema.types[at])


class _Unfit(Exception):  # noqa: N818 - becomes the error of the library where the element is known
    """A value does not fit its column."""


def check_types(wanted: DataType, kinds: set[type]) -> None:
    """Raise for values of types that the column would misread, or refuse."""
    for data_type, accepted, refused in ACCEPTED:
        if isinstance(wanted, data_type):
            for kind in kinds - {type(None)}:
                if not issubclass(kind, accepted) or (refused and issubclass(kind, refused)):
                    raise _Unfit(f"it is of type {kind.__name__}")
            return


def check_nanoseconds(values: Iterable[Any], kinds: set[type]) -> None:
    """Raise for a time or a span of pandas with nanoseconds, which Arrow would cut off, and for its NaT, which has NaN of them."""
    for python, name in NANOSECONDS.items():
        if any(issubclass(kind, python) and hasattr(kind, name) for kind in kinds):
            for value in values:
                if nanoseconds := getattr(value, name, 0):
                    raise _Unfit("it is not a time. Use None" if isnan(nanoseconds) else "it has nanoseconds")


def converter(wanted: DataType, zone: tzinfo) -> Callable[[Any], Any] | None:
    """Return the function that turns a value into one that Arrow takes, or None if Arrow takes the value itself."""
    if isinstance(wanted, TimestampType):
        return partial(_instant, zone)
    if (checked := CHECKED.get(type(wanted))) is not None:
        return checked
    if isinstance(wanted, ArrayType):
        item = _inside(wanted.elementType, zone, wanted.containsNull)
        return lambda value: [item(each) for each in value]
    if isinstance(wanted, MapType):
        key, item = (
            _inside(wanted.keyType, zone, nullable=False),
            _inside(wanted.valueType, zone, wanted.valueContainsNull),
        )
        return lambda value: [(key(k), item(v)) for k, v in value.items()]
    if isinstance(wanted, StructType):
        names = tuple(wanted.names)
        parts = [_inside(each.dataType, zone, each.nullable) for each in wanted.fields]
        return lambda value: {
            name: part(each) for name, part, each in zip(names, parts, _row(value, names, None), strict=True)
        }
    return None


def _instant(zone: tzinfo, value: datetime) -> datetime:
    """Return a time with an offset from UTC in whole seconds. Arrow would cut off microseconds of it, and take none for UTC."""
    offset = value.utcoffset()
    if offset is None:
        return value.replace(tzinfo=zone)
    return value.astimezone(UTC) if offset.microseconds else value


def _without_zone(value: datetime | time) -> datetime | time:
    """Raise for a time with a zone. Arrow would convert it to UTC, or forget the zone."""
    if value.tzinfo is not None:
        raise _Unfit("it has a time zone")
    return value


def _finite(value: float) -> float:
    """Refuse a number that Arrow would make infinite."""
    if abs(value) >= INFINITE and not isinf(value):
        raise _Unfit("it is too large")
    return value


CHECKED: Final[dict[type[DataType], Callable[[Any], Any]]] = {
    TimestampNTZType: _without_zone,
    TimeType: _without_zone,
    FloatType: _finite,
}
"""The functions that look at each value of a type, and leave it as it is."""


def _inside(wanted: DataType, zone: tzinfo, nullable: bool) -> Callable[[Any], Any]:
    convert = converter(wanted, zone)
    fine = isinstance(wanted, (TimestampType, TimestampNTZType, DayTimeIntervalType))

    def checked(value: Any) -> Any:
        if value is None:
            if not nullable:
                raise _Unfit("a value in it must not be None")
            return None
        kinds: set[type] = {type(value)}
        check_types(wanted, kinds)
        if fine:
            check_nanoseconds((value,), kinds)
        return value if convert is None else convert(value)

    return checked


Names = tuple[str, ...]


def _alike(items: Sequence[Any], kinds: set[type], names: Names) -> Iterable[tuple[Any, ...]] | None:
    """Return the values of elements of one kind, without a look at each. None if each has to be looked at."""
    if len(kinds) == 1 and len(names) > 1:
        kind: Any = next(iter(kinds))
        take = itemgetter(*names) if kind is dict else by_name(kind, names)
        try:
            return None if take is None else list(map(take, items))
        except (KeyError, AttributeError):  # who looks at each can tell which
            return None
    return zip(items, strict=True) if len(names) == 1 and kinds <= PLAIN else None


@lru_cache(maxsize=256)
def by_name(kind: Any, names: Names) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return what takes the values of an object by the names of the columns; None for a class that has no such names.

    A NamedTuple has them if its fields are the columns, in any order. Of other ones the places count, as of any tuple.
    """
    fields: Any = getattr(kind, "_fields", ())
    if issubclass(kind, tuple):
        if not names or sorted(map(str, fields)) != sorted(names):
            return None
        places = [fields.index(name) for name in names]
        return itemgetter(*places) if len(names) > 1 else lambda item: (item[0],)
    if issubclass(kind, (Mapping, list)) or not (hasattr(kind, "__attrs_attrs__") or is_dataclass(kind)):
        return None
    if len(names) > 1 and all(map(str.isidentifier, names)):  # to attrgetter a dot leads into an attribute
        return attrgetter(*names)
    return lambda item: tuple([getattr(item, name) for name in names])


def _row(item: object, names: Names, index: int | None) -> tuple[Any, ...]:
    """Return the values of an element by column. Without an index it is a part of an element."""
    given: Any = item  # isinstance narrows the other to one of unknown parts
    kind: Any = type(item)
    missing: str | None = None
    if isinstance(item, Mapping) or (isinstance(item, Row) and hasattr(item, "__fields__")):
        present: Any = given.asDict() if isinstance(item, Row) else given
        try:
            return tuple([present[name] for name in names])
        except KeyError as error:
            missing = str(error.args[0])
    elif (take := by_name(kind, names)) is not None:
        try:
            return take(given)
        except AttributeError:
            missing = next((name for name in names if not hasattr(given, name)), None)
    elif isinstance(item, (tuple, list)):
        values: tuple[Any, ...] = tuple(given)
        if len(values) == len(names):
            return values
        missing = names[len(values)] if len(values) < len(names) else None
    elif len(names) == 1:
        return (given,)
    if index is None:
        raise _Unfit("it has no " + (missing or "such fields"))
    wanted = f"a row of {len(names)} columns ({', '.join(names)})"
    raise _mismatch(index, missing, wanted, given, "" if missing is None else f"it has no {missing}")


def _mismatch(index: int, name: str | None, wanted: str, value: object, why: str = "") -> SchemaMismatchError:
    shown = label(value, 80)
    place = f"element #{index}" + ("" if name is None else f", field {name}")
    return SchemaMismatchError(f"{place}: {shown} is not {wanted}" + (f": {why}" if why else ""))
