"""Columns and fields by names that Spark can tell apart, and does not misread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def quoted(name: str) -> str:
    """Return an expression that means the column of that name and nothing else."""
    return "`" + name.replace("`", "``") + "`"


def told_apart(frame: Any, declared: Sequence[DataType | None] | None) -> Any:
    """Number the fields of structs if two have the same name, which Arrow does not allow."""
    wanted = [None if each is None else _numbered(each) for each in declared or ()]
    if wanted == list(declared or ()):
        return frame
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
