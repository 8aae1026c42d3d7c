"""Keyed work in parts: a task sends on the results of its elements, and behind the shuffle they are put together."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import reduce
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reactive_aio import Flow
from reactive_aio._core.notes import notes_of
from reactive_aio._flow.keyed import KeyedFlow
from reactive_aio.operators.windowing.by_key import GroupByKey
from reactive_aio.spark._task import combining
from reactive_aio.spark._task.combining import InParts, before_shuffle, behind_shuffle, parts_of
from reactive_aio.spark._task.shuffled import NO_CLASSES, Row

PARTS = 4
NAN = float("nan")


def first(element: tuple[Any, int]) -> Any:
    return element[0]


def second(element: tuple[Any, int]) -> int:
    return element[1]


def keyed(elements: Iterable[Any] = ()) -> KeyedFlow[Any, Any]:
    return Flow.from_iterable(elements).group_by_key(first)


COUNTS = [
    pytest.param(lambda flow: flow.count(), id="of the elements"),
    pytest.param(lambda flow: flow.map(second).count(), id="of what a function makes of them"),
]


def work_of(flow: Flow[Any]) -> GroupByKey:
    """Return the stage of keyed work."""
    (step,) = flow.__nodes__.steps
    assert isinstance(step.operator, GroupByKey)
    return step.operator


def rows_of(work: GroupByKey, *tasks: Iterable[Any]) -> list[Row]:
    """Return the rows that tasks send to the shuffle."""
    return [row for task in tasks for row in before(work, Flow.from_iterable(task)).run_sync()]


def before(work: GroupByKey, flow: Flow[Any]) -> Flow[Row]:
    """Run the stages before the shuffle."""
    return reduce(lambda flow, stage: flow.then(stage), before_shuffle(work, PARTS, NO_CLASSES), flow)


def behind(work: GroupByKey, rows: Iterable[Row]) -> dict[Any, Any]:
    """Run the stages behind the shuffle."""
    return dict(Flow.from_iterable(sorted(rows)).then(behind_shuffle(work)).run_sync())


def sent(rows: Iterable[Row]) -> list[Any]:
    return [pickle.loads(row[3]) for row in rows]


def test_a_task_sends_one_count_for_each_key() -> None:
    work = work_of(keyed().count())
    rows = rows_of(work, [("a", 1), ("b", 2), ("a", 3)], [("a", 4)])

    assert [("a", [2]), ("b", [1]), ("a", [1])] == sent(rows)
    assert {"a": 3, "b": 1} == behind(work, rows)


def test_a_task_sends_no_more_than_the_greatest_elements_of_each_key() -> None:
    work = work_of(keyed().map(second).top_k(2).pairs())
    rows = rows_of(work, [("a", n) for n in range(100)], [("a", 98.5), ("b", 1)])

    assert [("a", [98, 99]), ("a", [98.5]), ("b", [1])] == sent(rows)
    assert {"a": [99, 98.5], "b": [1]} == behind(work, rows)


@pytest.mark.parametrize("key", [None, second], ids=["by themselves", "by a function"])
def test_the_greatest_none_of_each_key_is_an_empty_list(key: Any) -> None:
    work = work_of(keyed().top_k(0, key=key).pairs())
    rows = rows_of(work, [("a", 1), ("b", 2)], [("a", 3)])

    assert {"a": [], "b": []} == behind(work, rows)


def test_elements_are_ranked_by_the_function_of_top_k_which_is_called_once_for_each() -> None:
    called: list[int] = []

    def lower(n: int) -> int:
        called.append(n)
        return -n

    work = work_of(keyed().map(second).top_k(2, key=lower).pairs())
    rows = rows_of(work, [("a", n) for n in (5, 3, 9, 1, 3)])

    assert [("a", [3, 1])] == sent(rows)
    assert [5, 3, 9, 1, 3] == called
    assert {"a": [1, 3]} == behind(work, rows)


def test_a_task_keeps_no_more_elements_than_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combining, "MOST", 4)
    work = work_of(keyed().map(second).top_k(2).pairs())
    rows = rows_of(work, [(key, n) for n in range(3) for key in "abc"])

    assert {"a": [2, 1], "b": [2, 1], "c": [2, 1]} == behind(work, rows)
    assert len(rows) > 6


def test_what_follows_is_done_behind_the_shuffle() -> None:
    work = work_of(keyed().map(second).top_k(2).map(sum).pairs())
    rows = rows_of(work, [("a", n) for n in range(10)], [("b", 1)])

    assert {"a": 17, "b": 1} == behind(work, rows)


def test_keys_that_are_equal_are_one_key() -> None:
    for work in (keyed().count(), keyed().map(second).count()):
        rows = rows_of(work_of(work), [(key, 0) for key in (1, True, 1.0, NAN, float("nan"), (0, NAN), (False, -NAN))])

        assert [[3], [2], [2]] == [counts for _, counts in sent(rows)]


def test_two_hours_are_two_keys_where_clocks_are_set_back() -> None:
    first_one = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    hours = [first_one, first_one.replace(fold=1), first_one.astimezone(UTC)]
    rows = rows_of(work_of(keyed().count()), [(hour, 0) for hour in hours])

    assert [(hours[0], [2]), (hours[1], [1])] == sent(rows)
    assert [0, 1] == [key.fold for key, _ in sent(rows)]


@pytest.mark.parametrize("count", COUNTS)
def test_with_too_many_keys_the_results_are_sent_on(count: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combining, "MOST", 2)
    monkeypatch.setattr(combining, "AT_ONCE", 1)
    work = work_of(count(keyed()))
    rows = rows_of(work, [(key, 0) for key in "aaabbbccddda"])

    assert [("a", [3]), ("b", [3]), ("c", [1]), ("c", [1]), ("d", [3]), ("a", [1])] == sent(rows)
    assert {"a": 4, "b": 3, "c": 2, "d": 3} == behind(work, rows)


@pytest.mark.parametrize("count", COUNTS)
def test_where_keys_do_not_come_again_nothing_is_kept(count: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combining, "MOST", 2)
    monkeypatch.setattr(combining, "AT_ONCE", 1)
    (stage,) = before_shuffle(work_of(count(keyed())), PARTS, NO_CLASSES)
    taken: list[str] = []

    def elements() -> Iterator[tuple[str, int]]:
        for key in "abcdef":
            taken.append(key)
            yield key, 0

    rows = stage.transform().apply(elements())

    assert [("abc", "a"), ("abc", "b"), ("abc", "c"), ("abcd", "d"), ("abcde", "e")] == [
        ("".join(taken), pickle.loads(row[3])[0]) for row, _ in zip(rows, range(5), strict=False)
    ]


@pytest.mark.parametrize("work", [keyed().top_k(2).pairs(), keyed().count(), keyed().map(second).count()])
def test_there_is_more_to_come_until_the_last_result(work: Flow[Any]) -> None:
    (stage,) = before_shuffle(work_of(work), PARTS, NO_CLASSES)
    table: Any = stage.transform()
    assert [] == list(table.apply(iter([("a", 1), ("a", 2), ("b", 3)])))

    left = [table.pending for _ in table.finish()]
    assert [True, True] == left
    assert not table.pending


@pytest.mark.parametrize("key", [[1], frozenset({1})])
def test_a_key_that_can_not_be_sorted_is_refused(key: Any) -> None:
    for work in (keyed().count(), keyed().map(second).count()):
        with pytest.raises(TypeError, match="can't be a key") as caught:
            rows_of(work_of(work), [("a", 1), (key, 2)])

        assert notes_of(caught.value)[-1].startswith("in group_by_key(first -> ")


def test_a_key_function_that_raises_stop_iteration_does_not_end_the_stream() -> None:
    def stop(_: Any) -> Any:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        rows_of(work_of(Flow.of(1).group_by_key(stop).count()), [1])


@pytest.mark.parametrize(
    ("work", "where"),
    [
        (lambda flow: flow.map(lambda element: element[1] // 0).count(), "in map(<lambda>), chained at "),
        (lambda flow: flow.map(first).map(lambda key: object()).top_k(2).pairs(), "in top_k(2, None), chained at "),
    ],
)
def test_a_failure_names_the_operator_and_the_key(work: Any, where: str) -> None:
    with pytest.raises((ZeroDivisionError, TypeError)) as caught:
        rows_of(work_of(work(keyed())), [("a", 1), ("a", 2)])

    note = notes_of(caught.value)[0]
    assert note.startswith(where)
    assert note.endswith(("on an element of key 'a'", "on the elements of key 'a'"))


@pytest.mark.parametrize(
    "work",
    [
        keyed().filter(first).count(),
        keyed().fold(lambda total, _: total, 0, any_order=True),
        Flow.of((1, 2)).group_by_key(first, order_by=second).top_k(1).pairs(),
        keyed().pairs(),
    ],
)
def test_other_work_is_done_behind_the_shuffle(work: Flow[Any]) -> None:
    assert parts_of(work_of(work)) is None
    assert not any(isinstance(stage, InParts) for stage in before_shuffle(work_of(work), PARTS, NO_CLASSES))
