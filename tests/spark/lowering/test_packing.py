"""Rows of a shuffle that have several elements of a key each: all of them arrive, in their order, and few are held."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from random import Random
from threading import Lock
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reactive_aio import Flow, hooks
from reactive_aio._core.notes import notes_of
from reactive_aio._flow.keyed import KeyedFlow
from reactive_aio.operators.windowing.by_key import GroupByKey
from reactive_aio.operators.windowing.keys import in_bytes
from reactive_aio.spark._task import packing
from reactive_aio.spark._task.combining import before_shuffle, behind_shuffle
from reactive_aio.spark._task.packing import Packing
from reactive_aio.spark._task.shuffled import NO_CLASSES, Row, told
from reactive_aio.spark._task.worker import InputFailed

PARTS = 4
N = 1000
Element = tuple[Any, Any]


def key_of(element: Element) -> Any:
    return element[0]


def place_of(element: Element) -> Any:
    return element[1]


def keyed() -> KeyedFlow[Any, Element]:
    return Flow.of(("a", 1)).group_by_key(key_of)


def keyed_by_place(order_by: Any) -> KeyedFlow[Any, Element]:
    return Flow.of(("a", 1)).group_by_key(key_of, order_by=order_by)


def ordered() -> KeyedFlow[Any, Element]:
    return Flow.of(("a", 1)).group_by_key(key_of, order_by=place_of)


def work_of(flow: Flow[Any]) -> GroupByKey:
    """Return the stage of keyed work."""
    (step,) = flow.__nodes__.steps
    assert isinstance(step.operator, GroupByKey)
    return step.operator


def rows_of(flow: Flow[Any], *tasks: Iterable[Any]) -> list[Row]:
    """Return the rows that tasks send to the shuffle, as Spark sorts them."""
    stages = before_shuffle(work_of(flow), PARTS, NO_CLASSES)
    rows: list[Row] = []
    for task in tasks:
        made: Flow[Any] = reduce(lambda flow, stage: flow.then(stage), stages, Flow.from_iterable(task))
        rows += made.run_sync()
    return sorted(rows, key=lambda row: row[1:])


def behind(flow: Flow[Any], rows: Iterable[Row]) -> list[Any]:
    """Run the stages behind the shuffle."""
    return Flow.from_iterable(rows).then(behind_shuffle(work_of(flow))).run_sync()


def packing_of(flow: Flow[Any]) -> Packing:
    """Return the transform that holds elements before the shuffle."""
    transform = before_shuffle(work_of(flow), PARTS, NO_CLASSES)[-1].transform()
    assert isinstance(transform, Packing)
    return transform


def drawn(seed: int, count: int = N) -> list[Element]:
    draw = Random(seed)
    return [(draw.choice("abc"), draw.randrange(10**6)) for _ in range(count)]


def sizes(rows: Iterable[Row]) -> list[int]:
    """Return how many elements each row has."""
    some = (pickle.loads(row[3])[1] for row in rows)
    return [len(each if isinstance(each, list) else each[1]) for each in some]


def test_the_elements_of_a_key_travel_in_one_row() -> None:
    elements = [("a", 2), ("b", 1), ("a", 1), ("a", 3)]
    rows = rows_of(keyed().pairs(), elements)

    assert [3, 1] == sizes(rows)
    assert [("a", ("a", 2)), ("a", ("a", 1)), ("a", ("a", 3)), ("b", ("b", 1))] == behind(keyed().pairs(), rows)


@pytest.mark.parametrize("merged", [0, 1 << 20])
def test_what_several_tasks_send_comes_in_order(merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PIECE", 1000)
    monkeypatch.setattr(packing, "MERGED", merged)
    flow = ordered().map(place_of).pairs()
    tasks = [drawn(seed) for seed in range(5)]
    rows = rows_of(flow, *tasks)

    assert len(rows) > 3 * 5 * 20
    expected = sorted(element for task in tasks for element in task)
    assert expected == behind(flow, rows)


PLACES: list[Any] = [
    3,
    2.5,
    float("nan"),
    -0.5,
    True,
    Decimal("2.75"),
    2**70,
    None,
    "b",
    "a",
    (1, "a"),
    (1, 2),
    datetime(2024, 10, 27, 2, 30, tzinfo=UTC),
    datetime(2024, 10, 27, 2, 30),
    date(2024, 10, 27),
]
ALIKE: list[list[Any]] = [
    [float("nan"), 1.0, float("nan"), 0.5, float("inf"), -0.0, 0.25, 7.0],
    [1.0, 3, 0.5, float("-inf"), 2**1025, True, -0.0, 0],
    [datetime(2024, 10, 27, 2, n, fold=n % 2) for n in (30, 10, 50, 20)],
    [datetime(2024, 10, 27, 2, n, fold=n % 2, tzinfo=ZoneInfo("Europe/Berlin")) for n in (30, 1, 50, 11)],
    [datetime(2024, 10, 27), datetime(2024, 10, 26, tzinfo=UTC), date(2024, 10, 28), date(203, 1, 1)],
    [
        datetime(2024, 10, 27, 0, 45, tzinfo=UTC),
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    ],
]


@pytest.mark.parametrize("merged", [0, 1 << 20])
@pytest.mark.parametrize("piece", [1, 1 << 13])
@pytest.mark.parametrize("places", [PLACES, *ALIKE], ids=lambda places: repr(places[0]))
def test_places_of_several_types_are_in_the_order_of_the_event_loop(
    places: list[Any], piece: int, merged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PIECE", piece)
    monkeypatch.setattr(packing, "MERGED", merged)
    flow = ordered().map(place_of).pairs()
    first, other = ([("a", place) for place in Random(seed).sample(places, len(places))] for seed in (1, 2))
    on_the_loop = Flow.from_iterable([*first, *other]).group_by_key(key_of, order_by=place_of).map(place_of).pairs()

    found = behind(flow, rows_of(flow, first, other))
    assert list(map(in_bytes, on_the_loop.run_sync())) == list(map(in_bytes, found))


def test_elements_of_one_place_keep_the_order_of_their_task() -> None:
    def tens(element: Element) -> int:
        return int(element[1]) // 10

    flow = Flow.of(("a", 1)).group_by_key(key_of, order_by=tens).map(place_of).pairs()
    rows = rows_of(flow, [("a", n) for n in (12, 5, 11, 3, 19, 1)])

    assert [5, 3, 1, 12, 11, 19] == [n for _, n in behind(flow, rows)]


@pytest.mark.parametrize("flow", [keyed().pairs(), ordered().pairs()])
def test_a_row_has_no_more_bytes_than_a_piece_unless_it_is_one_element(
    flow: Flow[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PIECE", 10_000)
    small = sizes(rows_of(flow, [("a", n) for n in range(N)]))
    assert N == sum(small)
    assert 10 < len(small) < 20
    assert [1] * 9 == sizes(rows_of(flow, [("a", "x" * 10_000)] * 9))


@pytest.mark.parametrize("flow", [keyed().pairs(), ordered().pairs()])
def test_a_task_holds_no_more_than_so_many_bytes(flow: Flow[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "HEAVY", 100_000)
    taken: list[Element] = []

    def marked() -> Iterator[Any]:
        for element in drawn(1):
            taken.append(element)
            yield element[0], element[0], *(["place" * 100] if packed.ordered else []), ("x" * 400, element)

    packed = packing_of(flow)
    rows = packed.apply(marked())
    first = next(rows)

    assert 2 * packing.WEIGHED <= len(taken) <= 3 * packing.WEIGHED
    assert N == sum(sizes([first, *rows, *packed.finish()]))


def test_large_elements_are_noticed_also_where_one_of_so_many_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "HEAVY", 100_000)
    taken: list[int] = []

    def marked() -> Iterator[Any]:
        for n in range(100 * packing.WEIGHED):
            taken.append(n)
            yield "a", "a", "x" * 1_000 * bool(n % packing.WEIGHED)

    next(packing_of(keyed().pairs()).apply(marked()))

    assert len(taken) <= 4 * packing.WEIGHED


def test_elements_are_passed_on_when_no_later_row_can_come_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PIECE", 1000)
    monkeypatch.setattr(packing, "MERGED", 0)
    flow = ordered().map(place_of).pairs()
    rows = rows_of(flow, [("a", n) for n in range(N)], [("a", n + 0.5) for n in range(N)])
    read: list[Row] = []

    def reading() -> Iterator[Row]:
        for row in rows:
            read.append(row)
            yield row

    merging: Any = behind_shuffle(work_of(flow)).transform()
    passed = 0
    for pair in merging.apply(reading()):
        assert ("a", passed / 2) == pair
        assert sum(sizes(read)) - passed < 5 * max(sizes(rows))
        passed += 1
    assert 2 * N - passed < 5 * max(sizes(rows))


def same_place(element: Element) -> int:
    return 0


def test_elements_of_one_place_are_passed_on_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the longer side of a join, whose elements all have one place."""
    monkeypatch.setattr(packing, "MERGED", 0)
    flow = keyed_by_place(same_place).map(place_of).pairs()
    rows = rows_of(flow, [("a", n) for n in range(N)])

    merging: Any = behind_shuffle(work_of(flow)).transform()
    merged = merging.merging
    held = [len(merged.elements) for _ in merging.apply(iter(rows))]

    assert len(rows) > 1
    assert N == len(held)
    assert {0} == set(held)


