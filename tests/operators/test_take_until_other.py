"""take_until_other: a flow up to the first signal of another."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def test_elements_come_until_the_other_emits() -> None:
    assert [0, 1, 2] == run_virtual(Flow.interval(1).take_until_other(Flow.interval(3.5)).to_list())


def test_elements_come_until_the_other_completes() -> None:
    over = Flow.interval(2.5).take(1).ignore_elements()

    assert [0, 1] == run_virtual(Flow.interval(1).take_until_other(over).to_list())


async def test_the_end_of_the_flow_itself_comes_first_where_the_other_says_nothing() -> None:
    assert [0, 1, 2] == await Flow.range(3).take_until_other(Flow.never()).to_list()


async def test_the_end_needs_no_demand_and_both_flows_are_cancelled() -> None:
    flow, other, subscriber = Sessions(), Sessions(), Recorder()
    Flow.from_publisher(flow).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    other.last.next("stop")
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds
    assert (1, 1) == (flow.last.cancels, other.last.cancels)


async def test_the_other_is_cancelled_when_the_flow_ends() -> None:
    other = Sessions()

    assert [1] == await Flow.of(1).take_until_other(Flow.from_publisher(other)).to_list()
    assert 1 == other.last.cancels


async def test_demand_passes_to_the_flow_and_the_other_is_asked_for_one() -> None:
    flow, other, subscriber = Sessions(), Sessions(), Recorder(2)
    Flow.from_publisher(flow).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    subscriber.request(3)
    subscriber.request(UNBOUNDED)
    await idle()

    assert 2 == flow.requests[0][0]
    assert UNBOUNDED == flow.requests[0][-1]
    assert [[1]] == other.requests


async def test_a_flow_whose_other_is_over_already_is_not_subscribed_to() -> None:
    flow = Sessions()

    assert [] == await Flow.from_publisher(flow).take_until_other(Flow.empty()).to_list()
    assert [] == flow.all


async def test_the_other_fails_the_flow_behind_the_elements_before() -> None:
    other, subscriber = Sessions(), Recorder(9)
    Flow.of(1).concat(Flow.never()).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    other.last.error(OSError("down"))
    await idle()

    assert [1] == subscriber.items
    assert "down" == str(subscriber.error)


async def test_what_comes_too_late_is_told_to_the_hooks_as_is_the_element_that_ends_it() -> None:
    flow, other, subscriber = Sessions(), Sessions(), Recorder(9)
    discarded: list[Any] = []
    dropped: list[Any] = []
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        Flow.from_publisher(flow).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    other.last.next("stop")
    flow.last.next("late")
    flow.last.error(OSError("later"))
    await idle()

    assert [] == subscriber.items
    assert ["stop", "late"] == discarded
    assert ["later"] == [str(error) for error in dropped]


def test_what_is_no_flow_is_refused_when_the_flow_is_built() -> None:
    with pytest.raises(TypeError, match=r"take_until_other\(\) takes flows, not int"):
        Flow.of(1).take_until_other(2)
