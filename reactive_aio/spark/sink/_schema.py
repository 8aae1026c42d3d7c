"""The columns: a schema of PySpark, its text, or an attrs class whose fields are the columns."""

from __future__ import annotations

import datetime as dt
import types
from collections import Counter
from decimal import Decimal
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import attrs
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    TimeType,
)

from .._job.asking import check_text
from .._task.values import says_more

# `Any` stands for annotations here, which are of no type that could be named.

Schema: TypeAlias = "str | StructType | type[Any]"

PLAIN: Final[dict[Any, DataType]] = {
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    str: StringType(),
    bytes: BinaryType(),
    Decimal: DecimalType(38, 18),
    dt.datetime: TimestampType(),
    dt.date: DateType(),
    dt.time: TimeType(),
    dt.timedelta: DayTimeIntervalType(),
}


def struct_of(method: str, schema: Schema) -> StructType:
    """Return the columns. The JVM parses a text, so call this on a thread."""
    if isinstance(schema, str):
        struct = _parsed(method, schema)
    else:
        struct = schema if isinstance(schema, StructType) else _of_class(method, schema)
    if not struct.fields:
        raise ValueError(f"{method}(schema=...): the schema has no columns")
    twice = [name for name, count in Counter(struct.names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{method}(schema=...): the schema has more than one column named {', '.join(twice)}. Rename them"
        )
    _check_arrow(method, struct)
    return struct


def _check_arrow(method: str, struct: StructType) -> None:
    """Raise for columns that do not travel as Arrow, such as varchar(9). Use a string for those."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    for each in struct.fields:
        if says_more(each.dataType):
            raise TypeError(
                f"{method}(schema=...), column {each.name}: values of {each.dataType.simpleString()} can't be written. Arrow has "
                "no user-defined types, variants, geometries or structs with two fields of the same name"
            )
        try:
            to_arrow_schema(StructType([each]), timezone="UTC")
        except (PySparkException, ValueError) as error:  # of Arrow, for an array of nothing that must not be null
            raise TypeError(f"{method}(schema=...), column {each.name}: {str(error).splitlines()[0]}") from error


def check_schema(method: str, schema: object) -> None:
    """Raise unless the value is a schema, and for a class with a field that has no column type."""
    if isinstance(schema, type) and attrs.has(schema):
        struct_of(method, schema)
    elif isinstance(schema, str):
        check_text(method, "schema", schema)
    elif not isinstance(schema, StructType):
        raise TypeError(
            f"{method}(schema={schema!r}): a schema is a text such as 'id long, name string', a StructType, or an "
            "attrs class"
        )


def _parsed(method: str, text: str) -> StructType:
    from pyspark.errors import PySparkException

    try:
        struct = StructType.fromDDL(text)
    except PySparkException as error:
        raise ValueError(f"{method}(schema={text!r}): {(str(error).strip() or 'no schema').splitlines()[0]}") from error
    if not isinstance(struct, StructType):
        raise ValueError(f"{method}(schema={text!r}): a column needs a name. Write 'value {text}'")
    return struct


def _of_class(method: str, kind: type[Any], around: tuple[type[Any], ...] = ()) -> StructType:
    """Return the columns of a class, which is inside of those ``around``."""
    if kind in around:
        raise TypeError(
            f"an object of {kind.__name__} may contain another one, and no column type is that deep. Pass a StructType"
        )
    around = (*around, kind)
    hints = _hints(method, kind)
    columns: list[StructField] = []
    for each in attrs.fields(kind):
        hint, nullable = _optional(hints.get(each.name, each.type))
        try:
            columns.append(StructField(each.name, _of_hint(method, hint, around), nullable))
        except TypeError as error:
            raise TypeError(f"{method}(schema={kind.__name__}), field {each.name}: {error}") from None
    return StructType(columns)


def _optional(hint: Any) -> tuple[Any, bool]:
    """Remove `| None` from an annotation."""
    if get_origin(hint) in (Union, types.UnionType):
        rest = [each for each in get_args(hint) if each is not type(None)]
        if len(rest) == 1:
            return rest[0], True
    return hint, False


def _hints(method: str, kind: type[Any]) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError as error:
        raise TypeError(
            f"{method}(schema={kind.__name__}): the annotations of the class can't be read: {error}. Define what they name at the top of "
            "the module, or pass a StructType"
        ) from error


def _of_hint(method: str, hint: Any, around: tuple[type[Any], ...]) -> DataType:
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and attrs.has(hint):
        return _of_class(method, hint, around)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        item, nullable = _optional(arguments[0])
        return ArrayType(_of_hint(method, item, around), nullable)
    if origin is dict:
        value, nullable = _optional(arguments[1])
        return MapType(_of_hint(method, arguments[0], around), _of_hint(method, value, around), nullable)
    raise TypeError(
        f"{hint!r} has no column type. Use {', '.join(each.__name__ for each in PLAIN)}, list[...], "
        "tuple[..., ...], dict[..., ...], an attrs class, or any of these with | None. For other types pass a StructType"
    )
