"""Another type for a column of the same values, in Arrow alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pa: Any = pytest.importorskip("pyarrow")

from reactive_aio.spark._task.retyping import retyped  # noqa: E402

AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
ITEMS = pa.list_(pa.struct([pa.field("n", pa.int64(), nullable=False)]))


def leaves(zone: str, text: Any) -> Any:
    return pa.struct([("at", pa.timestamp("us", zone)), ("text", text), ("items", ITEMS)])


def types(zone: str, text: Any, listed: Any) -> list[Any]:
    """Return types of all kinds that hold times and texts."""
    inner = leaves(zone, text)
    return [
        inner,
        listed(inner),
        listed(listed(inner)),
        pa.map_(text, inner),
        pa.struct([("named", pa.map_(pa.timestamp("us", zone), listed(inner)))]),
    ]


OURS = types("UTC", pa.string(), pa.list_)
THEIRS = types("Asia/Tokyo", pa.large_string(), pa.large_list)


def item(n: int) -> Any:
    return {"at": AT + timedelta(hours=n), "text": f"a{n}", "items": [{"n": n}, None]} if n % 3 else None


VALUES = [
    item,
    lambda n: [item(n + i) for i in range(n % 3)] if n % 4 else None,
    lambda n: [[item(n)], None, []] if n % 4 else None,
    lambda n: [(f"k{i}", item(n + i)) for i in range(n % 3)] if n % 4 else None,
    lambda n: {"named": [(AT, [item(n)])]} if n % 4 else None,
]


@pytest.mark.parametrize("kind", range(len(VALUES)))
@pytest.mark.parametrize("part", [slice(None), slice(3, 9), slice(4, 5), slice(0, 0)])
def test_columns_of_all_kinds_keep_their_values_there_and_back(kind: int, part: slice) -> None:
    column = pa.array(map(VALUES[kind], range(12)), OURS[kind])[part]

    there = retyped(column, THEIRS[kind])
    back = retyped(there, OURS[kind])

    there.validate(full=True)
    assert (THEIRS[kind], column.to_pylist(), column) == (there.type, there.to_pylist(), back)


def test_nulls_below_a_null_item_do_not_matter() -> None:
    """Spark writes an item that is null with nulls in all its fields."""
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, None], pa.int64())], fields=[*ITEMS.value_type], mask=pa.array([False, True])
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), hidden, type=ITEMS)
    column = pa.StructArray.from_arrays([pa.array([AT]), pa.array(["a"]), lists], fields=[*OURS[0]])

    assert [{"at": AT, "text": "a", "items": [{"n": 1}, None]}] == retyped(column, THEIRS[0]).to_pylist()


def test_a_column_of_the_type_is_not_touched() -> None:
    column = pa.array([[item(1)]], OURS[1])

    assert column is retyped(column, OURS[1])
