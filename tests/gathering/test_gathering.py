"""The base of the operators that read several flows at a time: inner subscribers, the drain, and the table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio._arbiter import Gathering, Inner
from reactive_aio._plan import FlowLike, Inlet, Pushed
from reactive_aio.extend import flow_of
from reactive_aio.spec import Subscription
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


class Upstream:
    """The subscription of a flow that is driven by the test."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.cancels = 0

    def request(self, n: int) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1


@define(eq=False)
class Keeping:
    """An owner that keeps what comes."""

    ends: list[Inner] = field(factory=list)

    @property
    def inlet(self) -> Any:
        return self

    def dropped(self, error: BaseException) -> None:
        hooks.drop_error(error)

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        inner.keep(items)

    def on_end(self, inner: Inner) -> None:
        self.ends.append(inner)


def subscribed(prefetch: int | None) -> tuple[Inner, Upstream, Keeping]:
    owner, upstream = Keeping(), Upstream()
    inner = Inner(owner, prefetch)
    inner.on_subscribe(upstream)
    return inner, upstream, owner


# -- the subscriber of one flow


@pytest.mark.parametrize(("prefetch", "limit"), [(1, 1), (2, 2), (4, 3), (32, 24), (100, 75)])
def test_it_asks_for_the_prefetch_and_is_hungry_when_three_quarters_are_consumed(prefetch: int, limit: int) -> None:
    inner, upstream, _ = subscribed(prefetch)
    inner.on_chunk([*range(prefetch)])
    inner.take(limit - 1)
    assert ([prefetch], False) == (upstream.requests, inner.hungry)

    inner.take(1)
    assert inner.hungry
    inner.replenish()
    assert ([prefetch, limit], False) == (upstream.requests, inner.hungry)


def test_without_a_prefetch_it_asks_for_what_its_owner_requests_also_before_it_is_subscribed() -> None:
    upstream = Upstream()
    inner = Inner(Keeping(), None)
    inner.request(2)
    inner.request(3)
    inner.on_subscribe(upstream)
    inner.request(4)

    assert [5, 4] == upstream.requests
    assert not inner.hungry


def test_it_gives_the_oldest_elements_first() -> None:
    inner, _, _ = subscribed(8)
    inner.on_chunk([1, 2, 3])
    inner.on_chunk([4, 5])

    assert [[1, 2], [3, 4, 5], []] == [inner.take(2), inner.take(UNBOUNDED), inner.take(1)]


def test_the_end_stands_behind_what_is_kept() -> None:
    inner, _, owner = subscribed(8)
    inner.on_chunk([1])
    inner.on_complete()
    assert (True, False, [inner]) == (inner.ended, inner.spent, owner.ends)

    inner.take(1)
    assert inner.spent


def test_a_second_subscription_is_cancelled() -> None:
    inner, first, _ = subscribed(8)
    second = Upstream()
    inner.on_subscribe(second)

    assert (0, 1, []) == (first.cancels, second.cancels, second.requests)


def test_a_subscription_that_comes_after_the_cancel_is_cancelled() -> None:
    inner, upstream = Inner(Keeping(), 8), Upstream()
    inner.cancel()
    inner.on_subscribe(upstream)

    assert (1, []) == (upstream.cancels, upstream.requests)


def test_cancelled_it_tells_the_hooks_of_all_that_is_kept_and_comes_late() -> None:
    discarded, dropped = list[object](), list[BaseException]()
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        failed, _, _ = subscribed(8)
        failed.on_chunk([1, 2])
        failed.on_error(OSError("kept"))
        failed.cancel()
        running, upstream, owner = subscribed(8)
        running.on_chunk([3])
        running.cancel()
        running.on_chunk([4])
        running.on_error(OSError("late"))
        running.on_complete()

    assert [1, 2, 3, 4] == discarded
    assert ["kept", "late"] == [str(error) for error in dropped]
    assert (1, []) == (upstream.cancels, owner.ends)


def test_what_comes_behind_the_end_goes_to_the_hooks() -> None:
    discarded, dropped = list[object](), list[BaseException]()
    inner, _, owner = subscribed(8)
    inner.on_complete()
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        inner.on_chunk([1])
        inner.on_error(OSError("late"))
        inner.on_complete()

    assert ([1], 1, [inner]) == (discarded, len(dropped), owner.ends)