def test_a_key_goes_on_from_one_pass_to_the_next() -> None:
    flow = ordered().map(place_of).pairwise().pairs()
    rows = rows_of(flow, [("a", 1), ("b", 1), ("a", 3)], [("a", 2), ("b", 2), ("a", 4)])
    transform: Any = behind_shuffle(work_of(flow)).transform()

    given = [pair for row in rows for pair in transform.apply(iter([row]))]
    assert transform.pending
    given += transform.finish()

    assert [("a", (1, 2)), ("a", (2, 3)), ("a", (3, 4)), ("b", (1, 2))] == given
    assert not transform.pending


@pytest.mark.parametrize("flow", [keyed(), ordered()])
def test_a_key_that_needs_no_more_elements_leaves_the_others_theirs(flow: KeyedFlow[Any, Any]) -> None:
    work = flow.take(1).map(place_of).pairs()

    assert [("a", 2), ("b", 1)] == behind(work, rows_of(work, [("a", 2), ("b", 1), ("a", 3), ("a", 4)]))


@pytest.mark.parametrize("flow", [keyed().pairs(), ordered().pairs()])
def test_a_failure_before_the_shuffle_comes_before_all_elements(flow: Flow[Any]) -> None:
    failure = next(row for row in told(b"packed", PARTS) if row[0] == 1)
    transform: Any = behind_shuffle(work_of(flow)).transform()

    with pytest.raises(InputFailed) as failed:
        list(transform.apply(iter([failure, *rows_of(flow, [("a", 1)])])))
    assert b"packed" == failed.value.packed


