"""Rows on the wire: a stream of Arrow, which contains its schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

# `Any` stands for Arrow, whose stubs know it by halves.


def to_arrow(batches: Sequence[Any]) -> bytes:
    """Write one batch or more as a stream."""
    return in_arrow(batches).tobytes()


def in_arrow(batches: Sequence[Any]) -> memoryview:
    """The same, without a copy of the memory that Arrow has written."""
    import pyarrow as pa

    arrow: Any = pa
    out = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(out, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return memoryview(out.getvalue())


def from_arrow(data: bytes | bytearray) -> Iterable[Any]:
    """Read the batches of a stream."""
    import pyarrow as pa

    arrow: Any = pa
    batches: Iterable[Any] = arrow.ipc.open_stream(data)
    return batches
