"""The fused function by itself: its slices and its clock, what it reports, and how a failure in it is placed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from attrs import define, field, frozen

from reactive_aio._core import budgets
from reactive_aio._core.budgets import QUICK
from reactive_aio._fusion import READING, STARTING, Origin, Pace, Placed, RegionRun, Stage, Transform
from reactive_aio._fusion.fuse import DEEPEST, Call, call, fuse, gathering
from reactive_aio._fusion.writing import LONGEST_PLAIN, LONGEST_SLICE
from reactive_aio.operators.filtering import Filter, Take
from reactive_aio.operators.filtering.take import Taking
from reactive_aio.operators.folding.fold import Counting
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.transforming.flat_map_iterable import FlatMapIterable
from reactive_aio.operators.transforming.index import Numbering


@define
class Clock:
    """Stands still until the test moves it, and notes at each look how many elements have been read."""

    read: list[int] = field(factory=list)
    looks: list[int] = field(factory=list)
    now: float = 0.0

    def __call__(self) -> float:
        self.looks.append(len(self.read))
        return self.now

    def reading(self, count: int, seconds: Callable[[int], float] = lambda n: 0.0) -> Iterator[int]:
        for n in range(count):
            self.now += seconds(n)
            self.read.append(n)
            yield n


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(budgets, "clock", clock)
    return clock


def until(deadline: float) -> Pace:
    """The terms of a pass that is to end then."""
    pace = Pace()
    pace.deadline = deadline
    return pace


class Unfused(Transform[Any, Any]):
    """A transform of a user's, without a template."""

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        yield from items


SHAPES = pytest.mark.parametrize(
    ("stages", "counted"), [((), True), ((), False), ((Map(abs),), True), ((Map(abs),), False)], ids=str
)


# -- slices


@SHAPES
def test_slices_double_while_elements_are_quick(clock: Clock, stages: tuple[Map[Any, Any], ...], counted: bool) -> None:
    pace = until(1.0)
    items = fuse(stages, paced=True, counted=counted).paced(clock.reading(400), pace)

    assert list(items) == list(range(400))
    plain = counted and not stages
    assert clock.looks == [0, 1, 3, 7, 15, 31, 63, 127, 255, *([] if plain else [383]), 400]
    assert LONGEST_SLICE == 128


@pytest.mark.parametrize(
    ("stages", "plain"),
    [
        ((Counting(0),), True),
        ((Taking(5000), Counting(0)), True),
        ((), True),
        ((Counting(0), Map(abs)), False),
        ((Map(abs), Counting(0)), False),
        ((Unfused(), Counting(0)), False),
    ],
    ids=["count", "take, count", "nothing", "count, map", "map, count", "unfused, count"],
)
@pytest.mark.parametrize("counted", [True, False], ids=["of a list", "of a source of the user's"])
def test_slices_grow_long_only_where_nothing_of_the_users_runs(
    clock: Clock, stages: tuple[Any, ...], plain: bool, counted: bool
) -> None:
    list(fuse(stages, paced=True, counted=counted).paced(clock.reading(4000), until(1.0)))

    longest = max(later - look for look, later in pairwise(clock.looks))
    assert longest == (LONGEST_PLAIN if plain and counted else LONGEST_SLICE)


@SHAPES
def test_a_slow_slice_is_followed_by_a_single_element(
    clock: Clock, stages: tuple[Map[Any, Any], ...], counted: bool
) -> None:
    pace = until(1.0)
    source = clock.reading(12, lambda n: 2 * QUICK if n == 4 else 0.0)

    assert len(list(fuse(stages, paced=True, counted=counted).paced(source, pace))) == 12
    assert clock.looks == [0, 1, 3, 7, 8, 10, 12]


def test_a_slice_that_takes_just_the_time_is_quick(clock: Clock) -> None:
    source = clock.reading(3, lambda n: QUICK if n == 0 else 0.0)

    assert len(list(fuse((Map(abs),), paced=True).paced(source, until(1.0)))) == 3
    assert clock.looks == [0, 1, 3]
    assert 10e-6 < QUICK < 1e-3


@SHAPES
def test_a_pass_ends_at_its_deadline_and_is_taken_up_again(
    clock: Clock, stages: tuple[Map[Any, Any], ...], counted: bool
) -> None:
    fused, pace = fuse(stages, paced=True, counted=counted), until(1.0)
    source = clock.reading(40, lambda n: 1.0 if n == 6 else 0.0)

    assert list(fused.paced(source, pace)) == list(range(7))
    assert (pace.ended, pace.stride) == (False, 1)  # the last slice was slow
    assert counted or pace.index == 7

    pace.deadline = 2.0
    assert list(fused.paced(source, pace)) == list(range(7, 40))
    assert (pace.ended, pace.stride) == (True, 64)
    assert counted or pace.index == 40