def failing(element: Element) -> Any:
    return 1 // (element[1] - 2)


@pytest.mark.parametrize(
    "flow",
    [Flow.of(("a", 1)).group_by_key(failing).pairs(), Flow.of(("a", 1)).group_by_key(key_of, order_by=failing).pairs()],
)
def test_a_function_that_fails_is_named_with_its_element(flow: Flow[Any]) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        rows_of(flow, [("a", 0), ("a", 1), ("a", 2)])

    note = notes_of(caught.value)[0]
    assert note.startswith("in group_by_key(")
    assert ", on element #2 of " in note


def test_a_key_or_place_that_can_not_be_sorted_is_refused_with_its_element() -> None:
    for element in ([frozenset(), 1], ["a", frozenset()]):
        with pytest.raises(TypeError, match="can't be a key") as caught:
            rows_of(ordered().pairs(), [("a", 0), element])
        assert ", on element #1 of " in notes_of(caught.value)[0]


def test_an_element_that_can_not_be_pickled_is_named_by_its_key() -> None:
    with pytest.raises(TypeError, match="cannot pickle") as caught:
        rows_of(keyed().pairs(), [("a", 0), ("b", Lock())])

    # From 3.14 on Python notes something of its own first.
    first, second = [note for note in notes_of(caught.value) if not note.startswith("when serializing")][:2]
    assert "on an element of key 'b'" == first
    assert second.startswith("in group_by_key(")
    assert "element #" not in second


@pytest.mark.parametrize("flow", [keyed().pairs(), ordered().pairs()])
def test_elements_that_are_not_sent_on_are_discarded(flow: Flow[Any]) -> None:
    transform = packing_of(flow)
    marked = [(key, key, *([place] if transform.ordered else []), (key, place)) for key, place in drawn(1, 9)]
    assert [] == list(transform.apply(iter(marked)))
    assert transform.pending

    dropped: list[Any] = []
    with hooks.using(on_discard=dropped.append):
        transform.close()
    assert sorted(drawn(1, 9)) == sorted(dropped)
    assert not transform.pending
