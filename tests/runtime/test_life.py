"""The life of a region, by the turns of its loop: how it ends, and with whom."""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import Iterator
from contextvars import Context, ContextVar, copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, SchedulerClosedError, SourceCancelledError, TaskCancelledError, hooks
from reactive_aio._fusion import Stage, Template
from reactive_aio._plan import Pulled
from reactive_aio._runtime.lifetime import Lifetime
from reactive_aio._runtime.places import Held
from reactive_aio._runtime.tree import DEEPEST
from reactive_aio.operators.transforming import Map
from tests.runtime.by_turns import Bed, ByTurns, region_of

pytestmark = pytest.mark.usefixtures("still")

GONE = SchedulerClosedError("the loop has ended")


def pulled(flow: Flow[Any]) -> Pulled[Any]:
    operator = flow.__nodes__.source.operator
    assert isinstance(operator, Pulled)
    return operator


# -- requests


class Number(enum.IntEnum):
    TWO = 2


def test_a_number_of_another_type_is_demand_too() -> None:
    bed = region_of()
    bed.driver.request(Number.TWO)
    bed.loop.rest()

    assert bed.upstream.requests == [2]
    assert type(bed.upstream.requests[0]) is int


def test_a_request_from_another_thread_wakes_the_loop_once() -> None:
    bed = region_of()
    thread = threading.Thread(target=lambda: [bed.driver.request(1) for _ in range(3)])
    thread.start()
    thread.join()
    bed.driver.request(4)
    assert (bed.loop.woken, len(bed.loop.ready)) == (1 + 1, 1)  # the first was for the beginning

    bed.loop.turn()
    assert bed.upstream.requests == [7]


def test_a_region_begins_in_one_turn() -> None:
    bed = region_of(begun=False)
    bed.driver.begin(bed.signals, lambda: bed.upstream, called=False)
    assert ([*bed.heard], bed.loop.turn()) == ([], 1)
    assert (bed.heard, len(bed.loop.ready)) == (["subscribed"], 0)


# -- where the loop ends


def test_a_loop_that_was_closed_is_a_failure_that_says_so() -> None:
    bed = region_of()
    bed.loop.closed = True
    bed.driver.request(1)

    _, error = bed.heard
    assert isinstance(error, SchedulerClosedError)
    assert isinstance(error.__cause__, RuntimeError)
    assert (bed.driver.closed, bed.upstream.cancels, bed.released) == (True, 1, ["released"])


def reading(*, loop: ByTurns | None = None) -> tuple[Bed, Bed]:
    """Return a region and one that it reads, on the same loop or another."""
    outer, inner = region_of(), region_of()
    inner.driver.loop = outer.driver.loop if loop is None else loop
    inner.driver.read_by(outer.driver)
    return outer, inner


def test_what_a_lost_region_reads_on_its_loop_is_left_without_a_word() -> None:
    outer, inner = reading()
    outer.driver.lost(GONE)

    assert outer.heard == ["subscribed", GONE]
    assert (inner.heard, inner.driver.closed, inner.upstream.cancels) == (["subscribed"], True, 1)
    assert not outer.driver.place.inners


def test_a_region_that_has_been_cancelled_says_nothing_of_its_loops_end() -> None:
    dropped: list[BaseException] = []
    for late in (None, TaskCancelledError("the task of a source was cancelled by somebody else")):
        bed = region_of()
        with hooks.using(on_error_dropped=dropped.append):
            bed.driver.context = copy_context()
            bed.driver.cancel()
            if late is not None:
                bed.driver.take_end(late)
            bed.driver.context.run(bed.driver.lost, GONE)

        assert (bed.heard, bed.driver.closed, bed.upstream.cancels) == (["subscribed"], True, int(late is None))
    assert [] == dropped


def test_a_region_that_has_been_cancelled_hides_no_failure_of_its_source() -> None:
    dropped: list[BaseException] = []
    own = SourceCancelledError("a function or source of the flow raised CancelledError")
    bed = region_of()
    with hooks.using(on_error_dropped=dropped.append):
        bed.driver.context = copy_context()
        bed.driver.cancel()
        bed.driver.take_end(own)
        bed.driver.context.run(bed.driver.lost, GONE)

    assert [own] == dropped


