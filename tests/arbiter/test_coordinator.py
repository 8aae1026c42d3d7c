"""The coordinator and the arbiter by themselves, over an inlet that is played by hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import Context
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import hooks
from reactive_aio._arbiter import Coordinator, SubscriptionArbiter
from reactive_aio._core import budgets
from reactive_aio.spec import UNBOUNDED

pytestmark = pytest.mark.usefixtures("still")


@define
class Played:
    """A subscription, and the receiver that it was made for."""

    receiver: Any = None
    at_once: bool = False
    requests: list[int] = field(factory=list)
    cancels: int = 0

    def request(self, n: int) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1


@define
class Inlet:
    """Notes what a coordinator has it do."""

    react: Callable[[Played], None] = lambda source: source.receiver.on_subscribe(source)
    sources: list[Played] = field(factory=list)
    signals: list[Any] = field(factory=list)
    posted: list[Any] = field(factory=list)
    loop: Any = field(factory=SimpleNamespace)
    context: Any = field(factory=Context)

    def given(self, flow: Any, most: int) -> None:
        return None

    def is_given(self, flow: Any) -> bool:
        return False

    def subscribe(self, flow: Any, receiver: Any, *, at_once: bool) -> None:
        self.sources.append(Played(receiver, at_once))
        self.react(self.sources[-1])

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        self.posted.append((handle, value))

    def on_chunk(self, items: list[Any]) -> None:
        self.signals += items

    def on_error(self, error: BaseException) -> None:
        self.signals.append(error)

    def on_complete(self) -> None:
        self.signals.append("complete")


@define(eq=False)
class InARow(Coordinator):
    """Subscribes to one source after another, whatever became of the one before."""

    left: int = 0

    def on_source_complete(self) -> None:
        if not self.left:
            self.complete()
            return
        self.left -= 1
        self.advance(f"source {self.left}")

    def on_source_error(self, error: BaseException) -> None:
        self.on_source_complete()


def ends(source: Played) -> None:
    source.receiver.on_subscribe(source)
    source.receiver.on_complete()


# -- one after another


def test_sources_that_end_at_once_follow_each_other_on_a_stack_that_does_not_grow() -> None:
    depths: list[int] = []

    def ends_and_measures(source: Played) -> None:
        depths.append(len(inspect.stack(0)))
        ends(source)

    inlet = Inlet(ends_and_measures)
    InARow(inlet, 9).advance("first")

    assert len(depths) == 10
    assert len(set(depths)) == 1
    assert inlet.signals == ["complete"]


def test_each_source_has_a_receiver_of_its_own() -> None:
    inlet = Inlet(ends)
    InARow(inlet, 3).advance("first")

    assert len({id(source.receiver) for source in inlet.sources}) == 4


def test_sources_follow_each_other_for_a_millisecond_and_then_in_another_turn(still: list[float]) -> None:
    def ends_later(source: Played) -> None:
        still[0] = len(inlet.sources) * budgets.TURN / 2
        ends(source)

    inlet = Inlet(ends_later)
    calls: list[Callable[[], None]] = []
    inlet.loop.call_soon = lambda call, context: calls.append(call)
    InARow(inlet, 3).advance("first")
    assert (2, 1) == (len(inlet.sources), len(calls))

    calls.pop()()
    assert (4, []) == (len(inlet.sources), inlet.signals[:-1])
    assert budgets.TURN == 1e-3


def test_what_follows_a_failure_that_is_being_handled_waits_for_a_turn() -> None:
    inlet = Inlet()
    row = InARow(inlet, 1)
    row.advance("first")
    try:
        raise OSError("first")
    except OSError as error:
        inlet.sources[0].receiver.on_error(error)

    assert len(inlet.sources) == 1
    ((handle, value),) = inlet.posted
    handle(value)
    assert len(inlet.sources) == 2


def test_a_cancelled_row_takes_no_further_source() -> None:
    inlet = Inlet()
    row = InARow(inlet, 1)
    row.advance("first")
    try:
        raise OSError("first")
    except OSError as error:
        inlet.sources[0].receiver.on_error(error)
    row.cancel()
    ((handle, value),) = inlet.posted
    handle(value)

    assert len(inlet.sources) == 1


# -- what comes too late


def test_elements_after_the_end_or_a_cancellation_are_told_to_the_hook() -> None:
    discarded: list[Any] = []
    inlet = Inlet()
    row = InARow(inlet, 1)
    row.advance("first")
    first = inlet.sources[0].receiver
    with hooks.using(on_discard=discarded.append):
        first.on_complete()
        first.on_chunk([1, 2])
        row.cancel()
        inlet.sources[1].receiver.on_chunk([3])

    assert discarded == [1, 2, 3]
    assert inlet.signals == []


def test_failures_after_the_end_or_a_cancellation_are_told_to_the_hook() -> None:
    dropped: list[Any] = []
    inlet = Inlet()
    row = InARow(inlet, 1)
    row.advance("first")
    first, late, later = inlet.sources[0].receiver, OSError("late"), OSError("later")
    with hooks.using(on_error_dropped=dropped.append):
        first.on_complete()
        first.on_error(late)
        row.cancel()
        inlet.sources[1].receiver.on_error(later)

    assert dropped == [late, later]
    assert inlet.signals == []


def test_an_end_after_the_end_or_a_cancellation_is_nothing() -> None:
    inlet = Inlet()
    row = InARow(inlet, 2)
    row.advance("first")
    first = inlet.sources[0].receiver
    first.on_complete()
    first.on_complete()
    row.cancel()
    inlet.sources[1].receiver.on_complete()

    assert len(inlet.sources) == 2
    assert inlet.signals == []


def test_a_subscription_after_the_end_is_cancelled() -> None:
    inlet, late = Inlet(ends), Played()
    InARow(inlet).advance("first")

    inlet.sources[0].receiver.on_subscribe(late)

    assert late.cancels == 1


# -- a source that is left before its end


def test_a_source_that_is_left_is_cancelled_and_the_next_is_asked_for_what_it_left_unmet() -> None:
    inlet = Inlet()
    row = InARow(inlet)
    row.advance("first")
    row.request(3)
    first = inlet.sources[0]
    first.receiver.on_chunk([1])
    row.leave()
    row.advance("second")

    assert first.cancels == 1
    assert inlet.sources[1].requests == [2]


def test_what_still_comes_of_a_source_that_was_left_goes_to_the_hooks() -> None:
    discarded: list[Any] = []
    dropped: list[Any] = []
    inlet, late, subscription = Inlet(lambda source: None), OSError("late"), Played()
    row = InARow(inlet, 1)
    row.advance("first")
    left = inlet.sources[0].receiver
    row.leave()
    row.advance("second")
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        left.on_subscribe(subscription)
        left.on_chunk([1])
        left.on_error(late)
        left.on_complete()

    assert subscription.cancels == 1
    assert (discarded, dropped) == ([1], [late])
    assert inlet.signals == []
    assert len(inlet.sources) == 2


# -- the arbiter


def test_the_arbiter_of_what_is_cancelled_counts_no_demand() -> None:
    arbiter = SubscriptionArbiter()
    arbiter.request(1)
    arbiter.cancel()
    arbiter.request(2)

    assert arbiter.requested == 1


def test_elements_beyond_the_demand_are_not_owed_by_the_next_source() -> None:
    arbiter, first, second = SubscriptionArbiter(), Played(), Played()
    arbiter.switch_to(first)
    arbiter.request(1)
    arbiter.produced(3)
    arbiter.ended()
    arbiter.switch_to(second)
    arbiter.request(2)

    assert (first.requests, second.requests) == ([1], [2])


def test_unbounded_demand_is_not_used_up() -> None:
    arbiter, first, second = SubscriptionArbiter(), Played(), Played()
    arbiter.switch_to(first)
    arbiter.request(UNBOUNDED)
    arbiter.produced(3)
    arbiter.ended()
    arbiter.switch_to(second)

    assert (first.requests, second.requests) == ([UNBOUNDED], [UNBOUNDED])
