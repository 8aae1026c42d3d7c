"""The boundary in a model of the world around it: every order of events up to a bound is tried.

A violation is shown as the schedule that led to it, with the numbers that `replay` takes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from attrs import frozen

from reactive_aio._core import budgets
from reactive_aio._runtime import driver, turns
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.inputs import PushedInput
from reactive_aio._runtime.turns import Turns
from tests.boundary.world import STRANGER, World
from tests.schedules import Choices, Violation, explore, let_pass


@frozen
class Bounds:
    """Which runs are made."""

    prefetch: int
    moves: int
    interrupts: bool = False
    """Whether one thread may move in the middle of another one's turn."""
    begun: bool = True
    """Whether both regions have begun before the first move."""
    fails: bool = False
    """Whether the source ends with a failure."""


NOW: list[World] = []
"""The world that is running."""


@pytest.fixture(autouse=True)
def in_the_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have threads be those of the world, and no turn run out of time."""
    for module in (driver, turns):
        monkeypatch.setattr(module, "get_ident", lambda: NOW[-1].thread)
    monkeypatch.setattr(budgets, "clock", lambda: 1e9)
    let_pass(monkeypatch)
    yield
    NOW.clear()


def run(bounds: Bounds) -> Callable[[Choices, set[object]], None]:
    def once(choices: Choices, known: set[object]) -> None:
        NOW[:] = [World(bounds.prefetch, choices, bounds.moves, known, bounds.interrupts, bounds.fails)]
        NOW[0].run(begun=bounds.begun)

    return once


def replay(bounds: Bounds, numbers: Sequence[int]) -> None:
    """Make the run that a violation has shown."""
    run(bounds)(Choices(numbers), set())


def explore_all(bounds: Bounds) -> set[str]:
    """Make every run within the bounds, and give the lines of all their schedules."""
    return explore(run(bounds), f"replay({bounds!r}, {{numbers}})")


@pytest.mark.costly
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(prefetch=1, moves=6),
        Bounds(prefetch=2, moves=5, fails=True),
        Bounds(prefetch=4, moves=4),
        Bounds(prefetch=2, moves=5, begun=False, fails=True),
    ],
    ids=repr,
)
def test_nothing_is_lost_reordered_or_asked_for_twice_in_any_order_of_turns(bounds: Bounds) -> None:
    lines = explore_all(bounds)

    assert {"the source ends", "the upper loop turns", "another thread cancels"} <= lines
    assert "  downstream, inside, cancels" in lines or not bounds.begun


@pytest.mark.costly
@pytest.mark.parametrize(
    "bounds",
    [Bounds(prefetch=1, moves=4, interrupts=True), Bounds(prefetch=2, moves=4, interrupts=True, fails=True)],
    ids=repr,
)
def test_nothing_is_lost_reordered_or_asked_for_twice_though_threads_interrupt_each_other(bounds: Bounds) -> None:
    lines = explore_all(bounds)

    # It did get everywhere: a turn in the middle of a turn, and a third thread in the middle of both.
    assert {"  the source delivers 1", "  the upper loop turns", "    another thread requests 1"} <= lines


# -- boundaries that are broken, each in one method, and what the model says of them

real_add, real_more, real_close = PushedInput.add, PushedInput.more, PushedInput.close
real_take_end, real_request = RegionDriver.take_end, RegionDriver.request


def asks_for_what_waits(self: Any, demand: int) -> bool:
    self.outstanding -= (waiting := self.buffered)
    more = real_more(self, demand)
    self.outstanding += waiting
    return more


def asks_one_too_late(self: Any, demand: int) -> bool:
    self._limit = (self.prefetch or 0) + 1
    return real_more(self, demand)


def counts_nothing_that_arrives(self: Any, items: list[Any]) -> None:
    real_add(self, items)
    self.outstanding += len(items)


def takes_the_last_first(self: Any, items: list[Any]) -> None:
    real_add(self, items)
    self._chunks.rotate(1)


def ends_ahead_of_the_data(self: Any, error: BaseException | None) -> None:
    (self.upstream._chunks or deque()).clear()
    self.upstream._waiting = 0
    real_take_end(self, error)


def forgets_to_tell(self: Any) -> None:
    (self._chunks or deque()).clear()
    self._items = None
    real_close(self)


def forgets_what_comes_late(self: Any, items: list[Any]) -> None:
    if not self.closed:
        real_add(self, items)


def keeps_the_source_going(self: Any) -> None:
    self.upstream = None
    real_close(self)


def forgets_the_failure_that_waits(self: Any) -> list[BaseException]:
    return []


def forgets_a_failure_that_comes_late(self: Any, error: BaseException | None) -> None:
    if not self.closed:
        real_take_end(self, error)


def wakes_nobody(self: Any, n: int) -> None:
    if NOW[-1].thread == STRANGER:
        self._demand += n
    else:
        real_request(self, n)


def looks_before_it_sleeps(self: Any) -> None:
    while not self._events.empty():
        handle, value = self._events.get_nowait()
        handle(value)
    self._work()
    # An event that was posted since the last look found the region awake.
    self._awake = False


THREADS = Bounds(prefetch=2, moves=3, interrupts=True, fails=True)


@pytest.mark.parametrize(
    ("owner", "method", "mutant", "bounds", "told"),
    [
        (PushedInput, "more", asks_for_what_waits, Bounds(1, 5), "asked for 2 ahead, where prefetch is 1"),
        (PushedInput, "more", asks_one_too_late, Bounds(1, 5), "1 are consumed, and no more is asked for"),
        (PushedInput, "add", counts_nothing_that_arrives, Bounds(2, 5), "are consumed, and no more is asked for"),
        (PushedInput, "add", takes_the_last_first, Bounds(2, 5), "[1] after []"),
        (RegionDriver, "take_end", ends_ahead_of_the_data, Bounds(1, 5), "the end comes before 1 elements"),
        (PushedInput, "close", forgets_to_tell, Bounds(1, 5), "discarded: []"),
        (PushedInput, "add", forgets_what_comes_late, THREADS, "discarded: []"),
        (PushedInput, "close", keeps_the_source_going, Bounds(1, 5), "the source is left uncancelled"),
        (RegionDriver, "_late_failure", forgets_the_failure_that_waits, Bounds(1, 5, fails=True), "dropped: []"),
        (RegionDriver, "take_end", forgets_a_failure_that_comes_late, THREADS, "dropped: []"),
        (RegionDriver, "request", wakes_nobody, Bounds(1, 5), "1 elements wait that are wanted"),
        (Turns, "take_turn", looks_before_it_sleeps, THREADS, "wait that are wanted"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_model_catches_a_boundary_that(
    owner: type, method: str, mutant: Any, bounds: Bounds, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, method, mutant)

    with pytest.raises(Violation, match=re.escape(told)) as found:
        explore_all(bounds)
    with pytest.raises(Violation, match=re.escape(str(found.value))):
        eval(found.value.__notes__[-1].partition("again by: ")[2])
