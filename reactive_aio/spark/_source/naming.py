"""Columns and fields by names that Spark can tell apart, and does not misread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def plain(names: Sequence[str]) -> bool:
    """Return whether PySpark finds the right columns by their unquoted names.

    It takes ``a.b`` for a field of ``a``, and ``*`` for all columns.
    """
    return len({name.lower() for name in names}) == len(names) and all(map(PLAIN.fullmatch, names))


def quoted(name: str) -> str:
    """Return an expression that means the column of that name and nothing else."""
    return "`" + name.replace("`", "``") + "`"


def chosen(frame: Any, names: Sequence[str]) -> Any:
    """Select columns by their names as they are, where Spark would find another one by ``A`` too."""
    columns: list[str] = frame.columns
    if len({name.lower() for name in columns}) == len(columns):
        return frame.select(*map(quoted, names))
    numbered = frame.toDF(*map(str, range(len(columns))))
    return numbered.select(*(numbered[str(columns.index(name))].alias(name) for name in names))


def same_names(declared: Sequence[DataType | None] | None) -> bool:
    """Return whether two fields of a struct have the same name, which Arrow does not allow."""
    return any(each is not None and _numbered(each) != each for each in declared or ())


def told_apart(frame: Any, declared: Sequence[DataType | None] | None) -> Any:
    """Number the fields of structs if two have the same name."""
    if not same_names(declared):
        return frame
    wanted = [None if each is None else _numbered(each) for each in declared or ()]
    columns = [frame[quoted(name)] for name in frame.columns]
    return frame.select(
        *(
            column if new in (None, old) else column.cast(new).alias(name)
            for name, column, old, new in zip(frame.columns, columns, declared or (), wanted, strict=True)
        )
    )


def _numbered(type_: DataType) -> DataType:
    """Return the type with the fields of such structs numbered."""
    if isinstance(type_, ArrayType):
        return ArrayType(_numbered(type_.elementType), type_.containsNull)
    if isinstance(type_, MapType):
        return MapType(_numbered(type_.keyType), _numbered(type_.valueType), type_.valueContainsNull)
    if isinstance(type_, StructType):
        same = len({name.lower() for name in type_.names}) < len(type_.names)
        return StructType(
            [
                StructField(str(at) if same else each.name, _numbered(each.dataType), each.nullable)
                for at, each in enumerate(type_.fields)
            ]
        )
    return type_
