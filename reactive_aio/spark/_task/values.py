"""Columns of Arrow as Python values, the same that Spark's own rows have.

All at once on each level of a nested type: a level of structs costs little more than its fields do by themselves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, repeat
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    DataType,
    Geography,
    GeographyType,
    Geometry,
    GeometryType,
    MapType,
    StructType,
    UserDefinedType,
    VariantType,
    VariantVal,
)

from .zones import zone_of

# Here `Any` stands for the values of a DataFrame, which are of all types there are, and for arrays and types
# of Arrow, whose stubs know them by halves.

EPOCH: Final = dt.datetime(1970, 1, 1)
MICROSECOND: Final = dt.timedelta(microseconds=1)
DAYS: Final = (dt.date.min - EPOCH.date()).days, (dt.date.max - EPOCH.date()).days
MICROSECONDS: Final = (dt.datetime.min - EPOCH) // MICROSECOND, (dt.datetime.max - EPOCH) // MICROSECOND
"""The first and the last that Python has. Spark has some hundred thousand years more in either direction."""
FAR: Final = (dt.datetime(2037, 1, 1) - EPOCH) // MICROSECOND
"""From here on Arrow knows no summer time: it reads the dates on which clocks are set, and not the rule behind the last of them."""
LATE: Final = (dt.datetime(9999, 1, 1) - EPOCH) // MICROSECOND
SAME_AGAIN: Final = dt.timedelta(days=146_097) // MICROSECOND
"""400 years, in which the calendar comes round."""

Maker = Callable[[Any], Any]
RESTORED: Final[dict[type[DataType], Maker]] = {
    VariantType: lambda row: VariantVal(row.value, row.metadata),
    GeometryType: lambda row: Geometry(row.wkb, row.srid),
    GeographyType: lambda row: Geography(row.wkb, row.srid),
}
"""Makes a value of the struct that Arrow has for it."""


def values_of(column: Any, kind: type[Any], declared: DataType | None = None) -> list[Any]:
    """Turn a column into Python values. A struct inside becomes a ``kind``, or a dict where that is a class.

    ``declared`` is its type in Spark, where Arrow's does not say all (see `says_more`).
    """
    import pyarrow as pa

    if isinstance(declared, UserDefinedType):
        return _restored(values_of(column, Row, declared.sqlType()), declared.deserialize)
    if declared is not None and (make := RESTORED.get(type(declared))) is not None:
        return _restored(values_of(column, Row), make)
    return (_nested if pa.types.is_nested(column.type) else _flat)(column, kind, declared)


def says_more(declared: DataType) -> bool:
    """Return whether the Spark type is needed to make the values, because the Arrow type does not say all."""
    if isinstance(declared, StructType):
        return len(set(declared.names)) < len(declared.names) or any(says_more(each.dataType) for each in declared)
    if isinstance(declared, ArrayType):
        return says_more(declared.elementType)
    if isinstance(declared, MapType):
        return says_more(declared.keyType) or says_more(declared.valueType)
    return isinstance(declared, UserDefinedType) or type(declared) in RESTORED


def _flat(column: Any, _: type[Any], __: DataType | None) -> list[Any]:
    import pyarrow as pa

    type_ = column.type
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return _moments(column)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_):
        return _numbers(column)
    if pa.types.is_time(type_):
        plain: list[Any] = column.to_pylist()
        return plain
    return _through_numpy(column)


def _through_numpy(column: Any) -> list[Any]:
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def _numbers(column: Any) -> list[Any]:
    """Go through numpy, several times faster than value by value. It has no nulls, so these are put back."""
    import pyarrow as pa

    if not column.null_count:
        return _through_numpy(column)
    return _with_nulls(column, _through_numpy(column.fill_null(pa.scalar(0).cast(column.type))))


def _with_nulls(column: Any, values: list[Any]) -> list[Any]:
    """Put None where a column has a null."""
    if column.null_count:
        for place in _places(column.is_null()):
            values[place] = None
    return values


def _places(found: Any) -> Iterable[int]:
    """Return where a column of truth values is true."""
    import pyarrow.compute as pc

    compute: Any = pc
    places: Iterable[int] = compute.indices_nonzero(found).to_pylist()
    return places


def _restored(stored: list[Any], make: Maker) -> list[Any]:
    return [None if each is None else make(each) for each in stored]


# -- nested values


def _nested(column: Any, kind: type[Any], declared: DataType | None) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_struct(column.type):
        return _structs(column, kind, declared)
    if pa.types.is_map(column.type):
        return _maps(column, kind, declared)
    first, last = _span(column)
    items = column.values.slice(first, last - first)
    return _lists(column, values_of(items, kind, getattr(declared, "elementType", None)))


def _structs(column: Any, kind: type[Any], declared: DataType | None) -> list[Any]:
    fields = declared.fields if isinstance(declared, StructType) else None
    names = [each.name for each in column.type] if fields is None else [each.name for each in fields]
    types = repeat(None) if fields is None else (each.dataType for each in fields)
    parts = [values_of(part, kind, each) for part, each in zip(column.flatten(), types, strict=False)]
    rows: Iterator[tuple[Any, ...]] = zip(*parts, strict=True) if parts else repeat((), len(column))
    if kind is tuple:
        made: list[Any] = list(rows)
    elif kind is Row:
        made = list(spark_rows(names, rows))
    else:
        made = [dict(zip(names, row, strict=True)) for row in rows]
    return _with_nulls(column, made)


def _maps(column: Any, kind: type[Any], declared: DataType | None) -> list[Any]:
    keys, items = (declared.keyType, declared.valueType) if isinstance(declared, MapType) else (None, None)
    first, last = _span(column)
    # A dict is no key of another.
    key_values = values_of(column.keys.slice(first, last - first), tuple if kind is tuple else Row, keys)
    pairs = list(zip(key_values, values_of(column.items.slice(first, last - first), kind, items), strict=True))
    return [None if each is None else dict(each) for each in _lists(column, pairs)]


def _lists(column: Any, items: list[Any]) -> list[Any]:
    """Share the values inside among the lists that they are of."""
    offsets: list[int] = column.offsets.to_pylist()
    first = offsets[0]
    return _with_nulls(column, [items[start - first : end - first] for start, end in pairwise(offsets)])


def _span(column: Any) -> tuple[int, int]:
    offsets = column.offsets
    return offsets[0].as_py(), offsets[-1].as_py()


def spark_rows(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Make Rows without the checks of their constructor, which cost more than everything else."""
    plain: Any = tuple
    new, fields = plain.__new__, list(names)
    for values in rows:
        row: Row = new(Row, values)
        row.__dict__["__fields__"] = fields
        yield row


