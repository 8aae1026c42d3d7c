"""Whether an attrs class fits the columns of a frame, by name and by type, known before anything runs.

Each type of Spark's arrives as one type of Python's. A field takes it if it is declared as that, or as a base class of it (``Sequence`` for a
list). It also fits a number that an int stands in for (PEP 484), or something that nobody can check. That
a column may hold nulls is no misfit: nearly every column is declared so.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import attrs
from pyspark.sql import types

# Here `Any` stands for annotations, which are of all types there are.

ARRIVES_AS: Final[dict[type[types.DataType], type]] = {
    types.ByteType: int,
    types.ShortType: int,
    types.IntegerType: int,
    types.LongType: int,
    types.FloatType: float,
    types.DoubleType: float,
    types.DecimalType: Decimal,
    types.BooleanType: bool,
    types.StringType: str,
    types.CharType: str,
    types.VarcharType: str,
    types.BinaryType: bytes,
    types.DateType: dt.date,
    types.TimestampType: dt.datetime,
    types.TimestampNTZType: dt.datetime,
    types.DayTimeIntervalType: dt.timedelta,
    types.ArrayType: list,
    types.MapType: dict,
    types.StructType: dict,
    types.NullType: NoneType,
    types.TimeType: dt.time,
    types.VariantType: types.VariantVal,
    types.GeometryType: types.Geometry,
    types.GeographyType: types.Geography,
}
STANDS_IN: Final[dict[Any, tuple[type, ...]]] = {float: (int,), complex: (int, float)}


def check_names(as_: type[Any], schema: types.StructType, call: str = "from_spark") -> None:
    """Raise for a dict if two columns have the same name, because it would lose one."""
    twice = _twice(schema)
    if twice:
        raise TypeError(
            f"{call}(as_={as_.__name__}): the frame has more than one column named {', '.join(twice)}. Rename "
            "them, or set as_=tuple"
        )


def check_types(fields: Iterable[types.StructField], call: str = "from_spark") -> None:
    """Raise for columns with values that neither Python nor Spark's own rows have."""
    refused = [f"{each.name}: {why}" for each in fields if (why := _without_values(each.dataType))]
    if refused:
        raise TypeError(
            "\n  ".join([f"{call}(): there are columns that can't be read", *refused])
            + "\nLeave them out with select(), or cast them, for example to string"
        )


def _without_values(found: types.DataType) -> str | None:
    """Return why a type has no values in Python, or None if it has."""
    inner: tuple[types.DataType, ...] = ()
    if isinstance(found, types.ArrayType):
        inner = (found.elementType,)
    elif isinstance(found, types.StructType):
        inner = tuple(each.dataType for each in found.fields)
    elif isinstance(found, types.MapType):
        if not _is_key(found.keyType):
            return f"a key of type {found.keyType.simpleString()} can't be the key of a dict"
        inner = (found.keyType, found.valueType)
    elif isinstance(found, types.UserDefinedType):
        inner = (found.sqlType(),)
    elif type(found) not in ARRIVES_AS:
        return f"Python has no values of type {found.simpleString()}"
    return next(filter(None, map(_without_values, inner)), None)


def _is_key(found: types.DataType) -> bool:
    """Return whether values can be hashed."""
    if isinstance(found, types.StructType):
        return all(_is_key(each.dataType) for each in found.fields)
    return not isinstance(found, (types.ArrayType, types.MapType))


def check_fit(kind: type[Any], schema: types.StructType, call: str = "from_spark") -> None:
    """Raise for a class whose fields don't fit the columns, and list all that don't."""
    columns = {each.name: each.dataType for each in schema.fields}
    twice, hints = _twice(schema), _hints(kind)
    misfits: list[str] = []
    for each in attrs.fields(kind):
        if not each.init or (each.name not in columns and each.default is not attrs.NOTHING):
            continue
        if each.name not in columns:
            misfits.append(f"{each.name}: the frame has no such column")
        elif each.name in twice:
            misfits.append(f"{each.name}: the frame has more than one such column")
        # A converter decides by itself which values it takes.
        elif each.converter is None and not _takes(hints.get(each.name, Any), columns[each.name]):
            found = columns[each.name]
            misfits.append(
                f"{each.name}: declared as {_shown(hints[each.name])}, but {found.simpleString()} arrives as {_named(found)}"
            )
    if misfits:
        has = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in schema.fields) or "none"
        raise TypeError(
            "\n  ".join([f"{call}(as_={kind.__name__}): the class does not fit the frame", *misfits])
            + f"\nThe columns are {has}"
        )


def _twice(schema: types.StructType) -> list[str]:
    return [name for name in dict.fromkeys(schema.names) if schema.names.count(name) > 1]


def _hints(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the fields. A name that is defined inside a function is left out."""
    try:
        return get_type_hints(kind)
    except Exception:  # an annotation is evaluated, and may raise anything
        return {each.name: each.type for each in attrs.fields(kind) if not isinstance(each.type, (str, NoneType))}


def _takes(hint: Any, found: types.DataType) -> bool:
    """Return whether a value of type ``found`` may arrive for the declared ``hint``."""
    hint = _plain(hint)
    origin, parameters = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_takes(each, found) for each in parameters)
    arrives = ARRIVES_AS.get(type(found))
    if origin is Literal:
        return arrives is None or any(isinstance(each, arrives) for each in parameters)
    declared = origin or hint
    if arrives is None or declared is Any or not isinstance(declared, type):
        return True
    return _is_one(arrives, declared) and _inside(parameters, found)


def _plain(hint: Any) -> Any:
    """Take off what only annotates."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):  # a NewType
            hint = hint.__supertype__
        else:
            return hint


def _is_one(arrives: type, declared: Any) -> bool:
    try:
        return issubclass(arrives, (declared, *STANDS_IN.get(declared, ())))
    except TypeError:  # of a Protocol that can't be asked
        return True


def _inside(parameters: tuple[Any, ...], found: types.DataType) -> bool:
    """Return whether the elements of an array, or the keys and values of a map, are as declared."""
    inner: Iterable[types.DataType] = ()
    if isinstance(found, types.ArrayType):
        inner = (found.elementType,)
    elif isinstance(found, types.MapType):
        inner = (found.keyType, found.valueType)
    return all(_takes(hint, each) for hint, each in zip(parameters, inner, strict=False))


def _named(found: types.DataType) -> str:
    """Name what a type arrives as, inside and out."""
    name = ARRIVES_AS.get(type(found), object).__name__
    if isinstance(found, types.ArrayType):
        return f"{name}[{_named(found.elementType)}]"
    if isinstance(found, types.MapType):
        return f"{name}[{_named(found.keyType)}, {_named(found.valueType)}]"
    return name


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
