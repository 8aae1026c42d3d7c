"""Elements of a class of the main module are shuffled by name, as those of any other class are."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import frozen

from reactive_aio import Flow

pytest.importorskip("pyspark")

from reactive_aio.spark._frame import shuffling
from reactive_aio.spark._frame.shuffling import shuffled as shuffle
from reactive_aio.spark._source.source import FromSpark
from reactive_aio.spark._task import main_classes
from reactive_aio.spark._task.main_classes import MainClasses, bring
from reactive_aio.spark._task.pickling import dumps_by_value
from reactive_aio.spark._task.shuffled import Pickling

N = 60
SMALL = 600
"""Bytes of twenty elements with the name of their class; by value a class has over a thousand."""


@frozen
class Visit:
    user: int
    at: int


Visit.__module__ = "__main__"


BROUGHT = MainClasses((Visit,))


def pickled(value: object, classes: MainClasses) -> bytes:
    """Pickle an element that may be of these classes."""
    return Pickling(classes)(value)


def another_visit() -> type[Any]:
    """Define a class of the same name, as a cell of a notebook does that is run again."""

    @frozen
    class Visit:
        user: int

    Visit.__module__, Visit.__qualname__ = "__main__", "Visit"
    return Visit


def by_user(visit: Visit) -> int:
    return visit.user


def by_time(visit: Visit) -> int:
    return visit.at


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of the main module of a worker to which nothing has been brought."""
    monkeypatch.setattr(main_classes, "_BROUGHT", {})
    names = vars(sys.modules["__main__"])
    before = {**names}
    yield names
    names.clear()
    names.update(before)


def test_an_element_names_its_class_where_that_has_been_brought(main: dict[str, Any]) -> None:
    assert len(pickled(Visit(1, 2), BROUGHT)) > SMALL
    bring((Visit,))

    assert len(pickled(Visit(1, 2), BROUGHT)) < SMALL
    assert Visit(1, 2) == pickle.loads(pickled(Visit(1, 2), BROUGHT))
    assert Visit is main["Visit"]


def test_a_class_that_an_earlier_task_has_brought_is_not_named(main: dict[str, Any]) -> None:
    bring((Visit,))

    assert len(pickled(Visit(1, 2), MainClasses())) > SMALL


def test_the_class_that_was_brought_last_is_the_one_that_is_named(main: dict[str, Any]) -> None:
    later = another_visit()
    bring((Visit,))
    brought = bring((later,))

    assert len(pickled(later(1), brought)) < SMALL
    assert later(1) == pickle.loads(pickled(later(1), brought))
    assert len(pickled(Visit(1, 2), BROUGHT)) > SMALL
    assert Visit(1, 2) == pickle.loads(pickled(Visit(1, 2), BROUGHT))


def test_nothing_that_a_worker_has_itself_is_replaced(main: dict[str, Any]) -> None:
    main["Visit"] = own = object()
    bring((Visit,))

    assert own is main["Visit"]
    assert Visit(1, 2) == pickle.loads(pickled(Visit(1, 2), BROUGHT))


def test_what_is_unpickled_brings_its_classes(main: dict[str, Any]) -> None:
    packed = dumps_by_value(BROUGHT)
    assert "Visit" not in main

    assert BROUGHT == pickle.loads(packed)
    assert Visit is main["Visit"]


@pytest.fixture
def shuffled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The frames that flows shuffle."""
    found: list[Any] = []

    def kept(*args: Any) -> Any:
        frame, classes = shuffle(*args)
        found.append(frame)
        return frame, classes

    monkeypatch.setattr(shuffling, "shuffled", kept)
    return found


def most_bytes(frames: list[Any]) -> list[int]:
    """Return the most bytes that an element of a frame has."""
    return [frame.selectExpr("max(length(item))").collect()[0][0] for frame in frames]


@pytest.fixture
def visits(spark: Any) -> Flow[Visit]:
    frame = spark.range(0, N, 1, 2).selectExpr("id % 3 AS user", "id AS at")
    return Flow.from_spark(frame, as_=Visit)


@pytest.mark.spark
async def test_a_class_that_rows_become_is_shuffled_by_name(visits: Flow[Visit], shuffled: list[Any]) -> None:
    flow = visits.group_by_key(by_user, order_by=by_time).take(1).pairs()

    assert {(user, Visit(user, user)) for user in range(3)} == set(await flow.to_list())
    assert 1 == len(shuffled)
    assert max(most_bytes(shuffled)) < SMALL


@pytest.mark.spark
async def test_the_tasks_that_read_what_was_shuffled_bring_the_class(
    visits: Flow[Visit], main: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []

    def kept(source: FromSpark, task: Any) -> Any:
        found.append(pickle.loads(task.stages)[0][0].operator)
        return computation(source, task)

    computation = FromSpark.computation
    monkeypatch.setattr(FromSpark, "computation", kept)

    assert N == len(await visits.group_by_key(by_time).pairs().to_list())
    (behind,) = found
    assert behind.classes == BROUGHT


@pytest.mark.spark
async def test_a_class_that_only_a_function_makes_is_shuffled_by_name(spark: Any, shuffled: list[Any]) -> None:
    flow = Flow.from_spark(spark.range(0, N, 1, 2), as_=tuple).map(lambda row: Visit(row[0] % 3, row[0])).repartition(4)

    assert {Visit(n % 3, n) for n in range(N)} == set(await flow.to_list())
    assert 1 == len(shuffled)
    assert max(most_bytes(shuffled)) < SMALL


@pytest.mark.spark
async def test_a_class_is_shuffled_by_name_again_behind_another_shuffle(
    visits: Flow[Visit], shuffled: list[Any]
) -> None:
    flow = visits.repartition(4).group_by_key(by_time).pairs()

    assert {(n, Visit(n % 3, n)) for n in range(N)} == set(await flow.to_list())
    assert 2 == len(shuffled)
    assert max(most_bytes(shuffled)) < SMALL


@pytest.mark.spark
async def test_both_sides_of_a_join_are_shuffled_by_name(visits: Flow[Visit], shuffled: list[Any]) -> None:
    flow = visits.group_by_key(by_user).join(visits.group_by_key(by_time))

    found = await flow.to_list()
    assert Counter({0: N // 3, 1: N // 3, 2: N // 3}) == Counter(key for key, _ in found)
    assert all(left.user == right.at for _, (left, right) in found)
    assert 1 == len(shuffled)
    assert max(most_bytes(shuffled)) < SMALL


@pytest.mark.spark
async def test_a_class_that_no_function_knows_is_shuffled_whole(sc: Any, shuffled: list[Any]) -> None:
    flow = Flow.from_spark(sc.parallelize([Visit(n % 3, n) for n in range(N)], 2)).repartition(4)

    assert {Visit(n % 3, n) for n in range(N)} == set(await flow.to_list())
    assert most_bytes(shuffled)[0] > SMALL


@pytest.mark.parametrize(
    "nested", [lambda value: value, lambda value: ("key", value), lambda value: (1, ("key", value))]
)
def test_a_value_of_a_class_derived_of_a_plain_one_travels_with_its_class(nested: Any) -> None:
    class Seconds(int):
        """Has no name that anybody else could import."""

    found = pickle.loads(pickled(nested(Seconds(3)), MainClasses()))

    assert nested(3) == found
    assert "Seconds" in repr(type(flat(found)[-1]))


def flat(value: Any) -> list[Any]:
    return [each for part in value for each in flat(part)] if isinstance(value, tuple) else [value]
