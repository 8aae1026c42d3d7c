"""Elements that are Arrow's batches, put into the columns of a frame without making rows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...errors import SchemaMismatchError
from .._task.retyping import retyped

# `Any` stands for Arrow, whose stubs know it by halves.

MISPLACED: Final = (
    "an element is a RecordBatch, but the elements are taken for rows. A frame takes batches as they are where the flow is "
    "from_spark(frame, as_=pyarrow.RecordBatch) and nothing shuffles it. Else make rows: .flat_map_iterable(lambda batch: batch.to_pylist())"
)


def are_batches(items: Sequence[Any]) -> bool:
    """Return whether all elements are batches."""
    import pyarrow as pa

    return all(issubclass(type(item), pa.RecordBatch) for item in items)  # `isinstance` may run the user's code


def has_batches(items: Sequence[Any]) -> bool:
    """Return whether some element is a batch."""
    import pyarrow as pa

    return any(issubclass(type(item), pa.RecordBatch) for item in items)


def with_columns(schema: Any, items: Sequence[Any], first: int) -> Iterator[Any]:
    """Yield each batch with the columns of the schema, chosen by their names.

    The first element has the index ``first``.
    """
    import pyarrow as pa

    arrow: Any = pa
    for at, batch in enumerate(items, first):
        columns = [_column(batch, field, at) for field in schema]
        yield arrow.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: Any, field: Any, at: int) -> Any:
    found = batch.schema.get_all_field_indices(field.name)
    if len(found) != 1:
        has = "no column" if not found else f"{len(found)} columns"
        raise SchemaMismatchError(
            f"element #{at} is a batch with {has} {field.name!r}. It has the columns {', '.join(batch.schema.names)}"
        )
    column = _typed(batch.column(found[0]), field, at)
    if (lacking := _lacking(column, field)) is not None:
        inside = "" if lacking is field else f" in {lacking.name}"
        raise SchemaMismatchError(
            f"element #{at}, column {field.name}: {lacking.type} not null is needed, not null{inside}"
        )
    return column


def _typed(column: Any, field: Any, at: int) -> Any:
    """Return the column with the type of the field."""
    if column.type == field.type:
        return column
    needed = f"element #{at}, column {field.name}: {field.type} is needed, not {column.type}"
    if not _alike(column.type, field.type):
        raise SchemaMismatchError(f"{needed}. Cast the column, or change the schema")
    try:
        return retyped(column, field.type)
    except (ValueError, NotImplementedError) as error:  # Arrow's own errors among them
        raise SchemaMismatchError(f"{needed}: {error}") from error


def _lacking(column: Any, field: Any) -> Any:
    """Return the field, or one inside it, that must have no null and has one. Arrow does not look inside lists and maps."""
    if column.null_count and not field.nullable:
        return field
    found = (_lacking(values, each) for each, values in _inside(column, field.type))
    return next((each for each in found if each is not None), None)


def _inside(column: Any, type_: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fields inside a type, and their values. A null has none inside."""
    import pyarrow as pa

    types: Any = pa.types
    if not types.is_nested(type_):
        return
    there = column.drop_null()
    if types.is_struct(type_):
        yield from zip(type_, there.flatten(), strict=True)
    elif types.is_map(type_):
        first, last = there.offsets[0].as_py(), there.offsets[-1].as_py()
        yield type_.item_field, there.items.slice(first, last - first)
    else:
        yield type_.value_field, there.flatten()


def _alike(one: Any, other: Any) -> bool:
    """Return whether two types have the same values, such as two layouts of text or times in two zones."""
    import pyarrow as pa

    types: Any = pa.types
    if types.is_timestamp(one):
        return bool(types.is_timestamp(other)) and (one.tz is None) == (other.tz is None)
    if types.is_struct(one):
        return (
            bool(types.is_struct(other))
            and [each.name for each in one] == [each.name for each in other]
            and all(_alike(mine.type, theirs.type) for mine, theirs in zip(one, other, strict=True))
        )
    if types.is_map(one):
        return (
            bool(types.is_map(other))
            and _alike(one.key_type, other.key_type)
            and _alike(one.item_type, other.item_type)
        )
    if _is_list(one):
        return _is_list(other) and _alike(one.value_type, other.value_type)
    alike = (types.is_decimal, _is_text, _is_binary)
    return bool(one == other) or any(is_one(one) and is_one(other) for is_one in alike)


def _is_list(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _is_text(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_binary(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))
