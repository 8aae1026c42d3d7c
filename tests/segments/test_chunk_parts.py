"""A region on one chunk: what lies between its parts, and what is let go at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import define, field, frozen

from reactive_aio._core import budgets
from reactive_aio._fusion import ChunkWork, Origin, Placed, Stage
from reactive_aio._fusion.chunk import SLICE, ChunkRun, GatheringRun
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable


def begin(items: list[Any], *stages: Stage[Any, Any]) -> ChunkRun | GatheringRun:
    placed = tuple(Placed(stage, Origin("here.py", at)) for at, stage in enumerate(stages, 1))
    return ChunkWork("the region", placed).begin(items, 0)


@frozen
class Twice(Stage[Any, Any]):
    """Emits each element twice. Only its generator knows which of the two is due."""

    fn: Callable[[Any], Any] = lambda item: item
    closed: list[str] = field(factory=list)

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        try:
            for item in items:
                yield self.fn(item)
                yield self.fn(item)
        finally:
            self.closed.append("closed")


@frozen
class Endless(Stage[Any, Any]):
    """Never comes to an end, and gives nothing."""

    def paced(self, items: Iterator[Any], pace: object) -> Iterator[Any]:
        return iter(())


@define
class Holding(Stage[Any, Any]):
    """Holds every other element until the end."""

    held: list[Any] = field(factory=list)
    closed: list[str] = field(factory=list)

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            if item % 2:
                yield item
            else:
                self.held.append(item)

    def finish(self) -> list[Any]:
        return self.held

    def close(self) -> None:
        self.closed.append("closed")


def test_a_pass_goes_on_where_a_part_has_left_it() -> None:
    run = begin([1, 2], Twice())

    assert [run.part(1) for _ in range(5)] == [[1], [1], [2], [2], []]
    assert run.over


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Have a part take the time of three looks at the clock, and count them."""
    looks: list[float] = []

    def clock() -> float:
        looks.append(len(looks) * SLICE / 4)
        return looks[-1]

    monkeypatch.setattr(budgets, "clock", clock)
    return looks


def test_a_part_that_is_full_is_given_at_once(looks: list[float]) -> None:
    assert begin([1, 2, 3], Twice()).part(2) == [1, 1]
    assert len(looks) <= 3


def test_a_part_is_given_when_its_time_is_just_up(looks: list[float]) -> None:
    run = begin([1, 2, 3], Endless())
    run.part(2)

    assert len(looks) == 5


@pytest.mark.usefixtures("still")
def test_what_is_held_comes_in_parts_too() -> None:
    run = begin([0, 1, 2, 3, 4], Holding())

    assert [run.part(3), run.over] == [[1, 3, 0], False]
    assert [run.part(3), run.over] == [[2, 4], True]


def test_what_is_held_is_let_go_at_the_end() -> None:
    stage = Holding()
    run = begin([1], stage)
    run.part(9)

    assert run.over
    assert stage.closed == ["closed"]


def test_a_run_that_is_left_closes_its_generators_and_its_stages() -> None:
    twice, holding = Twice(), Holding()
    run = begin([1, 3], holding, twice)
    run.part(1)
    assert (twice.closed, holding.closed) == ([], [])

    run.close()

    assert (twice.closed, holding.closed) == (["closed"], ["closed"])


@define
class Stuck(Stage[Any, Any]):
    """Fails to let go."""

    error: BaseException

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        return items

    def close(self) -> None:
        raise self.error


def test_a_cleanup_that_fails_behind_the_last_result_is_the_failure() -> None:
    error = OSError("stuck")
    run = begin([1], Stuck(error))

    assert [1] == run.part(9)
    assert [True, error, []] == [run.over, run.failure, run.cleanup_failures]


def test_a_cleanup_that_fails_behind_a_failure_is_kept_beside_it() -> None:
    def fail(item: int) -> int:
        raise ValueError(item)

    error = OSError("stuck")
    run = begin([1], Stuck(error), Map(fail))
    run.part(9)

    assert ValueError is type(run.failure)
    assert [error] == run.cleanup_failures


def test_stages_let_go_though_a_generator_fails_to() -> None:
    def stuck(item: int) -> Iterator[int]:
        try:
            yield item
        finally:
            raise OSError("stuck")

    holding = Holding()
    run = begin([1], holding, FlatMapIterable(stuck))
    run.part(1)
    run.close()

    assert ["stuck"] == [str(error) for error in run.cleanup_failures]
    assert ["closed"] == holding.closed


def test_an_exit_in_a_function_is_a_failure_that_says_where() -> None:
    def leave(item: int) -> int:
        raise SystemExit(item)

    run = begin([1], Twice(leave))
    assert run.part(1) == []

    assert isinstance(run.failure, SystemExit)
    (note,) = run.failure.__notes__
    assert note.startswith("in twice(leave")
    assert note.endswith("chained at here.py:1 of the region")
