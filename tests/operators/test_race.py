"""race: the flow that signals first, under the whole demand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def after(seconds: float, *items: Any) -> Flow[Any]:
    """Return items when so much time has passed."""
    return Flow.interval(seconds).take(1).flat_map_iterable(lambda _: items)


def test_the_elements_are_those_of_the_flow_that_emits_first() -> None:
    flow = after(3, "late").race(after(1, "a", "b"), after(2, "later"))

    assert ["a", "b"] == run_virtual(flow.to_list())


def test_a_flow_that_ends_first_wins_with_nothing() -> None:
    assert [] == run_virtual(after(1, "late").race(Flow.empty()).to_list())


def test_a_flow_that_fails_first_fails_the_whole() -> None:
    with pytest.raises(OSError, match="down"):
        run_virtual(after(1, "late").race(Flow.error(OSError("down"))).to_list())


async def test_race_with_nobody_is_the_flow_itself() -> None:
    assert [1, 2] == await Flow.of(1, 2).race().to_list()


async def test_of_flows_that_are_ready_the_first_in_order_wins() -> None:
    assert [1, 2] == await Flow.of(1, 2).race(Flow.of(3), Flow.of(4)).to_list()


@pytest.mark.usefixtures("hurried")
async def test_the_first_in_order_wins_however_short_the_turns_are() -> None:
    assert [1, 2] == await Flow.of(1, 2).race(Flow.of(3), Flow.of(4)).to_list()


async def test_every_flow_is_asked_until_one_has_signalled_and_then_that_one_alone() -> None:
    publishers, subscriber = [Sessions() for _ in range(3)], Recorder(2)
    first, *others = map(Flow.from_publisher, publishers)
    first.race(*others).subscribe(subscriber)
    await idle()
    subscriber.request(1)
    await idle()
    publishers[1].last.next("a")
    await idle()
    subscriber.request(5)
    await idle()

    assert [[[2, 1]], [[2, 1, 5]], [[2, 1]]] == [publisher.requests for publisher in publishers]
    assert [1, 0, 1] == [publisher.last.cancels for publisher in publishers]


async def test_the_losers_are_cancelled_before_the_first_element_is_passed_on() -> None:
    loser, winner = Sessions(), Sessions()
    cancelled: list[int] = []
    flow = Flow.from_publisher(loser).race(Flow.from_publisher(winner))
    task = asyncio.create_task(flow.for_each(lambda _: cancelled.append(loser.last.cancels)))
    await idle()
    winner.last.next("a")
    await idle()
    winner.last.next("b")
    winner.last.complete()
    await task

    assert [1] == cancelled[1:]
    assert 1 == loser.last.cancels


async def test_what_a_loser_had_made_goes_to_the_discard_hook_and_its_failure_to_the_other() -> None:
    winner, loser, subscriber = Sessions(), Sessions(), Recorder(9)
    discarded: list[Any] = []
    dropped: list[Any] = []
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        Flow.from_publisher(winner).race(Flow.from_publisher(loser)).subscribe(subscriber)
    await idle()
    winner.last.next("won")
    loser.last.next("lost")
    loser.last.error(OSError("too late"))
    winner.last.complete()
    await idle()

    assert ["subscribe", "next", "complete"] == subscriber.kinds
    assert ["won"] == subscriber.items
    assert ["lost"] == discarded
    assert ["too late"] == [str(error) for error in dropped]


async def test_flows_behind_one_that_ends_at_once_are_not_subscribed_to() -> None:
    late = Sessions()

    assert [] == await Flow.empty().race(Flow.from_publisher(late)).to_list()
    assert [] == late.all


async def test_cancel_cancels_all() -> None:
    publishers, subscriber = [Sessions() for _ in range(3)], Recorder(1)
    first, *others = map(Flow.from_publisher, publishers)
    first.race(*others).subscribe(subscriber)
    await idle()
    subscriber.cancel()
    await idle()

    assert [1, 1, 1] == [publisher.last.cancels for publisher in publishers]


async def test_a_flow_on_another_thread_may_win() -> None:
    with_thread = Flow.of(1, 2).publish_on(schedulers.thread("racer")).map(str)

    assert ["1", "2"] == await Flow.never().race(with_thread).to_list()


async def test_unbounded_demand_stays_unbounded() -> None:
    publisher = Sessions()
    Flow.from_publisher(publisher).race(Flow.never()).subscribe(Recorder(UNBOUNDED))
    await idle()

    assert [[UNBOUNDED]] == publisher.requests


def test_an_argument_that_is_no_flow_is_refused_when_the_flow_is_built() -> None:
    with pytest.raises(TypeError, match=r"race\(\) takes flows, not list"):
        Flow.of(1).race([2])
