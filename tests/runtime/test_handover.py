"""The elements that a region on a thread has made arrive, also while a function keeps that thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, hooks, schedulers
from reactive_aio._runtime.handover import DELAY, Handover

PATIENCE = 20.0
"""Seconds after which a source that should not have to wait goes on, so that a test fails and does not hang."""


@define(eq=False)
class Quiet:
    """A source that gives elements in bursts, and blocks behind each until all of it has arrived."""

    bursts: tuple[int, ...]
    arrived: threading.Semaphore = field(init=False, factory=lambda: threading.Semaphore(0))
    late: list[int] = field(init=False, factory=list)
    """The bursts that did not arrive while the source was blocked."""
    made: int = field(init=False, default=0)

    def __iter__(self) -> Iterator[int]:
        for burst, length in enumerate(self.bursts):
            for _ in range(length):
                self.made += 1
                yield self.made - 1
            for _ in range(length):
                if not self.arrived.acquire(timeout=PATIENCE):
                    self.late.append(burst)
                    return

    def take(self, _: object) -> None:
        self.arrived.release()


def doubled(n: int) -> tuple[int]:
    return (n,)


STAGES: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "no stage": lambda flow: flow,
    "map": lambda flow: flow.map(abs),
    "a stage that may give many": lambda flow: flow.flat_map_iterable(doubled),
    "map and scan": lambda flow: flow.map(abs).scan(lambda _, n: n, -1).skip(1),
}


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("prefetch", [1, 4, 16, 256])
async def test_a_burst_arrives_while_the_source_blocks_behind_it(stages: str, prefetch: int) -> None:
    source = Quiet((1, 2, 7, 300, 3, 1))
    flow = STAGES[stages](Flow.from_iterable(source).subscribe_on(schedulers.thread("quiet")))

    await flow.publish_on(schedulers.current(), prefetch=prefetch).for_each(source.take)

    assert ([], 314) == (source.late, source.made)


async def test_a_function_behind_such_a_source_keeps_back_no_element_before_its_own() -> None:
    arrived = threading.Event()
    late: list[int] = []

    def block(n: int) -> int:
        if n == 100 and not arrived.wait(PATIENCE):
            late.append(n)
        return n

    def take(n: int) -> None:
        if n == 99:
            arrived.set()

    source = Flow.from_iterable(n for n in range(200)).subscribe_on(schedulers.thread("blocking"))
    await source.map(block).for_each(take)

    assert [] == late


async def test_no_more_is_made_than_was_asked_for() -> None:
    source = Quiet((3,) * 50)
    ahead: list[int] = []

    def take(n: int) -> None:
        ahead.append(source.made - n)
        source.take(n)

    flow = Flow.from_iterable(source).subscribe_on(schedulers.thread("quiet"))
    await flow.publish_on(schedulers.current(), prefetch=4).for_each(take)

    assert ([], 150) == (source.late, len(ahead))
    assert 4 >= max(ahead)


async def test_a_failure_comes_behind_what_has_been_handed_over() -> None:
    source = Quiet((5,))

    def failing() -> Iterator[int]:
        yield from source
        raise LookupError("broken")

    taken: list[int] = []

    def take(n: int) -> None:
        taken.append(n)
        source.take(n)

    with pytest.raises(LookupError, match="broken"):
        await Flow.from_iterable(failing()).subscribe_on(schedulers.thread("failing")).for_each(take)

    assert ([0, 1, 2, 3, 4], []) == (taken, source.late)


async def test_of_what_a_combinator_on_the_thread_gives_each_element_is_taken_or_discarded() -> None:
    discarded: list[int] = []
    taken: list[int] = []
    source = Quiet((300, 300, 300))

    def take(n: int) -> None:
        taken.append(n)
        source.take(n)

    flow = Flow.defer(lambda: Flow.from_iterable(source)).subscribe_on(schedulers.thread("quiet"))
    with hooks.using(on_discard=discarded.append):
        await flow.take(450).for_each(take)

    assert ([], list(range(450))) == (source.late, taken)
    assert list(range(source.made)) == sorted(taken + discarded)


@pytest.mark.usefixtures("still")  # a turn whose time is up gives a list
async def test_what_a_turn_gives_behind_a_combinator_crosses_as_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    lists: list[list[Any]] = []
    begin = Handover.begin

    def begun(handover: Handover) -> list[Any]:
        lists.append(begin(handover))
        return lists[-1]

    monkeypatch.setattr(Handover, "begin", begun)
    flow = Flow.defer(lambda: Flow.from_iterable(n for n in range(1000))).subscribe_on(schedulers.thread("turns"))

    assert [*range(1000)] == await flow.to_list()
    assert ([*range(1000)], 50) == ([n for each in lists for n in each], max(50, len(lists)))


@pytest.mark.stress
async def test_all_arrives_once_and_in_order_whatever_is_handed_over() -> None:
    pause = threading.Event()

    def source() -> Iterator[int]:
        for n in range(20_000):
            if not n % 97:
                pause.wait(0.002 * (n % 3))
            yield n

    flow = Flow.from_iterable(source()).subscribe_on(schedulers.thread("source")).map(abs)

    assert list(range(20_000)) == await flow.to_list()


# -- the timer


@define(eq=False)
class Timer:
    """The handle by which a timer is cancelled."""

    loop: Loop
    call: Callable[[], None]

    def cancel(self) -> None:
        self.loop.timers.remove(self.call)


@define(eq=False)
class Loop:
    """An event loop that a test turns."""

    ready: list[Callable[[], None]] = field(init=False, factory=list)
    timers: list[Callable[[], None]] = field(init=False, factory=list)

    def call_soon_threadsafe(self, call: Callable[[], None], *, context: object) -> None:
        self.ready.append(call)

    def call_later(self, delay: float, call: Callable[[], None], *, context: object) -> Timer:
        assert delay == DELAY
        self.timers.append(call)
        return Timer(self, call)

    def turn(self) -> None:
        while self.ready:
            self.ready.pop(0)()

    def ring(self) -> None:
        timers, self.timers = self.timers, []
        for call in timers:
            call()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def given() -> list[Any]:
    return []


@pytest.fixture
def handover(loop: Any, given: list[Any]) -> Handover:
    return Handover(loop, copy_context(), given.append)


def add(handover: Handover, made: list[Any], item: Any) -> None:
    """Do what the region does for each element."""
    made.append(item)
    if handover.idle:
        handover.arm()


def test_one_timer_is_set_for_a_list_by_its_first_element(handover: Handover, loop: Loop) -> None:
    made = handover.begin()
    assert ([], []) == (loop.ready, loop.timers)

    add(handover, made, 1)
    add(handover, made, 2)
    loop.turn()

    assert 1 == len(loop.timers)


def test_a_list_is_handed_over_at_the_second_ring(handover: Handover, loop: Loop, given: list[Any]) -> None:
    made = handover.begin()
    add(handover, made, 1)
    loop.turn()
    loop.ring()
    add(handover, made, 2)
    assert [] == given
    loop.ring()

    assert [[1, 2]] == given
    assert [] == handover.rest(made)


def test_a_list_that_is_done_in_time_is_not_taken_apart(handover: Handover, loop: Loop, given: list[Any]) -> None:
    first = handover.begin()
    add(handover, first, 1)
    loop.turn()
    loop.ring()
    assert first is handover.rest(first)
    second = handover.begin()
    add(handover, second, 2)
    loop.ring()

    assert [] == given
    assert second is handover.rest(second)


def test_nobody_is_woken_while_nothing_is_held(handover: Handover, loop: Loop, given: list[Any]) -> None:
    made = handover.begin()
    add(handover, made, 1)
    loop.turn()
    loop.ring()
    loop.ring()

    assert [[1]] == given
    assert ([], []) == (loop.ready, loop.timers)


def test_what_comes_behind_a_handover_sets_the_timer_again(handover: Handover, loop: Loop, given: list[Any]) -> None:
    made = handover.begin()
    add(handover, made, 1)
    loop.turn()
    loop.ring()
    loop.ring()
    add(handover, made, 2)
    loop.turn()
    loop.ring()
    loop.ring()
    add(handover, made, 3)

    assert [[1], [2]] == given
    assert [3] == handover.rest(made)


def test_behind_the_end_nothing_is_handed_over(handover: Handover, loop: Loop, given: list[Any]) -> None:
    made = handover.begin()
    add(handover, made, 1)
    loop.turn()
    loop.ring()
    handover.close()
    loop.ring()

    assert [] == given
    assert [] == loop.timers


def test_no_timer_is_left_when_the_next_region_ends(handover: Handover, loop: Loop) -> None:
    made = handover.begin()
    add(handover, made, 1)
    loop.turn()
    handover.stop()
    assert [] == loop.timers
    handover.arm()
    loop.turn()

    assert [] == loop.timers
