"""Arrow's batches, tables and arrays among the elements: they travel in Arrow's own format, as IPC streams.

Pickled by themselves they would take along all the memory that they are a part of: a thousand rows of a table all of
its rows, again and again. A stream has what they are made of and no more, in one piece of memory, from which the other
side reads without a copy.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

# `Any` stands for what is Arrow's, whose stubs know it by halves.

Reduced = tuple[Any, ...]
Reducers = dict[type, Callable[[Any], Reduced]]


@cache
def reducers() -> Reducers:
    """Return the reducers that pickle the types of Arrow."""
    import pyarrow as pa

    arrow: Any = pa
    arrays = dict.fromkeys([*_kinds(arrow.Array), arrow.ChunkedArray], _reduced_array)
    return {**arrays, pa.RecordBatch: _reduced, pa.Table: _reduced}


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


def _reduced(value: Any) -> Reduced:
    """Reduce a batch or a table, unless it has extension types, which the other side may not know by name."""
    import pyarrow as pa

    if any(_is_extended(each) for each in value.schema.types):
        own: Reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return own
    return restored, (isinstance(value, pa.Table), stream_of(value))


def _reduced_array(value: Any) -> Reduced:
    """Reduce an array as one column, with a batch for each chunk."""
    import pyarrow as pa

    if _is_extended(value.type):
        own: Reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return own
    arrow: Any = pa
    is_chunked = type(value) is arrow.ChunkedArray
    chunks = value.chunks if is_chunked else [value]
    schema = arrow.schema([("", value.type)])
    # One by one, since a table would leave out the empty ones at its end.
    batches = [arrow.RecordBatch.from_arrays([each], schema=schema) for each in chunks]
    return restored_array, (is_chunked, _written(schema, batches))


def _is_extended(type_: Any) -> bool:
    import pyarrow as pa

    return isinstance(type_, pa.BaseExtensionType) or any(map(_is_extended, _inner(type_)))


def _inner(type_: Any) -> Iterator[Any]:
    """Yield the types that a type is made of."""
    yield from (type_.field(at).type for at in range(type_.num_fields))
    if not type_.num_fields and hasattr(type_, "value_type"):  # a dictionary has no fields
        yield type_.value_type


def stream_of(value: Any) -> pickle.PickleBuffer:
    """Write a batch or a table as an IPC stream."""
    return _written(value.schema, [value])


def _written(schema: Any, values: list[Any]) -> pickle.PickleBuffer:
    import pyarrow as pa

    sink: Any = pa.BufferOutputStream()
    stream: Any = pa.ipc.new_stream(sink, schema)
    with stream:
        for each in values:
            stream.write(each)
    return pickle.PickleBuffer(sink.getvalue())


def restored(is_table: bool, data: Any) -> Any:
    """Restore a batch or a table. Pickles refer to this by name."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        return stream.read_all() if is_table else stream.read_next_batch()


def restored_array(is_chunked: bool, data: Any) -> Any:
    """Restore an array. Pickles refer to this by name."""
    return restored(is_chunked, data).column(0)