def test_a_pass_that_was_quick_up_to_its_deadline_goes_on_with_twice_as_many(clock: Clock) -> None:
    fused, pace = fuse((Map(abs),), paced=True), until(QUICK / 2)
    source = clock.reading(40, lambda n: QUICK / 2 if n == 6 else 0.0)

    assert list(fused.paced(source, pace)) == list(range(7))
    assert (pace.ended, pace.stride) == (False, 8)


def test_a_pass_that_was_not_quick_up_to_its_deadline_goes_on_with_one_element(clock: Clock) -> None:
    fused, pace = fuse((Map(abs),), paced=True), until(QUICK)
    source = clock.reading(40, lambda n: 2 * QUICK if n == 6 else 0.0)

    assert list(fused.paced(source, pace)) == list(range(7))
    assert (pace.ended, pace.stride) == (False, 1)


def test_a_slice_through_which_nothing_passes_is_no_end(clock: Clock) -> None:
    pace = until(1.0)

    assert list(fuse((Filter[int](lambda n: n > 8),), paced=True).paced(clock.reading(10), pace)) == [9]
    assert pace.ended


def test_what_is_not_paced_goes_to_the_end() -> None:
    assert list(fuse(()).unpaced(iter(range(10)))) == list(range(10))
    assert list(fuse((Map(str),)).unpaced(iter([1, 2, 3]))) == ["1", "2", "3"]
    assert list(FlatMapIterable(range).transform().apply(iter([3, 0, 2]))) == [0, 1, 2, 0, 1]
    assert len(list(fuse((FlatMapIterable(range).transform(),)).unpaced(iter([1000, 1000])))) == 2000


def test_a_fused_function_passes_none_of_the_ends_of_its_input() -> None:
    pace = until(1e9)

    assert list(fuse((), paced=True).paced(iter([]), pace)) == []
    assert pace.ended


# -- regions


def region(*stages: Stage[Any, Any], counted: bool = True) -> RegionRun:
    placed = tuple(Placed(stage, Origin("here.py", at)) for at, stage in enumerate(stages, 1))
    return RegionRun(placed, "the source", counted=counted)


def test_a_region_gives_many_elements_of_one_by_the_clock(clock: Clock) -> None:
    run = region(FlatMapIterable(lambda n: [n] * 1000))
    items = iter([1, 2])
    passes: list[int] = []
    while not run.pace.ended:
        passes.append(len(list(run.over(items, deadline=0.0))))

    assert sum(passes) == 2000
    assert max(passes) < 1000


def test_more_stages_than_fit_into_one_function_are_fused_into_several() -> None:
    stages = [Map((1).__add__)] * (2 * DEEPEST + 1)

    fused = fuse(stages, paced=True)

    assert list(fused.offsets) == [0, DEEPEST, 2 * DEEPEST]
    assert list(fused.unpaced(iter([0]))) == [2 * DEEPEST + 1]


# -- failures


@frozen
class Whole(Stage[Any, Any]):
    """Applied as a whole, without a frame of its own."""

    fn: Callable[[Any], Any]

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        return map(self.fn, items)


@frozen
class Own(Stage[Any, Any]):
    """Applied as a whole, by a generator."""

    fn: Callable[[Any], Any]

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            yield self.fn(item)


def fail_at(place: int) -> Callable[[int], int]:
    def fail(n: int) -> int:
        if n == place:
            raise KeyError(n)
        return n

    return fail


def note_of(run: RegionRun, items: Iterable[Any]) -> str:
    """Return the note that a failure gets, a chunk of the input at a time."""
    chunk = list(items) if not isinstance(items, Iterator) else items
    if isinstance(chunk, list):
        run.total = len(chunk)

    def drive() -> None:
        list(run.over(iter(chunk), deadline=float("inf")))

    try:
        drive()
    except (KeyError, RuntimeError) as error:
        run.locate(error)
        (note,) = error.__notes__
        return note
    raise AssertionError("nothing failed")


@pytest.mark.parametrize("kind", [Map, Own, Whole])
def test_a_stage_that_fails_is_named_wherever_it_stands(kind: type[Any]) -> None:
    fail = kind(fail_at(2))
    name = kind.__name__.lower()

    for before in ([], [Map(abs)], [Own(abs)]):
        for after in ([Map(abs)], [Map(abs), Own(abs)]):
            note = note_of(region(*before, fail, *after), range(5))
            assert note.startswith(f"in {name}(fail), chained at here.py:{len(before) + 1}")
            assert note.endswith(" of the source")