def test_all_that_is_posted_behind_the_end_of_the_loop_is_handled_in_the_context_of_the_region() -> None:
    dropped: list[BaseException] = []
    discarded: list[object] = []
    own = SourceCancelledError("a function or source of the flow raised CancelledError")
    behind = OSError("behind")
    bed = region_of()
    with hooks.using(on_error_dropped=dropped.append, on_discard=discarded.append):
        bed.driver.context = copy_context()
    bed.loop.closed = True

    for event in ((bed.driver.upstream.add, [1, 2]), (bed.driver.take_end, own), (bed.driver.take_end, behind)):
        Context().run(bed.driver.post, *event)

    assert ([own, behind], [1, 2]) == (dropped, discarded)


@pytest.mark.parametrize("read", [False, True])
def test_all_that_is_posted_to_a_loop_that_stands_still_is_handled(read: bool) -> None:
    dropped: list[BaseException] = []
    before, behind = OSError("before"), OSError("behind")
    outer, inner = reading()
    bed = inner if read else outer
    with hooks.using(on_error_dropped=dropped.append):
        bed.driver.context = copy_context()
    bed.driver.cancel()
    bed.driver.post(bed.driver.take_end, before)
    outer.loop.running = False
    held = Held()
    held.driver = outer.driver
    held.lost(GONE)
    bed.driver.post(bed.driver.take_end, behind)

    assert [before, behind] == dropped
    assert bed.driver.closed


def test_who_ends_a_loop_has_no_part_in_what_its_regions_tell() -> None:
    told: list[Context] = []
    bed = region_of()
    bed.signals.react = lambda _: told.append(copy_context())
    mark: ContextVar[str] = ContextVar("mark", default="of who ends the loop")
    bed.driver.context.run(mark.set, "of the subscriber")
    held = Held()
    held.driver = bed.driver
    Context().run(held.lost, GONE)

    assert ["of the subscriber"] == [context.get(mark) for context in told]


def test_what_a_lost_region_reads_on_another_loop_is_that_loops() -> None:
    outer, inner = reading(loop=ByTurns())
    outer.driver.lost(GONE)

    assert not inner.driver.closed


def test_a_lost_region_takes_along_what_lies_before_those_it_reads() -> None:
    outer, inner = reading()
    _, deeper = reading()
    before = region_of()
    before.driver.loop = deeper.driver.loop = outer.driver.loop
    inner.driver.place.before = before.driver
    deeper.driver.read_by(before.driver)
    outer.driver.lost(GONE)

    assert (before.driver.closed, deeper.driver.closed) == (True, True)


def test_a_region_that_has_ended_is_read_by_nobody() -> None:
    outer, inner = reading()
    assert outer.driver.place.inners == {inner.driver: None}

    inner.driver.on_complete()
    assert not outer.driver.place.inners

    inner.driver.read_by(outer.driver)
    assert not outer.driver.place.inners


def test_what_was_started_is_let_go_of_with_the_loop_even_behind_the_end() -> None:
    for end in ("lost", "left"):
        for ended in (False, True):
            bed, abandoned = region_of(), list[str]()
            bed.driver.abandoned[lambda abandoned=abandoned: abandoned.append("let go")] = None
            if ended:
                bed.driver.on_complete()
            if end == "lost":
                bed.driver.lost(GONE)
            else:
                bed.driver.leave()

            assert abandoned == ["let go"]
            assert bed.released == ["released"]
            assert bed.heard[1:] == (["complete"] if ended else [GONE] if end == "lost" else [])


# -- the end


def test_no_turn_follows_the_one_in_which_a_region_ends() -> None:
    for end in (lambda bed: bed.driver.cancel(), lambda bed: bed.driver.post(bed.driver.take_end, None)):
        bed = region_of()
        end(bed)
        assert bed.loop.turn() == 1
        assert (bed.driver.closed, len(bed.loop.ready)) == (True, 0)

        bed.driver.request(1)
        assert bed.loop.turn() == 1
        assert not bed.loop.ready


def test_behind_the_end_nothing_is_demanded() -> None:
    bed = region_of()
    bed.driver.request(9)
    bed.loop.rest()
    bed.driver.on_complete()

    assert bed.driver.demand == 0


def test_the_place_is_kept_until_what_the_source_has_started_has_ended() -> None:
    bed = region_of()
    bed.driver.lifetime = Lifetime()
    release = bed.driver.lifetime.hold()
    bed.driver.on_complete()
    assert (bed.heard[-1], bed.released) == ("complete", [])

    release()
    assert bed.released == ["released"]


@define
class Careless(Stage[Any, Any]):
    """Fails whenever it is cleaned up."""

    held: list[Any] = field(factory=list)

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        try:
            for item in items:
                yield item
                yield item
        finally:
            raise OSError("the pass")

    def close(self) -> None:
        self.held.append("closed")
        raise OSError("the stage")


