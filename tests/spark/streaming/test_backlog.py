"""The rows that Spark may ask for again."""

from __future__ import annotations

import random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from reactive_aio import SchemaMismatchError, SparkJobError
from reactive_aio.spark.sink._columns import Columns
from reactive_aio.spark.streaming._backlog import PIECE, Backlog

pytestmark = pytest.mark.spark

COLUMNS = Columns(StructType([StructField("n", LongType())]), None, ZoneInfo("UTC"))


def backlog(*items: Any, first: int = 0) -> Backlog:
    made = Backlog(COLUMNS.table, first)
    for item in items:
        made.add(item)
    return made


def between(kept: Backlog, start: int, end: int) -> list[int]:
    return [row["n"] for piece in kept.between(start, end) for row in piece.to_pylist()]


def test_rows_are_found_by_their_place_whatever_pieces_they_came_in() -> None:
    kept = backlog(*range(3 * PIECE + 5))
    chance = random.Random(1)
    for _ in range(50):
        start, end = sorted(chance.sample(range(3 * PIECE + 6), 2))
        assert list(range(start, end)) == between(kept, start, end)
        if chance.random() < 0.5:
            kept.add(kept.end)


def test_what_has_been_dropped_is_gone_and_the_rest_stays() -> None:
    kept = backlog(*range(PIECE), first=10)
    kept.drop(15)
    kept.drop(12)  # an old word

    assert 15 == kept.first
    assert [5, 6] == between(kept, 15, 17)
    with pytest.raises(SparkJobError, match="the rows before 15 are committed"):
        kept.between(14, 17)


def test_what_has_not_come_is_not_given() -> None:
    with pytest.raises(SparkJobError, match="only 2 have arrived"):
        backlog(1, 2).between(0, 3)


def test_whole_pieces_are_let_go_of() -> None:
    kept = backlog(*range(4 * PIECE))
    kept.drop(3 * PIECE + 1)

    assert 1 == len(kept._pieces)


def test_nothing_counts_from_the_first_element_on_that_does_not_fit() -> None:
    kept = backlog(1, 2, "three", 4)
    kept.settle()
    kept.add(5)
    kept.settle()

    assert 2 == kept.end
    assert [1, 2] == between(kept, 0, 2)
    assert isinstance(kept.error, SchemaMismatchError)
    assert str(kept.error).startswith("element #2, field n: 'three' is not bigint")