# -- the table and the drain, under a region of its own


@define(eq=False)
class Emitting(Gathering):
    """Emits what is kept in the order of the flows; calls out from inside each step."""

    inside: Callable[[Emitting], None]
    steps: list[int] = field(factory=list)
    _depth: int = field(init=False, default=0)

    def step(self) -> bool:
        self._depth += 1
        self.steps.append(self._depth)
        try:
            self.inside(self)
            for inner in [*self.inners]:
                if items := inner.take(self.demand):
                    self.emit(items)
                    self.feed(inner)
                    return True
                if inner.spent:
                    self.on_spent(inner)
            return False
        finally:
            self._depth -= 1

    def on_spent(self, inner: Inner) -> None:
        super().on_spent(inner)
        if not self.inners:
            self.complete()


@define(eq=False, slots=False)
class Gathered(Pushed[Any]):
    """The source of it."""

    flows: Iterable[FlowLike]
    inside: Callable[[Emitting], None] = lambda _: None
    ahead: int = 4
    opened: Emitting = field(init=False, repr=False)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        self.opened = Emitting(inlet, self.inside)
        self.opened.start(self.flows, self.ahead)
        return self.opened


async def test_a_call_from_inside_a_step_leaves_a_note_and_the_stack_does_not_grow() -> None:
    source = Gathered([Flow.range(50)], Emitting.go)

    assert [*range(50)] == await flow_of(source).to_list()
    assert {1} == set(source.opened.steps)


@define(eq=False)
class Long(Emitting):
    """Has many steps to take, whatever is wanted."""

    left: int = 3000
    turns: set[int] = field(factory=set)

    def step(self) -> bool:
        self.inside(self)
        self.left -= 1
        return self.left > 0


async def test_the_event_loop_has_its_turn_in_the_middle_of_a_long_drain() -> None:
    turns, at = 0, set[int]()

    def look(long: Emitting) -> None:
        at.add(turns)
        for _ in range(1000):
            pass

    class Working(Gathered):
        def open(self, inlet: Inlet[Any]) -> Subscription:
            self.opened = Long(inlet, self.inside)
            self.opened.go()
            return self.opened

    recorder = Recorder(1)
    source = Working([], look)
    flow_of(source).subscribe(recorder)
    await idle(1)
    while source.opened.left > 0:
        turns += 1
        await asyncio.sleep(0)
    recorder.cancel()

    assert len(at) > 5


@pytest.mark.usefixtures("still")
async def test_the_first_failure_ends_the_whole_and_all_others_are_cancelled() -> None:
    recorder, dropped, discarded = Recorder(), list[BaseException](), list[object]()
    first, second, third = Sessions(), Sessions(), Sessions()
    source = Gathered([Flow.from_publisher(publisher) for publisher in (first, second, third)])
    with hooks.using(on_error_dropped=dropped.append, on_discard=discarded.append):
        flow_of(source).subscribe(recorder)
    await idle()
    first.last.next(1, 2)
    first.last.error(OSError("behind"))
    third.last.next(3)
    second.last.error(OSError("first"))
    await idle()

    assert ["subscribe", "error"] == recorder.kinds
    assert "first" == str(recorder.error)
    assert [1, 2, 3] == discarded
    assert ["behind"] == [str(error) for error in dropped]
    assert 1 == third.last.cancels
    assert {} == source.opened.inners


async def test_what_cannot_be_subscribed_to_fails_the_whole() -> None:
    recorder = Recorder(1)
    flow_of(Gathered([Flow.never(), 5])).subscribe(recorder)  # an object that is not a flow can't be assembled
    await idle()

    assert isinstance(recorder.error, AttributeError)


async def test_a_flow_that_is_removed_is_cancelled_and_the_others_go_on() -> None:
    def without_the_first(emitting: Emitting) -> None:
        for inner in [*emitting.inners]:
            if inner.key == 0:
                emitting.remove(inner)

    source = Gathered([Flow.range(9), Flow.of("a", "b")], without_the_first)

    assert ["a", "b"] == await flow_of(source).to_list()
