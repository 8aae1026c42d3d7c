"""Elements with Arrow's columns go to another process as Arrow."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio._remote.pickling import Buffers, dumps

pa = pytest.importorskip("pyarrow")


def batch() -> Any:
    return pa.RecordBatch.from_pydict(
        {
            "number": [*range(50_000)],
            "text": ["some"] * 50_000,
            "kind": pa.array(["a", "b"] * 25_000).dictionary_encode(),
            "list": [[1, None]] * 50_000,
            "struct": [{"x": 1.5}, None] * 25_000,
        }
    )


def sent(value: object) -> tuple[Any, int, Buffers]:
    """Return what arrives, the bytes that it takes, and the pieces beside the pickle."""
    buffers: Buffers = []
    data = dumps([value], buffers)
    arrived = [bytearray(each.raw()) for each in buffers]
    (back,) = pickle.loads(data, buffers=arrived)
    return back, len(data) + sum(map(len, arrived)), buffers


def ids() -> Any:
    """Return an array of an extension type."""
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, b"1" * 16], pa.binary(16)))


def coded() -> Any:
    """Return such values as a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), ids())


VALUES: dict[str, Callable[[], Any]] = {
    "batch": batch,
    "part of a batch": lambda: batch().slice(7, 9),
    "table": lambda: pa.Table.from_batches([batch().slice(0, 5), batch().slice(5, 5)]),
    "part of a table": lambda: pa.Table.from_batches([batch(), batch()]).slice(49_990, 20),
    "table with metadata": lambda: pa.table({"n": [1]}).replace_schema_metadata({"made": "here"}),
    "array": lambda: pa.array([1, None, 3]),
    "part of an array": lambda: batch().column("list").slice(5, 6),
    "array of chunks": lambda: pa.chunked_array([[1], [2, 3], []]),
    "array of empty chunks": lambda: pa.chunked_array([[], [1], [], []], pa.int8()),
    "array of no chunk": lambda: pa.chunked_array([], pa.int8()),
    "array of dictionaries": lambda: pa.chunked_array(
        [pa.array([each]).dictionary_encode() for each in ("a", "b", "a")]
    ),
    "array of nothing": lambda: pa.nulls(3),
    "empty batch": lambda: pa.RecordBatch.from_pydict({"n": pa.array([], pa.int32())}),
    "rows without columns": lambda: pa.table({"n": [1, 2]}).select([]),
    "type of somebody's own": ids,
    "dictionary of such": coded,
    "dictionaries of such": lambda: pa.chunked_array([coded(), coded()]),
    "table of dictionaries of such": lambda: pa.table({"id": coded()}),
    "dictionaries of such in a struct": lambda: pa.StructArray.from_arrays([coded()], ["id"]),
    "runs of such": lambda: pa.RunEndEncodedArray.from_arrays([2, 5], ids()),
    "list of such": lambda: pa.ListArray.from_arrays([0, 1, 2], ids()),
    "table of such": lambda: pa.table({"id": pa.array([b"0" * 16], pa.binary(16)).cast(pa.uuid())}),
}


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_it_arrives_as_what_it_was(make: Callable[[], Any]) -> None:
    value = make()
    back, _, _ = sent(value)

    assert type(value) is type(back)
    assert value.equals(back)
    assert len(value) == len(back)
    if hasattr(value, "schema"):
        assert value.schema.equals(back.schema, check_metadata=True)
    else:
        assert value.type == back.type
    if hasattr(value, "chunks"):
        assert [*map(len, value.chunks)] == [*map(len, back.chunks)]


@pytest.mark.parametrize("name", ["part of a batch", "part of a table", "part of an array"])
def test_a_part_takes_no_more_than_its_own_rows(name: str) -> None:
    _, size, _ = sent(VALUES[name]())

    assert 4_000 > size


def test_a_large_one_travels_beside_the_pickle_in_one_piece() -> None:
    value = batch()
    buffers: Buffers = []
    data = dumps([value], buffers)

    assert 1_000 > len(data)
    assert [True] == [each.raw().nbytes > value.nbytes for each in buffers]
