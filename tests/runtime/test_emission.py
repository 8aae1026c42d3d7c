"""A region at work, by the turns of its loop: what it gives in one, and what makes it need another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow
from reactive_aio.operators.transforming import Map
from reactive_aio.runtime import emission
from reactive_aio.segments import Pulled, Stage
from tests.runtime.by_turns import region_of


def pulled(flow: Flow[Any]) -> Pulled[Any]:
    operator = flow.source.operator
    assert isinstance(operator, Pulled)
    return operator


def test_nothing_is_given_in_a_request_but_in_the_turn_that_follows() -> None:
    bed = region_of(source=pulled(Flow.range(9)))
    bed.driver.request(2)
    bed.driver.request(1)
    assert (bed.heard, len(bed.loop.ready)) == (["subscribed"], 1)

    bed.loop.turn()
    assert (bed.heard, len(bed.loop.ready)) == (["subscribed", [0, 1, 2]], 0)


def test_a_cancel_from_a_signal_is_seen_to_behind_it() -> None:
    bed = region_of()
    bed.signals.react = lambda signal: bed.driver.cancel() if isinstance(signal, list) else None
    bed.driver.request(9)
    bed.loop.rest()
    bed.driver.on_chunk([1, 2])

    assert bed.heard == ["subscribed", [1, 2]]
    assert bed.driver.closed
    assert (bed.upstream.cancels, bed.released) == (1, ["released"])


def test_demand_that_is_unbounded_stays_so() -> None:
    bed = region_of()
    bed.driver.request(UNBOUNDED)
    bed.loop.rest()
    for _ in range(3):
        bed.driver.on_chunk([1, 2])

    assert bed.driver._demand == UNBOUNDED
    assert bed.upstream.requests == [UNBOUNDED]


def test_demand_for_all_and_more_is_demand_for_all() -> None:
    bed = region_of()
    bed.driver.request(UNBOUNDED)
    bed.driver.request(1)

    assert bed.driver._demand == UNBOUNDED


def test_a_cancel_before_the_beginning_is_seen_to_behind_it() -> None:
    bed = region_of(begun=False)
    bed.driver.cancel()
    bed.loop.rest()
    assert (bed.heard, bed.driver.closed) == ([], False)

    bed.begin()
    assert (bed.heard, bed.driver.closed, bed.released) == (["subscribed"], True, ["released"])
    assert bed.upstream.requests == []


@pytest.mark.parametrize("chunks", [[[1, 2], [3, 4]], [[1, 2, 3, 4]]])
def test_behind_a_cancel_nothing_is_given_and_nothing_asked_for(chunks: list[list[int]]) -> None:
    bed = region_of(prefetch=4)
    bed.signals.react = lambda signal: bed.driver.cancel() if isinstance(signal, list) else None
    for chunk in chunks:
        bed.driver.upstream.add(chunk)
    bed.driver.request(9)
    bed.loop.rest()

    assert bed.heard == ["subscribed", chunks[0]]
    assert (bed.upstream.requests, bed.upstream.cancels) == ([4], 1)


def test_who_cancels_with_the_last_element_does_not_hear_of_the_end() -> None:
    bed = region_of(source=pulled(Flow.range(2)))
    bed.signals.react = lambda signal: bed.driver.cancel() if isinstance(signal, list) else None
    bed.driver.request(2)
    bed.loop.rest()

    assert (bed.heard, bed.released) == (["subscribed", [0, 1]], ["released"])


def test_a_function_that_cancels_is_not_called_again() -> None:
    called: list[int] = []

    def leave(n: int) -> int:
        called.append(n)
        bed.driver.cancel()
        return n

    bed = region_of(Map(leave), source=pulled(Flow.range(9)))
    bed.driver.each = True
    bed.driver.request(9)
    bed.loop.rest()

    assert called == [0]
    assert (bed.driver.closed, bed.released) == (True, ["released"])


# -- what stages hold


@define
class Holding(Stage[Any, Any]):
    """Holds everything until the end, and never says that it has given it all."""

    held: list[Any] = field(factory=list)

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self.held.append(item)
        return
        yield

    def demand(self, n: int) -> int:
        return UNBOUNDED if n else 0

    def finish(self) -> list[Any]:
        return self.held

    @property
    def pending(self) -> bool:
        return True


@pytest.mark.parametrize("each", [True, False])
def test_the_end_comes_with_the_last_of_what_was_held(each: bool) -> None:
    bed = region_of(Holding())
    bed.driver.each = each
    bed.driver.request(1)
    bed.loop.rest()
    bed.driver.on_chunk([1, 2, 3])
    bed.driver.on_complete()
    assert bed.heard == ["subscribed", [1]]

    bed.driver.request(3)
    bed.loop.rest()
    assert [item for signal in bed.heard[1:-1] for item in signal] == [1, 2, 3]
    assert bed.heard[-1] == "complete"


# -- the clock


class Ticks:
    """A clock that goes by one with each look at it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """Have a turn take four looks at the clock."""
    ticks = Ticks()
    monkeypatch.setattr(emission, "BUDGET", 4)
    monkeypatch.setattr(emission, "perf_counter", ticks)
    return ticks


@pytest.mark.usefixtures("ticks")
def test_a_turn_ends_when_its_time_is_just_up_and_another_follows_by_itself() -> None:
    bed = region_of(prefetch=20)
    for n in range(20):
        bed.driver.upstream.add([n])
    bed.driver.request(20)
    bed.loop.turn()
    assert bed.heard == ["subscribed", [0], [1], [2], [3]]

    bed.driver.request(1)  # needs no turn of its own
    assert bed.loop.turn() == 1
    assert bed.heard[5:] == [[4], [5], [6], [7]]


@pytest.mark.usefixtures("ticks")
def test_no_turn_follows_where_nothing_is_left_when_the_time_is_up() -> None:
    bed = region_of(prefetch=20)
    for n in range(4):
        bed.driver.upstream.add([n])
    bed.driver.request(20)
    bed.loop.turn()

    assert bed.heard == ["subscribed", [0], [1], [2], [3]]
    assert not bed.loop.ready


@pytest.mark.usefixtures("ticks")
def test_no_turn_follows_where_no_more_is_wanted_when_the_time_is_up() -> None:
    bed = region_of(prefetch=20)
    for n in range(9):
        bed.driver.upstream.add([n])
    bed.driver.request(4)
    bed.loop.turn()

    assert bed.heard == ["subscribed", [0], [1], [2], [3]]
    assert not bed.loop.ready
