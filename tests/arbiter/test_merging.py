"""`Merging` without a region. A test sees which elements it passes on together, and which at once."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, hooks
from reactive_aio._arbiter import Inner, Merging
from reactive_aio._arbiter.merging import FEW, SEVERAL

pytestmark = pytest.mark.usefixtures("still")


@define
class Inlet:
    """Notes each list that it gets. The turn of the event loop ends when the test says so."""

    signals: list[Any] = field(factory=list)
    due: list[Callable[[], object]] = field(factory=list)
    context: Any = field(factory=Context)
    react: Callable[[], None] = lambda: None

    @property
    def loop(self) -> Any:
        return SimpleNamespace(call_soon=self._call_soon)

    def _call_soon(self, call: Callable[..., object], *args: object, context: Context) -> None:
        self.due.append(lambda: call(*args))

    def end_of_turn(self) -> None:
        due, self.due = self.due, []
        for call in due:
            call()

    def on_chunk(self, items: list[Any]) -> None:
        self.signals.append(list(items))
        self.react()

    def on_error(self, error: BaseException) -> None:
        self.signals.append(error)

    def on_complete(self) -> None:
        self.signals.append("complete")


def merging(flows: int, demand: int = UNBOUNDED) -> tuple[Merging, list[Inner], Any]:
    """Return a merging of so many flows, with their subscribers and the inlet."""
    inlet: Any = Inlet()
    merged = Merging(inlet)
    merged.want(demand)
    return merged, [merged.enter(64, place) for place in range(flows)], inlet


def test_elements_of_several_flows_in_one_turn_are_one_list() -> None:
    _, inners, inlet = merging(SEVERAL)
    for turn in range(2):
        for inner in inners:
            inner.on_chunk([(turn, inner.key)])
        assert [] == inlet.signals[turn:]
        inlet.end_of_turn()

    assert [[(turn, place) for place in range(SEVERAL)] for turn in range(2)] == inlet.signals


@pytest.mark.parametrize(("flows", "items"), [(SEVERAL - 1, 1), (SEVERAL, FEW + 1)], ids=["few flows", "long lists"])
def test_others_are_passed_on_at_once(flows: int, items: int) -> None:
    _, inners, inlet = merging(flows)
    inners[0].on_chunk([*range(items)])

    assert [[*range(items)]] == inlet.signals
    assert [] == inlet.due


def test_a_flow_may_append_to_the_list_of_a_turn() -> None:
    merged, inners, inlet = merging(SEVERAL)
    for turn in range(2):
        for inner in inners:
            appending = inner.appending()
            assert appending is not None
            appended, _ = appending
            appended.elements.append((turn, inner.key))
            if not appended.due:
                appended.arrived()
        assert [] == inlet.signals[turn:]
        assert 1 == len(inlet.due)
        inlet.end_of_turn()

    assert [[(turn, place) for place in range(SEVERAL)] for turn in range(2)] == inlet.signals
    assert [] == merged.elements


def test_no_flow_appends_where_a_list_would_be_passed_on_at_once_or_kept() -> None:
    _, (first, *_), _ = merging(SEVERAL - 1)
    assert first.appending() is None

    _, (first, *_), _ = merging(SEVERAL, demand=100)
    assert first.appending() is None

    merged, (first, *_), _ = merging(SEVERAL, demand=1)
    first.on_chunk([1, 2])
    merged.want(UNBOUNDED)
    assert first.appending() is None, "its elements wait"
    merged.go()
    assert first.appending() is not None


def test_elements_that_have_been_appended_are_requested_again() -> None:
    _, (first, *_), inlet = merging(SEVERAL)
    asked: list[int] = []
    first.on_subscribe(SimpleNamespace(request=asked.append, cancel=lambda: None))
    appending = first.appending()
    assert appending is not None
    first.count(appending[1])
    inlet.end_of_turn()

    assert [64, 48] == asked
    assert 48 == first.received


def test_elements_under_bounded_demand_are_passed_on_at_once() -> None:
    merged, inners, inlet = merging(SEVERAL, demand=3)
    inners[0].on_chunk([1])
    inners[1].on_chunk([2])

    assert [[1], [2]] == inlet.signals
    assert 1 == merged.demand


def test_a_long_list_follows_what_came_before_it() -> None:
    _, inners, inlet = merging(SEVERAL)
    inners[0].on_chunk([0])
    inners[0].on_chunk([*range(1, 20)])
    inlet.end_of_turn()

    assert [[*range(20)]] == inlet.signals


def test_a_failure_follows_the_elements_of_its_turn() -> None:
    _, inners, inlet = merging(SEVERAL)
    failure = OSError("down")
    inners[0].on_chunk([0])
    inners[1].on_chunk([1])
    inners[1].on_error(failure)

    assert [[0, 1], failure] == inlet.signals
    inlet.end_of_turn()
    assert 2 == len(inlet.signals)


def test_the_end_follows_the_elements_of_its_turn() -> None:
    _, inners, inlet = merging(SEVERAL)
    for inner in inners:
        inner.on_chunk([inner.key])
        inner.on_complete()

    assert [[*range(SEVERAL)], "complete"] == inlet.signals


def test_elements_of_a_turn_in_which_the_region_leaves_go_to_the_hook() -> None:
    merged, inners, inlet = merging(SEVERAL)
    discarded = list[object]()
    inners[0].on_chunk([0])
    with hooks.using(on_discard=discarded.append):
        merged.cancel()
    inlet.end_of_turn()

    assert [0] == discarded
    assert [] == inlet.signals


def test_a_region_that_leaves_amid_the_elements_of_a_turn_gets_no_end() -> None:
    merged, inners, inlet = merging(SEVERAL)
    inlet.react = merged.cancel
    dropped = list[BaseException]()
    inners[0].on_chunk([0])
    with hooks.using(on_error_dropped=dropped.append):
        inners[0].on_error(OSError("down"))

    assert [[0]] == inlet.signals
    assert ["down"] == [str(error) for error in dropped]


@pytest.mark.parametrize("leaves", [False, True])
def test_elements_that_are_kept_follow_those_of_the_turn(*, leaves: bool) -> None:
    merged, inners, inlet = merging(SEVERAL)
    if leaves:
        inlet.react = merged.cancel
    inners[0].on_chunk([0])
    merged.busy = True
    inners[0].on_chunk([1])
    merged.busy = False
    merged.go()

    assert ([[0]] if leaves else [[0], [1]]) == inlet.signals


def test_no_more_is_asked_for_before_the_elements_are_passed_on() -> None:
    _, inners, inlet = merging(SEVERAL)
    requests = list[object]()
    source: Any = SimpleNamespace(request=lambda n: requests.append((n, len(inlet.signals))), cancel=lambda: None)
    inners[0].on_subscribe(source)
    for n in range(48):
        inners[0].on_chunk([n])
    assert [(64, 0)] == requests
    inlet.end_of_turn()

    assert [(64, 0), (48, 1)] == requests
