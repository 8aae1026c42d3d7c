"""Ranges of keys without a cluster: what a task does to its chunks."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from attrs import evolve

from reactive_aio.operators.transforming.sort_by import SortBy
from reactive_aio.spark._source import ranges
from reactive_aio.spark._source.ranges import Ranges, _packed, merged


def chunks(*lists: list[Any]) -> list[bytes]:
    return [b"".join(_packed(items).encoded()) for items in lists]


def test_a_task_unpickles_the_key_once_and_calls_it_once_for_the_start_of_each_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[bytes] = []
    keyed: list[int] = []

    def key(item: int) -> int:
        keyed.append(item)
        return item

    def loads(data: bytes) -> Any:
        loaded.append(data)
        return SortBy(key, False, 99), []

    monkeypatch.setattr(ranges, "pickle", SimpleNamespace(loads=loads))
    starts = (-100, 100)  # which no element is, so that the calls can be told apart
    pieces = Ranges(b"", "sort_by", starts).cut(0, chunks([1, 2], [3, 4], [5, 200]))

    assert [1, 1, 1, 2] == [number for number, _ in pieces]
    assert (1, 1, 1) == (len(loaded), keyed.count(-100), keyed.count(100))


@pytest.mark.parametrize("reverse", [False, True])
def test_what_was_cut_is_put_together_again_in_the_order_of_its_range(reverse: bool) -> None:
    sort: Any = pickle.dumps((SortBy(abs, reverse, 99), []))
    lists: tuple[list[int], ...] = ([-1, 2, 4], [-5, 7, 8], [9])
    if reverse:
        lists = tuple(items[::-1] for items in lists[::-1])
    own = evolve(Ranges(sort, "sort_by"), starts=(4, -8))
    pieces = list(own.cut(0, chunks(*lists)))

    found = [list(merged([piece for piece in pieces if piece[0] == number])) for number in range(3)]
    assert found == ([[9, 8], [7, -5, 4], [2, -1]] if reverse else [[-1, 2], [4, -5, 7], [8, 9]])
