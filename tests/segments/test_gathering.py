"""A region that one function makes of a chunk: no generator, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

from reactive_aio._fusion import ChunkWork, Origin, Placed, Stage, Template
from reactive_aio._fusion.chunk import SLICE, ChunkRun, GatheringRun
from reactive_aio.operators.filtering import Filter
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable


def begin(items: list[Any], *stages: Stage[Any, Any]) -> ChunkRun | GatheringRun:
    placed = tuple(Placed(stage, Origin("here.py", at)) for at, stage in enumerate(stages, 1))
    return ChunkWork("the region", placed).begin(items, 100)


@pytest.fixture(autouse=True)
def clock(still: list[float]) -> list[float]:
    """A clock that stands still unless the test moves it."""
    return still


@frozen
class Plain(Stage[Any, Any]):
    template = Template("$rest")


@frozen
class Looping(Stage[Any, Any]):
    template = Template("""
        for _ in range(2):
            $rest
    """)


@frozen
class Doubling(Stage[Any, Any]):
    template = Template("""
        $rest
        $rest
    """)


@frozen
class Adding(Stage[Any, Any]):
    template = Template("$rest")

    def finish(self) -> list[Any]:
        return ["more"]


@pytest.mark.parametrize("stages", [(), (Plain(),), (Map(str), Filter(bool))])
def test_stages_that_are_no_more_than_their_templates_are_gathered(stages: tuple[Stage[Any, Any], ...]) -> None:
    assert isinstance(begin([1], *stages), GatheringRun)


@pytest.mark.parametrize("stage", [Looping(), Doubling(), FlatMapIterable(lambda item: [item, item])])
def test_a_stage_that_may_make_many_of_one_is_not_and_keeps_to_what_is_wanted(stage: Stage[Any, Any]) -> None:
    run = begin([1, 2], stage)

    assert isinstance(run, ChunkRun)
    assert [run.part(3), run.part(3)] == [[1, 1, 2], [2]]


def test_a_stage_that_adds_something_at_the_end_is_not() -> None:
    assert begin([1], Adding()).part(9) == [1, "more"]


def test_more_stages_than_fit_into_one_function_are_not() -> None:
    assert begin([0], *[Map((1).__add__)] * 50).part(9) == [50]


def test_a_part_is_no_longer_than_was_wanted_and_the_next_goes_on() -> None:
    run = begin([*range(10)], Filter(lambda item: item % 3), Map(str))

    parts: list[list[Any]] = []
    while not run.over:
        parts.append(run.part(2))

    assert parts == [["1", "2"], ["4", "5"], ["7", "8"], []]
    assert run.taken == 10


def test_a_part_works_on_no_more_elements_than_it_needs() -> None:
    seen: list[int] = []
    run = begin([*range(100)], Map(lambda item: seen.append(item) or item))

    for _ in range(5):
        run.part(10)

    assert (len(seen), run.taken) == (50, 50)


def test_when_the_time_is_up_a_part_gives_what_it_has(clock: list[float]) -> None:
    def slow(item: int) -> int:
        clock[0] += 2 * SLICE if item == 4 else 0.0
        return item

    run = begin([*range(20)], Map(slow))

    assert run.part(100) == [0, 1, 2, 3, 4, 5, 6]
    assert (run.over, run.taken) == (False, 7)
    assert run.part(100) == [*range(7, 20)]
    assert run.over


def test_functions_that_let_nothing_through_are_given_a_rest_too(clock: list[float]) -> None:
    def slow(_: int) -> bool:
        clock[0] += 2 * SLICE
        return False

    run = begin([1, 2], Filter(slow))

    assert [run.part(9), run.over, run.taken] == [[], False, 1]


def failing(error: BaseException) -> Callable[[int], int]:
    def fail(item: int) -> int:
        if item == 77:
            raise error
        return item

    return fail


def test_a_failure_in_the_middle_comes_behind_what_was_made_and_says_where() -> None:
    error = OSError("77")
    run = begin([*range(100)], Map(str), Map(int), Map(failing(error)))

    assert [run.part(1000), run.over, run.taken] == [[*range(77)], True, 78]
    assert run.failure is error
    assert error.__notes__ == ["in map(fail), chained at here.py:3, on element #177 of the region"]


def test_a_stop_iteration_is_a_failure_and_no_end() -> None:
    run = begin([*range(100)], Map(failing(StopIteration())))

    assert len(run.part(1000)) == 77
    assert isinstance(run.failure, RuntimeError)
    assert isinstance(run.failure.__cause__, StopIteration)
    assert run.failure.__notes__ == ["in map(fail), chained at here.py:1, on element #177 of the region"]
