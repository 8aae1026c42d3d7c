"""A region on one chunk, as workers run it: in parts, by number and by the clock."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import define

from reactive_aio._fusion import ChunkWork, Origin, Placed, Stage
from reactive_aio._fusion.chunk import SLICE
from reactive_aio.operators.filtering import Filter
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable


def work(*stages: Stage[Any, Any]) -> ChunkWork:
    return ChunkWork("the region", tuple(Placed(stage, Origin("here.py", at)) for at, stage in enumerate(stages, 1)))


def failing(error: BaseException) -> Callable[[Any], Any]:
    def fail(item: int) -> int:
        if item == 2:
            raise error
        return item

    return fail


@pytest.mark.usefixtures("still")
def test_a_part_is_no_longer_than_was_wanted() -> None:
    run = work(FlatMapIterable(range)).begin([2, 3], 0)

    assert [run.part(2), run.over] == [[0, 1], False]
    assert [run.part(2), run.over] == [[0, 1], False]
    assert [run.part(2), run.over, run.taken] == [[2], True, 2]


def test_a_slow_function_gives_what_it_has() -> None:
    run = work(Map(lambda item: time.sleep(2 * SLICE) or item)).begin([1, 2, 3], 0)

    assert [run.part(10), run.taken, run.over] == [[1], 1, False]
    assert run.part(10) == [2]


def test_what_lets_nothing_through_gives_word_all_the_same() -> None:
    run = work(Filter(lambda item: time.sleep(2 * SLICE))).begin([1, 2, 3], 0)

    assert [run.part(10), run.taken, run.over] == [[], 1, False]


class FalseError(Exception):
    def __bool__(self) -> bool:
        return False


class OwnError(BaseException):
    pass


ERRORS = [
    OSError("two"),
    FalseError(),
    OwnError(),
    GeneratorExit(),
    asyncio.CancelledError(),
    SystemExit(),
    KeyboardInterrupt(),
]


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_failure_comes_behind_what_was_made_before_it(error: BaseException) -> None:
    run = work(Map(failing(error)), Map(str)).begin([0, 1, 2, 3], 100)

    assert [run.part(10), run.over, run.taken] == [["0", "1"], True, 3]
    assert run.failure is error
    assert error.__notes__ == ["in map(fail), chained at here.py:1, on element #102 of the region"]


def test_closing_closes_the_iterable_at_hand() -> None:
    closed: list[int] = []

    def many(item: int) -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.append(item)

    run = work(FlatMapIterable(many)).begin([7], 0)
    run.part(3)
    run.close()

    assert closed == [7]


@pytest.mark.parametrize("error", [each for each in ERRORS if not isinstance(each, GeneratorExit)], ids=repr)
def test_a_failure_in_closing_is_the_failure_of_the_cleanup(error: BaseException) -> None:
    def many(item: int) -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            raise error

    run = work(FlatMapIterable(many)).begin([7], 0)
    run.part(3)
    run.close()

    assert [None, [error]] == [run.failure, run.cleanup_failures]


def test_the_work_can_be_pickled_if_its_functions_can() -> None:
    run = pickle.loads(pickle.dumps(work(Map(str)))).begin([1], 0)

    assert run.part(10) == ["1"]


@define
class Passing(Stage[Any, Any]):
    """Passes elements on, and counts its passes."""

    passes: int = 0

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        self.passes += 1
        return items


def test_a_pass_has_the_time_of_the_part_that_it_goes_on_in(still: list[float]) -> None:
    passing = Passing()
    run = work(passing).begin([1, 2, 3, 4], 0)
    assert run.part(1) == [1]

    still[0] += 60.0
    assert run.part(3) == [2, 3, 4]
    assert passing.passes == 1
