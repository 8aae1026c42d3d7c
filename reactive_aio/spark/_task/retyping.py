"""Another type for a column of the same values, such as times in another zone or text in another layout."""

from __future__ import annotations

from typing import Any


def retyped(column: Any, type_: Any) -> Any:
    """Return a column with another type. Structs, lists and maps are made anew, and only what differs inside is cast.

    Arrow's cast of the whole column refuses nulls that Spark has in items that must not be null, below an item that is null.
    """
    import pyarrow as pa

    arrow: Any = pa  # whose stubs know these by halves
    types: Any = pa.types
    if column.type == type_:
        return column
    nulls = column.is_null() if column.null_count else None
    if types.is_struct(type_):
        parts = [retyped(column.field(at), each.type) for at, each in enumerate(type_)]
        return arrow.StructArray.from_arrays(parts, fields=[*type_], mask=nulls)
    if types.is_map(type_):
        offsets, start, end = _offsets(column)
        keys = retyped(column.keys[start:end], type_.key_type)
        items = retyped(column.items[start:end], type_.item_type)
        return arrow.MapArray.from_arrays(offsets, keys, items, type=type_, mask=nulls)
    if types.is_list(type_) or types.is_large_list(type_):
        offsets, start, end = _offsets(column)
        values = retyped(column.values[start:end], type_.value_type)
        if types.is_list(type_):
            return arrow.ListArray.from_arrays(offsets.cast("int32"), values, type=type_, mask=nulls)
        return arrow.LargeListArray.from_arrays(offsets.cast("int64"), values, type=type_, mask=nulls)
    return column.cast(type_)


def _offsets(column: Any) -> tuple[Any, int, int]:
    """Return where the items of lists or maps start, counted from the first item, and where the first and the last item are."""
    import pyarrow.compute as pc

    offsets = column.offsets
    start, end = offsets[0], offsets[-1]
    return pc.subtract(offsets, start), start.as_py(), end.as_py()