# -- dates and times


def _moments(column: Any) -> list[Any]:
    """Return dates, or times by the clock of the session's time zone, as Spark's own rows have them."""
    import pyarrow as pa

    if getattr(column.type, "tz", None) is None:
        _check_range(column)
        return _through_numpy(column)
    zone = zone_of(column.type.tz)
    always = zone.utcoffset(None)
    if always is not None:
        return _moments(_moved(column.view(pa.timestamp(column.type.unit)), always))
    return _by_the_clock(column.view(pa.timestamp(column.type.unit, str(zone))))


def _moved(times: Any, offset: dt.timedelta) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    return compute.add(times, pa.scalar(offset, pa.duration(times.type.unit))) if offset else times


def _by_the_clock(instants: Any) -> list[Any]:
    """Return the clock's times, with a fold for a time that comes twice, as when summer time ends."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    shown = compute.local_timestamp(instants)
    values = _moments(shown)
    first = compute.assume_timezone(shown, instants.type.tz, ambiguous="earliest", nonexistent="earliest")
    for place in _places(compute.not_equal(first, instants)):
        values[place] = values[place].replace(fold=1)
    numbers = instants.view(pa.int64())
    for place in _places(compute.greater_equal(numbers, FAR)):
        values[place] = _far_away(numbers[place].as_py(), zone_of(instants.type.tz))
    return values


def _far_away(instant: int, zone: dt.tzinfo) -> dt.datetime:
    """Return the time on the clock, by Python's rules."""
    if instant >= LATE:  # where a clock shows the end of 9999, UTC may have the year 10000
        before = _far_away(instant - SAME_AGAIN, zone)
        return before.replace(year=before.year + 400)
    return (EPOCH.replace(tzinfo=dt.UTC) + instant * MICROSECOND).astimezone(zone).replace(tzinfo=None)


def _check_range(column: Any) -> None:
    """Raise for a value without a type in Python, because numpy would make a plain number of it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    is_date = pa.types.is_date32(column.type)
    first, last = DAYS if is_date else MICROSECONDS
    numbers = column.view(pa.int32() if is_date else pa.int64())
    found = compute.min_max(numbers)
    if not found["min"].is_valid or (first <= found["min"].as_py() and found["max"].as_py() <= last):
        return
    beyond = compute.or_(compute.less(numbers, first), compute.greater(numbers, last))
    place = next(iter(_places(beyond)))
    kind = "date" if is_date else "datetime"
    raise ValueError(f"{_shown(column, place)} is not a {kind} of Python, whose years are 1 to 9999")


def _shown(column: Any, place: int) -> str:
    text: str = column[place : place + 1].cast("string")[0].as_py()
    return text