@pytest.mark.parametrize("kind", [Map, Own])
def test_the_last_stage_is_named_too(kind: type[Any]) -> None:
    name = kind.__name__.lower()

    assert note_of(region(kind(fail_at(2))), range(5)).startswith(f"in {name}(fail), chained at here.py:1")
    assert note_of(region(Map(abs), kind(fail_at(2))), range(5)).startswith(f"in {name}(fail), chained at here.py:2")
    assert note_of(region(Own(abs), kind(fail_at(2))), range(5)).startswith(f"in {name}(fail), chained at here.py:2")


@pytest.mark.parametrize("place", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("counted", [True, False])
def test_the_element_is_told_by_its_place_in_the_input(place: int, counted: bool) -> None:
    items: Any = range(10) if counted else (n for n in range(10))
    run = region(Filter(lambda n: n % 2 or n == place), Map(fail_at(place)), counted=counted)

    assert f", on element #{place} of the source" in note_of(run, items)


@pytest.mark.parametrize("counted", [True, False])
def test_the_element_is_told_behind_stages_that_are_applied_as_a_whole(counted: bool) -> None:
    items: Any = range(10) if counted else (n for n in range(10))
    run = region(Map(fail_at(2)), Own(abs), Map(abs), Whole(abs), Map(str), counted=counted)

    assert "on element #2 of the source" in note_of(run, items)


def test_the_element_is_told_across_passes() -> None:
    run = region(Map(fail_at(7)), counted=False)
    items = (n for n in range(10))
    while not run.pace.index > 3:
        list(run.over(items, deadline=0.0))

    assert "on element #7 " in note_of(run, items)


def test_the_element_is_told_across_passes_that_end_in_the_middle_of_one() -> None:
    run = region(Map(fail_at(7)), FlatMapIterable(lambda n: [n] * 1000), counted=False)
    items = (n for n in range(10))
    for _ in range(30):
        list(run.over(items, deadline=0.0))

    assert "on element #7 " in note_of(run, items)


def test_a_source_that_fails_is_named_with_the_element_before() -> None:
    def broken() -> Iterator[int]:
        yield from range(3)
        raise KeyError("broken")

    for stages in ([], [Map(abs)], [Map(abs), Take(9)]):
        assert note_of(region(*stages, counted=False), broken()) == "in the source, after element #2"


def test_a_source_that_fails_first_in_a_pass_is_named_with_the_element_of_the_pass_before() -> None:
    def broken() -> Iterator[int]:
        yield from range(3)
        raise KeyError("broken")

    run, items = region(Map(abs), counted=False), broken()
    while run.pace.index < 3:
        list(run.over(items, deadline=0.0))

    assert note_of(run, items) == "in the source, after element #2"


def test_a_source_that_fails_at_once_is_named_alone() -> None:
    def broken() -> Iterator[int]:
        raise KeyError("broken")
        yield

    assert note_of(region(counted=False), broken()) == "in the source"


def test_a_stop_iteration_of_a_function_is_placed_where_it_was_raised() -> None:
    def stop(n: int) -> int:
        raise StopIteration

    assert note_of(region(Map(abs), Map(stop)), range(3)).startswith(
        "in map(stop), chained at here.py:2, on element #0"
    )


def test_an_error_gets_the_same_note_once() -> None:
    error = KeyError("again")

    def fail(n: int) -> int:
        raise error

    for _ in range(3):
        assert note_of(region(Map(fail)), range(3))


def test_an_error_without_a_traceback_is_the_sources() -> None:
    error = KeyError("made, not raised")
    region(Map(abs)).locate(error)

    assert error.__notes__ == ["in the source"]


# -- holding, stopping and letting go


@define
class Holding(Stage[Any, Any]):
    """Holds one element until the end."""

    held: list[Any] = field(factory=list)
    enough: bool = False
    closed: list[str] = field(factory=list)

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self.held.append(item)
        return
        yield

    def finish(self) -> list[Any]:
        return self.held

    def close(self) -> None:
        self.closed.append("closed")

    @property
    def done(self) -> bool:
        return self.enough

    @property
    def pending(self) -> bool:
        return bool(self.held)


def test_what_is_held_goes_through_the_stages_that_follow() -> None:
    run = region(Map(abs), Holding(), Map(str))
    assert not run.pending
    assert list(run.over(iter([-1, 2]), deadline=float("inf"))) == []

    assert run.pending
    assert list(run.finishing()) == ["1", "2"]


def test_what_a_later_stage_no_longer_listens_to_is_left_out() -> None:
    first, second = Holding(), Holding()
    run = region(first, second)
    first.held.append(1)
    assert run.pending

    second.enough = True

    assert run.done
    assert not run.pending
    assert list(run.finishing()) == []


def test_a_stage_that_has_enough_still_gives_what_it_holds() -> None:
    only = Holding()
    run = region(only)
    only.held.append(1)
    only.enough = True

    assert run.pending
    assert list(run.finishing()) == [1]


def test_of_several_functions_only_the_iterators_of_the_latest_pass_are_kept() -> None:
    run = region(Map(abs), Own(abs))
    for _ in range(3):
        assert list(run.over(iter([1]), deadline=float("inf"))) == [1]
        assert len(run.made) == 2

    run.close()
    assert run.made == []


def test_each_stage_lets_go_once() -> None:
    first, second = Holding(), Holding()
    region(first, Map(abs), second).close()

    assert (first.closed, second.closed) == (["closed"], ["closed"])


@pytest.mark.usefixtures("still")
def test_a_pass_over_the_next_stretch_has_not_ended_yet() -> None:
    run = region(Map(abs))
    list(run.over(iter([1]), deadline=float("inf")))
    assert run.pace.ended

    assert list(run.over(iter([1, 2, 3]), deadline=0.0)) == [1, 2]
    assert not run.pace.ended


def test_what_is_held_is_given_to_the_end_whatever_the_time() -> None:
    run = region(Holding(), FlatMapIterable(lambda n: [n] * 1000))
    list(run.over(iter([1, 2]), deadline=float("inf")))
    run.pace.deadline = 0.0

    assert len(list(run.finishing())) == 2000


@define
class Beginning(Stage[Any, Any]):
    """Has something to give before any input."""

    first: Any
    enough: bool = False

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        return items

    def prelude(self) -> list[Any]:
        return [self.first]

    @property
    def done(self) -> bool:
        return self.enough


def test_what_comes_before_any_input_goes_through_the_stages_that_follow() -> None:
    run = region(Map(abs), Beginning(-1), Map(str), Beginning("0"))

    assert run.phase is STARTING
    assert region(Map(abs)).phase is READING
    assert list(run.starting()) == ["0", "-1"]
    assert list(run.over(iter([-2]), deadline=float("inf"))) == ["2"]


def test_what_comes_before_any_input_is_left_out_where_a_later_stage_does_not_listen() -> None:
    assert list(region(Beginning(1), Beginning(2, enough=True)).starting()) == [2]


def test_what_comes_before_any_input_pauses_when_its_time_is_just_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", lambda: 1.0)
    run = region(Beginning(1), Beginning(2))

    assert (list(run.starting(until=1.0)), run.paused) == ([2], True)
    assert (list(run.starting(until=2.0)), run.paused) == ([1], False)


# -- lists that are filled


def filling(*transforms: Any, hurried: bool = True) -> Call:
    unit = gathering(tuple(map(type, transforms)), hurried=hurried)
    assert unit is not None
    return call(unit, transforms)


@pytest.mark.parametrize("most", [1, 10, LONGEST_PLAIN + 1])
def test_a_list_is_filled_in_one_slice_where_nothing_of_the_users_runs(clock: Clock, most: int) -> None:
    (fill, bound), given, items = filling(Numbering(0)), list[Any](), iter(range(5000))

    fill(items, until(1.0), given, most, *bound)

    assert [*enumerate(range(most))] == given
    assert most == next(items)
    assert (2 if most > LONGEST_PLAIN else 1) == len(clock.looks)


def test_a_fold_has_no_list_that_could_be_full(clock: Clock) -> None:
    counting, pace = Counting(0), until(1.0)
    fill, bound = filling(counting)

    fill(iter(range(5000)), pace, [], 1, *bound)

    assert (5000, True) == (counting.value, pace.ended)
    assert 5000 // LONGEST_PLAIN == len(clock.looks)


@pytest.mark.parametrize(("hurried", "looks"), [(True, [0, 1, 2, 3, 4, 5, 6]), (False, [0, 1, 3, 6])])
def test_a_list_is_filled_with_an_eye_on_the_clock_where_an_event_loop_waits(
    clock: Clock, hurried: bool, looks: list[int]
) -> None:
    (fill, bound), given = filling(Map(abs), hurried=hurried), list[int]()

    fill(clock.reading(6, lambda _: 2 * QUICK), until(1.0), given, 100, *bound)

    assert [*range(6)] == given
    assert looks == clock.looks
