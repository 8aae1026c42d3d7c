"""combine_latest and with_latest_from: elements beside the latest of other flows."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


class Pair:
    """Two flows driven by hand, combined, with what came of it."""

    def __init__(self, demand: int = UNBOUNDED, prefetch: int = 4) -> None:
        self.left, self.right = Sessions(), Sessions()
        self.subscriber = Recorder(demand)
        self.discarded: list[Any] = []
        flow = Flow.from_publisher(self.left).combine_latest(Flow.from_publisher(self.right), prefetch=prefetch)
        with hooks.using(on_discard=self.discarded.append):
            flow.subscribe(self.subscriber)


def test_each_element_makes_a_tuple_with_the_latest_of_the_others() -> None:
    fast = Flow.interval(1).take(5)
    slow = Flow.interval(2.4).map("ab".__getitem__).take(2)

    assert [(1, "a"), (2, "a"), (3, "a"), (3, "b"), (4, "b")] == run_virtual(fast.combine_latest(slow).to_list())


async def test_elements_make_tuples_in_the_order_in_which_they_arrive() -> None:
    pair = Pair(demand=0)
    await idle()
    for flow, items in [(pair.left, [1]), (pair.right, "ab"), (pair.left, [2]), (pair.right, "c"), (pair.left, [3])]:
        flow.last.next(*items)
        await idle()
    pair.subscriber.request(9)
    await idle()

    assert [(1, "a"), (1, "b"), (2, "b"), (2, "c"), (3, "c")] == pair.subscriber.items


async def test_a_slow_subscriber_slows_the_flows_and_loses_no_tuple() -> None:
    pair = Pair(demand=1)
    await idle()
    pair.left.last.next(1)
    pair.right.last.next("a", "b", "c", "d")
    await idle()
    assert [(1, "a")] == pair.subscriber.items
    assert [[4]] == pair.right.requests

    pair.subscriber.request(2)
    await idle()
    assert [(1, "a"), (1, "b"), (1, "c")] == pair.subscriber.items
    assert [[4, 3]] == pair.right.requests


async def test_what_is_replaced_before_it_was_in_a_tuple_goes_to_the_discard_hook() -> None:
    pair = Pair()
    await idle()
    pair.left.last.next(1, 2, 3)
    await idle()
    assert [1, 2] == pair.discarded

    pair.right.last.next("a", "b")
    await idle()
    assert [(3, "a"), (3, "b")] == pair.subscriber.items
    assert [1, 2] == pair.discarded


async def test_elements_that_come_in_lists_are_taken_one_after_another() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        tuples = await Flow.of(1, 2, 3).combine_latest(Flow.of("a", "b")).to_list()

    assert [(3, "a"), (3, "b")] == tuples
    assert [1, 2] == discarded


async def test_of_a_list_no_more_is_taken_than_is_wanted_and_the_rest_comes_before_what_came_later() -> None:
    both = Flow.of("a", "b").combine_latest(Flow.of(1, 2).concat(Flow.of(3)))
    subscriber = Recorder()
    both.subscribe(subscriber)
    await idle()
    for _ in range(4):
        subscriber.request(1)
        await idle()

    assert [("b", 1), ("b", 2), ("b", 3)] == subscriber.items


async def test_what_is_kept_goes_to_the_discard_hook_on_cancel() -> None:
    pair = Pair(demand=1)
    await idle()
    pair.left.last.next(1, 2)
    await idle()
    pair.subscriber.cancel()
    await idle()

    assert [1, 2] == pair.discarded
    assert [1, 1] == [pair.left.last.cancels, pair.right.last.cancels]


async def test_it_completes_when_all_flows_have() -> None:
    pair = Pair()
    await idle()
    pair.left.last.next(1)
    pair.left.last.complete()
    await idle()
    pair.right.last.next("a")
    await idle()
    assert ["subscribe", "next"] == pair.subscriber.kinds

    pair.right.last.complete()
    await idle()
    assert ["subscribe", "next", "complete"] == pair.subscriber.kinds


async def test_it_completes_with_the_last_tuple_without_further_demand() -> None:
    subscriber = Recorder(1)
    Flow.of(1).combine_latest(Flow.of("a")).subscribe(subscriber)
    await idle()

    assert ["subscribe", "next", "complete"] == subscriber.kinds


async def test_a_flow_that_ends_without_an_element_completes_it_at_once() -> None:
    pair = Pair(demand=0)
    await idle()
    pair.left.last.next(1)
    pair.right.last.complete()
    await idle()

    assert ["subscribe", "complete"] == pair.subscriber.kinds
    assert 1 == pair.left.last.cancels
    assert [1] == pair.discarded


async def test_a_failure_stands_behind_the_elements_of_its_flow_and_cancels_the_others() -> None:
    pair = Pair()
    await idle()
    pair.left.last.next(1)
    pair.right.last.next("a")
    pair.right.last.error(OSError("down"))
    await idle()

    assert [(1, "a")] == pair.subscriber.items
    assert "down" == str(pair.subscriber.error)
    assert 1 == pair.left.last.cancels


async def test_a_flow_that_is_always_ready_leaves_the_others_their_turns() -> None:
    tuples = await Flow.range(100_000).combine_latest(Flow.range(100_000), prefetch=8).take(200).to_list()

    left, right = zip(*tuples, strict=True)
    assert 50 < max(left) < 150
    assert 50 < max(right) < 150


async def test_elements_that_can_not_be_compared_are_combined() -> None:
    class Stubborn:
        def __eq__(self, other: object) -> bool:
            raise TypeError("not to be compared")

        def __hash__(self) -> int:
            return 0

    one = Stubborn()

    [(first, second)] = await Flow.of(one).combine_latest(Flow.of(one)).to_list()
    assert first is second is one


def test_bad_arguments_are_refused_when_the_flow_is_built() -> None:
    with pytest.raises(TypeError, match=r"combine_latest\(\) takes flows, not int"):
        Flow.of(1).combine_latest(2)
    with pytest.raises(ValueError, match=r"combine_latest\(prefetch=0\): prefetch must be at least 1"):
        Flow.of(1).combine_latest(Flow.of(2), prefetch=0)
    with pytest.raises(TypeError, match=r"with_latest_from\(\) takes flows, not str"):
        Flow.of(1).with_latest_from("other")


# -- with_latest_from


class Following:
    """A flow with the latest of another, both driven by hand."""

    def __init__(self, demand: int = UNBOUNDED) -> None:
        self.flow, self.other = Sessions(), Sessions()
        self.subscriber = Recorder(demand)
        self.discarded: list[Any] = []
        flow = Flow.from_publisher(self.flow).with_latest_from(Flow.from_publisher(self.other))
        with hooks.using(on_discard=self.discarded.append):
            flow.subscribe(self.subscriber)


def test_each_element_comes_with_the_latest_of_the_other() -> None:
    both = Flow.interval(1).with_latest_from(Flow.interval(2.4).map("abc".__getitem__))

    assert [(0, "a"), (1, "a"), (2, "b"), (3, "b")] == run_virtual(both.take(4).to_list())


async def test_nothing_is_asked_of_the_flow_before_the_other_has_emitted() -> None:
    both = Following(demand=3)
    await idle()
    assert [[]] == both.flow.requests

    both.other.last.next("a")
    await idle()
    both.subscriber.request(2)
    await idle()
    assert [[3, 2]] == both.flow.requests


async def test_no_element_is_left_out_for_want_of_another() -> None:
    late = Flow.from_async_iterable(late_setting())

    assert [(n, "setting") for n in range(5)] == await Flow.range(5).with_latest_from(late).to_list()


async def late_setting() -> Any:
    await idle()
    yield "setting"


async def test_the_other_is_asked_for_all_it_has_and_the_flow_for_what_is_wanted() -> None:
    both = Following(demand=2)
    await idle()
    both.other.last.next("a")
    await idle()

    assert [[UNBOUNDED]] == both.other.requests
    assert [[2]] == both.flow.requests


async def test_the_end_of_the_flow_cancels_the_other() -> None:
    both = Following()
    await idle()
    both.other.last.next("a")
    await idle()
    both.flow.last.next(1)
    both.flow.last.complete()
    await idle()

    assert ["subscribe", "next", "complete"] == both.subscriber.kinds
    assert 1 == both.other.last.cancels
    assert [] == both.discarded


async def test_the_latest_stays_when_the_other_has_ended() -> None:
    both = Following()
    await idle()
    both.other.last.next("a")
    both.other.last.complete()
    await idle()
    both.flow.last.next(1, 2)
    await idle()

    assert [(1, "a"), (2, "a")] == both.subscriber.items


async def test_it_completes_when_the_other_ends_without_an_element() -> None:
    both = Following(demand=0)
    await idle()
    both.other.last.complete()
    await idle()

    assert ["subscribe", "complete"] == both.subscriber.kinds
    assert 1 == both.flow.last.cancels


@pytest.mark.parametrize("failing", ["flow", "other"])
async def test_the_failure_of_either_ends_the_whole(failing: str) -> None:
    both = Following()
    await idle()
    both.other.last.next("a")
    await idle()
    both.flow.last.next(1)
    getattr(both, failing).last.error(OSError("down"))
    await idle()

    assert [(1, "a")] == both.subscriber.items
    assert "down" == str(both.subscriber.error)
    assert 1 == both.flow.last.cancels + both.other.last.cancels


async def test_what_was_in_no_pair_goes_to_the_discard_hook() -> None:
    both = Following()
    await idle()
    both.other.last.next("a", "b")
    await idle()
    both.flow.last.next(1)
    await idle()
    both.other.last.next("c", "d")
    await idle()
    both.subscriber.cancel()
    await idle()

    assert [(1, "b")] == both.subscriber.items
    assert ["a", "c", "d"] == both.discarded


async def test_of_a_list_of_the_other_the_last_element_is_the_latest_and_the_rest_goes_to_the_discard_hook() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        assert [(1, "c")] == await Flow.of(1).with_latest_from(Flow.of("a", "b", "c")).to_list()

    assert ["a", "b"] == discarded
