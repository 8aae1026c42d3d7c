"""A stage in parts is the stage: what its two halves give, over any parts of a stream, is what it gives over the whole.

So is a stage in turn, where each part knows its place.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import LimitExceededError
from reactive_aio._fusion import InTurn, Origin, Placed, RegionRun, Stage
from reactive_aio.operators.filtering.distinct import Distinct
from reactive_aio.operators.filtering.slice import Slice
from reactive_aio.operators.filtering.take import Take
from reactive_aio.operators.filtering.take_last import TakeLast
from reactive_aio.operators.filtering.take_while import TakeUntil, TakeWhile
from reactive_aio.operators.folding.by_key import CountByKey, ReduceByKey
from reactive_aio.operators.folding.collect import Collect
from reactive_aio.operators.folding.deciding import All, AnyOf, Contains, IsEmpty
from reactive_aio.operators.folding.fold import Count, Fold, Last, Reduce
from reactive_aio.operators.folding.ranking import TopK, ToSortedList
from reactive_aio.operators.folding.summing import Drain, Max, Min, Single, Sum, ToDict, ToSet
from reactive_aio.operators.transforming.index import Index
from reactive_aio.operators.transforming.sort_by import SortBy
from reactive_aio.operators.windowing.by_key import SortOfKey

NUMBERS = st.one_of(st.integers(-3, 3), st.booleans(), st.floats(), st.fractions())
WHOLE = st.integers(-3, 3)
TEXTS = st.text("ab", max_size=3)


def small(item: Any) -> bool:
    return bool(item < 2)


# A stage, and elements that have what it asks of them: an order for min, a sum that does not depend on grouping.
STAGES: list[tuple[Stage[Any, Any], st.SearchStrategy[Any]]] = [
    (Take(0), NUMBERS),
    (Take(3), NUMBERS),
    (TakeLast(0), NUMBERS),
    (TakeLast(3), NUMBERS),
    (TakeWhile(small), NUMBERS),
    (TakeUntil(small), NUMBERS),
    (Slice(1, 7, 2), NUMBERS),
    (Distinct(None, 100, evict=False), st.one_of(WHOLE, st.booleans())),
    (Distinct(abs, 100, evict=False), WHOLE),
    (Count(), NUMBERS),
    (Last(), NUMBERS),
    (Single(), NUMBERS),
    (Drain(), NUMBERS),
    (Reduce(operator.add, combine=operator.add), TEXTS),
    (Reduce(operator.add, "", operator.add), TEXTS),
    (Reduce(lambda count, _: count + 1, 0, operator.add), NUMBERS),
    (Fold(lambda count, _: count + 1, 0, operator.add), NUMBERS),
    (Sum(0), st.one_of(WHOLE, st.booleans(), st.fractions())),
    (Sum(0.5), WHOLE),
    (Min(None), NUMBERS),
    (Max(None), NUMBERS),
    (Min(lambda n: -n), NUMBERS),
    (Max(abs), NUMBERS),
    (ToSet(), st.one_of(WHOLE, st.booleans())),
    (ToDict(abs, str), WHOLE),
    (ToDict(None, None), st.tuples(WHOLE, TEXTS)),
    (AnyOf(small), NUMBERS),
    (All(small), NUMBERS),
    (Contains(1), NUMBERS),
    (IsEmpty(), NUMBERS),
    (CountByKey(abs), NUMBERS),
    (ReduceByKey(abs, lambda text, n: text + str(n), "", operator.add), WHOLE),
    (ToSortedList(None, reverse=False, max_size=100), st.one_of(WHOLE, st.booleans())),
    (ToSortedList(abs, reverse=True, max_size=100), WHOLE),
    (SortBy(None, reverse=False, max_size=100), st.one_of(WHOLE, st.booleans())),
    (SortBy(abs, reverse=True, max_size=100), WHOLE),
    (TopK(0, None), WHOLE),
    (TopK(3, None), st.one_of(WHOLE, st.booleans())),
    (TopK(3, abs), WHOLE),
    (Collect(list, list.append, list.extend), NUMBERS),
    (Collect(Counter, lambda counts, n: counts.update([n]), Counter.update), WHOLE),
]


IN_TURN: list[InTurn[Any, Any]] = [Index(0), Index(-5)]


def run_of(stage: Stage[Any, Any]) -> RegionRun:
    return RegionRun((Placed(stage, Origin("here.py", 1)),), "test", counted=False)


def over(stage: Stage[Any, Any], items: Iterable[Any], run: RegionRun | None = None) -> list[Any]:
    """Run one stage to its end."""
    run = run or run_of(stage)
    found: list[Any] = []
    try:
        if not run.done:
            found += run.over(iter(items), inf)
        found += run.finishing()
    except LimitExceededError as error:
        found.append(error)
    finally:
        run.close()
    return found


def combined(stage: Stage[Any, Any], parts: list[list[Any]]) -> list[Any]:
    halves = stage.in_parts()
    assert halves is not None
    return over(halves.combine, chain.from_iterable(over(halves.partial, part) for part in parts))


@pytest.mark.costly
@pytest.mark.parametrize(("stage", "items"), STAGES, ids=lambda value: str(value) if isinstance(value, Stage) else "")
@given(data=st.data())
@settings(max_examples=25)
def test_in_parts_it_gives_what_it_gives_over_the_whole(
    stage: Stage[Any, Any], items: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    parts = data.draw(st.lists(st.lists(items, max_size=5), max_size=4))

    assert repr(over(stage, chain.from_iterable(parts))) == repr(combined(stage, parts))


@pytest.mark.costly
@pytest.mark.parametrize(("stage", "items"), STAGES, ids=lambda value: str(value) if isinstance(value, Stage) else "")
@given(data=st.data())
@settings(max_examples=15)
def test_a_part_that_needs_no_more_decides_the_whole(
    stage: Stage[Any, Any], items: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    parts = data.draw(st.lists(st.lists(items, max_size=5), max_size=4))
    halves = stage.in_parts()
    assert halves is not None
    needed: list[Any] = []
    for part in parts:
        run = run_of(halves.partial)
        needed += over(halves.partial, part, run)
        if run.done:
            break

    assert repr(over(stage, chain.from_iterable(parts))) == repr(over(halves.combine, needed))


@pytest.mark.parametrize("stage", IN_TURN, ids=str)
@given(parts=st.lists(st.lists(NUMBERS, max_size=5), max_size=4))
@settings(max_examples=15)
def test_in_turn_it_gives_what_it_gives_over_the_whole(stage: InTurn[Any, Any], parts: list[list[Any]]) -> None:
    place = 0
    found: list[Any] = []
    for part in parts:
        run = run_of(stage)
        run.place = place
        found += over(stage, part, run)
        place = run.place

    assert repr(over(stage, chain.from_iterable(parts))) == repr(found)
    assert place == sum(map(len, parts))


def test_every_stage_that_is_done_in_turn_is_tried_here() -> None:
    assert {type(stage) for stage in IN_TURN} == _kinds(InTurn) - {InTurn}


def test_every_stage_that_is_done_in_parts_is_tried_here() -> None:
    found = {
        kind
        for kind in _kinds(Stage)
        if kind.in_parts is not Stage.in_parts and kind.__module__.startswith("reactive_aio.")
    }

    # The elements of a key are in no parts.
    assert {type(stage) for stage, _ in STAGES} == found - {SortOfKey}


def _kinds(kind: type[Any]) -> set[type[Any]]:
    return {kind} | {each for sub in kind.__subclasses__() for each in _kinds(sub)}


@pytest.mark.parametrize(
    "stage",
    [
        Reduce(operator.sub),
        Sum([]),
        Slice(3, None, 1),
        Distinct(None, 3, evict=True),
        Reduce(operator.sub, 0),
        ReduceByKey(abs, max, 0, None),
        Collect(list, list.append),
    ],
    ids=str,
)
def test_what_would_differ_is_not_done_in_parts(stage: Stage[Any, Any]) -> None:
    assert stage.in_parts() is None


@pytest.mark.parametrize("parts", [[[1, 2, 3], [3]], [[1], [2, 1], [1, 3]], [[1, 2], [2, 1], [1, 2]]], ids=str)
def test_too_many_different_ones_are_noticed_at_the_same_place(parts: list[list[int]]) -> None:
    stage = Distinct[int](None, 2, evict=False)

    assert repr(over(stage, chain.from_iterable(parts))) == repr(combined(stage, parts))


def test_a_part_gives_no_more_than_is_needed_of_it() -> None:
    items = [3, 1, 1, 2, 9, 2]

    assert {
        "take(2)": [3, 1],
        "single()": [3, 1],
        "count()": [6],
        "min(None)": [1],
        "distinct(None, 9, False)": [3, 1, 2, 9],
    } == {
        str(stage): over(parts.partial, items)
        for stage in (Take(2), Single(), Count(), Min(None), Distinct(None, 9, evict=False))
        if (parts := stage.in_parts())
    }


NAN = float("nan")


@pytest.mark.parametrize("stage", [Min(None), Max(None), Min(operator.neg), Max(operator.neg)], ids=str)
@pytest.mark.parametrize(
    "parts",
    [
        [[2.0], [NAN, 1.0, 3.0]],
        [[NAN, 1.0, 3.0], [2.0]],
        [[2.0, NAN], [NAN], [NAN, 3.0, 1.0]],
        [[], [NAN, NAN], [1.0]],
        [[NAN], [NAN]],
    ],
    ids=str,
)
def test_what_can_not_be_compared_hides_no_more_than_it_does_in_the_whole(
    stage: Stage[Any, Any], parts: list[list[float]]
) -> None:
    assert repr(over(stage, chain.from_iterable(parts))) == repr(combined(stage, parts))
