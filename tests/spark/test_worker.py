"""A task works under the demand of the loop, which the test plays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio import hooks
from reactive_aio._fusion import Placed, RegionRun, Stage, calling_line
from reactive_aio._remote.failures import unpack
from reactive_aio.operators.awaiting.in_region import MapAsyncInRegion
from reactive_aio.operators.filtering.filter import Filter
from reactive_aio.operators.filtering.take import Take
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable
from reactive_aio.operators.transforming.index import Index
from reactive_aio.operators.transforming.map import Map
from reactive_aio.operators.transforming.map_batches import MapBatches
from reactive_aio.spark._task.outlet import LARGEST_CHUNK
from reactive_aio.spark._task.rows import Reading
from reactive_aio.spark._task.slices import Chunk, RowSlice, Slices
from reactive_aio.spark._task.worker import InputLost, PartitionRun, Push, SlicedRun, watched
from tests.spark.kinds import OwnError, itself, lingering, raised_at_3

pa: Any = pytest.importorskip("pyarrow")

pytestmark = pytest.mark.usefixtures("still")
"""The tests speak of one chunk for one pass, and a pass ends by the clock."""


class Loop(Push):
    """The other end of the wire: grants as much as the test says and takes the chunks that are sent."""

    def __init__(self, *orders: int, skip: int = 0, place: int = 0) -> None:
        self.orders = list(orders)
        self.place = place
        self.granted = 0
        self.skip = skip
        self.largest = LARGEST_CHUNK
        self.stopped = False
        self.chunks: list[list[Any]] = []
        self.told = ""
        self.failure: BaseException | None = None
        self.cleanup: list[BaseException] = []

    def hear(self) -> None:
        if not self.granted and not self.skip:
            if self.orders:
                self.granted += self.orders.pop(0)
            else:
                self.stopped = True

    def send(self, items: Chunk) -> None:
        assert len(items) <= self.granted
        self.granted -= len(items)
        self.chunks.append(list(items))

    def fail(self, packed: bytes) -> None:
        self.told = "failed"
        self.failure = unpack(packed)

    def cleanup_failed(self, packed: bytes) -> None:
        self.cleanup.append(unpack(packed))

    def end(self, passed: int, *, decided: bool) -> None:
        self.told = "ended"
        self.passed, self.decided = passed, decided


def run(loop: Loop, items: Iterator[Any], *stages: Stage[Any, Any]) -> None:
    placed = tuple(Placed(stage, calling_line()) for stage in stages)
    PartitionRun(RegionRun(placed, "data", counted=False), items, loop, "here").to_end()


def test_no_more_is_made_than_granted() -> None:
    loop, made = Loop(3, 2), iter(range(100))
    run(loop, made, Map(str))

    assert [["0", "1", "2"], ["3", "4"]] == loop.chunks
    assert 5 == next(made)
    assert "" == loop.told


def test_the_end_needs_no_credit_of_its_own_once_it_is_seen() -> None:
    loop = Loop(100)
    run(loop, iter(range(4)), Filter(lambda n: n % 2))

    assert [[1, 3]] == loop.chunks
    assert "ended" == loop.told


def test_what_an_earlier_attempt_has_sent_is_left_out() -> None:
    loop = Loop(100, skip=3)
    run(loop, iter(range(10)), Filter(lambda n: n % 2))

    assert [[7, 9]] == loop.chunks


def test_a_failure_comes_behind_the_elements_before_it() -> None:
    loop = Loop(100)
    run(loop, iter([4, 2, 0, 1]), Map(lambda n: 4 // n))

    assert [[1, 2]] == loop.chunks
    assert "failed" == loop.told


def test_a_failure_among_what_an_earlier_attempt_has_sent_is_one_too() -> None:
    loop = Loop(100, skip=3)
    run(loop, iter([4, 0]), Map(lambda n: 4 // n))

    assert [] == loop.chunks
    assert "failed" == loop.told


def test_where_spark_fails_to_read_the_task_fails_so_that_spark_tries_again() -> None:
    def batches() -> Iterator[int]:
        yield 1
        raise OSError("stream ended early")

    loop = Loop(100)
    with pytest.raises(InputLost) as lost:
        run(loop, watched(batches()), Map(str))

    assert isinstance(lost.value.error, OSError)
    assert "" == loop.told


@pytest.mark.parametrize(("granted", "told"), [(9, "ended"), (1, "")], ids=["at the end", "stopped"])
def test_what_cannot_be_let_go_of_is_told_beside_the_end(granted: int, told: str) -> None:
    loop = Loop(granted)
    run(loop, iter([5]), FlatMapIterable(partial(lingering, 1)), Take(2))

    assert [5] * min(granted, 2) == [n for chunk in loop.chunks for n in chunk]
    assert (told, [OwnError]) == (loop.told, [type(error) for error in loop.cleanup])


def test_what_cannot_be_let_go_of_behind_a_failure_is_noted_on_it() -> None:
    loop, dropped = Loop(9), list[BaseException]()
    with hooks.using(on_error_dropped=dropped.append):
        run(loop, iter([3]), FlatMapIterable(partial(lingering, 1)), Map(partial(raised_at_3, 0)))

    assert ("failed", ValueError, []) == (loop.told, type(loop.failure), loop.cleanup)
    assert loop.failure is not None
    assert "a further failure: OwnError: own" in loop.failure.__notes__
    assert [OwnError] == [type(error) for error in dropped]


@pytest.mark.parametrize("stage", [Map(str), MapAsyncInRegion(itself, 2)], ids=["map", "map_async"])
def test_no_stage_takes_a_broken_input_for_its_own(stage: Stage[Any, Any]) -> None:
    def batches() -> Iterator[int]:
        yield 1
        raise OSError("stream ended early")

    with pytest.raises(InputLost):
        run(Loop(100), watched(batches()), stage)


# -- rows that the loop makes, of slices of batches


def cut(loop: Loop, batches: Iterator[Any]) -> None:
    region = RegionRun((), "data", counted=False)
    SlicedRun(region, Slices(RowSlice(Reading(tuple), each) for each in batches), loop, "here").to_end()


def batch(*values: Any) -> Any:
    return pa.record_batch({"n": list(values)})


def test_no_more_rows_are_cut_off_than_granted_nor_waited_for_to_fill_a_chunk() -> None:
    loop, batches = Loop(500, 300), iter([batch(*range(700)), batch(), batch(700), batch(701, 702)])
    cut(loop, batches)

    assert [500, 200, 1, 2] == [len(chunk) for chunk in loop.chunks]
    assert [(n,) for n in range(703)] == [row for chunk in loop.chunks for row in chunk]
    assert "ended" == loop.told


def test_rows_that_an_earlier_attempt_has_sent_are_left_out() -> None:
    loop = Loop(1000, skip=603)
    cut(loop, iter([batch(*range(600)), batch(*range(600, 610))]))

    assert [[(n,) for n in range(603, 610)]] == loop.chunks


def test_the_failure_to_make_a_row_comes_behind_the_batches_before_it() -> None:
    loop = Loop(9)  # so few that they are made where they are
    cut(loop, iter([batch("a", "b"), pa.record_batch({"s": pa.array([b"\xff"]).cast(pa.string(), safe=False)})]))

    assert [[("a",), ("b",)]] == loop.chunks
    assert "failed" == loop.told


def test_where_spark_fails_to_read_batches_the_task_fails_so_that_spark_tries_again() -> None:
    def batches() -> Iterator[Any]:
        yield batch(1)
        raise OSError("stream ended early")

    loop = Loop(1000)
    with pytest.raises(InputLost):
        cut(loop, watched(batches()))

    assert [[(1,)]] == loop.chunks
    assert "" == loop.told


# -- in turn


def test_a_partition_is_numbered_from_its_place_and_tells_how_many_were() -> None:
    loop = Loop(100, place=7)
    run(loop, iter(range(9)), Filter(lambda n: n % 2), Index(1), Filter(lambda pair: pair[1] > 3))

    assert [[(10, 5), (11, 7)]] == loop.chunks
    assert ("ended", 4, False) == (loop.told, loop.passed, loop.decided)


def test_what_a_stage_keeps_up_to_the_end_is_numbered_as_well() -> None:
    loop = Loop(100, place=7)
    run(loop, iter(range(5)), MapBatches(list, 3, list), Index(0))

    assert [(7 + n, n) for n in range(5)] == [pair for chunk in loop.chunks for pair in chunk]
    assert 5 == loop.passed


def test_a_later_attempt_numbers_what_it_leaves_out() -> None:
    loop = Loop(100, skip=2, place=7)
    run(loop, iter("abcd"), Index(0))

    assert [[(9, "c"), (10, "d")]] == loop.chunks
    assert 4 == loop.passed


def test_an_empty_partition_counts_for_none() -> None:
    loop = Loop(100, place=7)
    run(loop, iter(()), Index(0))

    assert ("ended", 0, False) == (loop.told, loop.passed, loop.decided)


def test_a_partition_that_needs_no_more_says_so() -> None:
    loop, items = Loop(100, place=7), iter(range(9))
    run(loop, items, Index(0), Take(2))

    assert [[(7, 0), (8, 1)]] == loop.chunks
    assert ("ended", True) == (loop.told, loop.decided)
    assert 2 == next(items)