@define
class Counting(Stage[Any, Any]):
    """Counts in a local variable of the pass, and notes the number when it lets go."""

    count: int = 0
    seen: list[int] = field(factory=list)

    template = Template("$count += 1\n$rest", local=("count",))

    def close(self) -> None:
        self.seen.append(self.count)


def test_all_is_cleaned_up_though_the_first_of_it_fails() -> None:
    careless, dropped = Careless(), list[BaseException]()
    bed = region_of(careless)
    bed.driver.request(1)
    bed.loop.rest()
    bed.driver.on_chunk([1, 2])
    with hooks.using(on_error_dropped=dropped.append):
        bed.driver.leave()

    assert careless.held == ["closed"]
    assert (bed.upstream.cancels, bed.released) == (1, ["released"])
    assert [str(error) for error in dropped] == ["the pass", "the stage"]
    assert bed.heard == ["subscribed", [1]]


def test_a_pass_is_closed_before_its_stages_let_go() -> None:
    counting = Counting()
    bed = region_of(counting)
    bed.driver.request(1)
    bed.loop.rest()
    bed.driver.on_chunk([7, 8])
    bed.driver.cancel()
    bed.loop.rest()

    assert counting.seen == [1]


def test_a_cleanup_that_fails_behind_a_failure_is_told_to_the_hook() -> None:
    dropped: list[BaseException] = []
    failure = OSError("first")

    def broken() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            raise KeyError("cleanup")

    def fail(n: int) -> int:
        raise failure

    with hooks.using(on_error_dropped=dropped.append):
        bed = region_of(Map(fail), source=pulled(Flow.from_iterable(broken())))
    bed.driver.request(1)
    bed.loop.rest()

    assert bed.heard[-1] is failure
    assert [type(error) for error in dropped] == [KeyError]
    assert bed.released == ["released"]


def test_a_function_that_fails_when_its_region_has_been_left_is_told_to_the_hook() -> None:
    dropped: list[BaseException] = []

    def leave(n: int) -> int:
        bed.driver.leave()
        raise OSError("behind the end")

    with hooks.using(on_error_dropped=dropped.append):
        bed = region_of(Map(leave))
    bed.driver.request(1)
    bed.loop.rest()
    bed.driver.context.run(bed.driver.on_chunk, [1])

    assert (bed.heard, bed.released) == (["subscribed"], ["released"])
    assert [error for error in dropped if str(error) == "behind the end"]


def test_a_cancellation_that_upstream_signals_is_a_failure_of_the_stream() -> None:
    bed = region_of()
    bed.driver.on_error(asyncio.CancelledError())

    assert isinstance(bed.heard[-1], SourceCancelledError)
    assert isinstance(bed.heard[-1].__cause__, asyncio.CancelledError)


# -- nesting


def test_every_so_many_levels_a_signal_waits_for_a_turn() -> None:
    outermost = region_of()
    bed = outermost
    for level in range(1, 2 * DEEPEST + 1):
        inner = region_of()
        inner.driver.read_by(bed.driver)
        bed = inner
        assert bed.driver.place.depth == level
        assert bed.driver.place.hops == (level in {DEEPEST, 2 * DEEPEST})
    bed.driver.request(9)
    bed.loop.rest()
    bed.driver.on_chunk([1])
    bed.driver.on_chunk([2])
    assert (bed.heard, len(bed.loop.ready)) == (["subscribed"], 1)

    bed.loop.turn()
    assert bed.heard == ["subscribed", [1], [2]]


def test_elements_that_come_while_others_are_given_come_behind_them() -> None:
    bed = region_of()
    bed.driver.request(9)
    bed.loop.rest()
    more = [[2], [3]]

    def react(signal: Any) -> None:
        if more and isinstance(signal, list):
            bed.driver.on_chunk(more.pop(0))
            seen.append([*bed.heard])

    seen: list[Any] = []
    bed.signals.react = react
    bed.driver.on_chunk([1])

    assert bed.heard == ["subscribed", [1], [2], [3]]
    assert seen == [["subscribed", [1]], ["subscribed", [1], [2]]]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exit_or_interrupt_of_a_function_fails_the_region_and_leaves_no_turn(error: type[BaseException]) -> None:
    def interrupted(n: int) -> int:
        raise failure

    failure = error()
    bed = region_of(Map(interrupted))
    bed.driver.request(2)
    bed.loop.rest()
    bed.driver.upstream.add([1])
    bed.driver.request(1)
    bed.loop.rest()

    assert (bed.heard, bed.driver.closed, bed.released) == (["subscribed", failure], True, ["released"])
