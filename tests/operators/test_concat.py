"""concat: one flow after another, under one demand."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


async def test_concat_emits_each_flow_to_its_end_in_order() -> None:
    assert [1, 2, 3, 4] == await Flow.of(1, 2).concat(Flow.of(3), Flow.of(4)).to_list()


async def test_concat_with_nothing_is_the_flow_itself() -> None:
    assert [1, 2] == await Flow.of(1, 2).concat().to_list()


async def test_empty_flows_leave_no_trace() -> None:
    empty = Flow.empty()

    assert [1, 2] == await empty.concat(empty, Flow.of(1), empty, empty, Flow.of(2), empty).to_list()
    assert [] == await empty.concat(empty).to_list()


async def test_concat_completes_without_demand_when_its_flows_do() -> None:
    subscriber = Recorder()
    Flow.empty().concat(Flow.of(), Flow.empty()).subscribe(subscriber)
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds


async def test_concat_completes_with_its_last_element_without_further_demand() -> None:
    subscriber = Recorder(3)
    Flow.of(1).concat(Flow.of(2), Flow.of(3), Flow.empty()).subscribe(subscriber)
    await idle()

    assert ["subscribe", "next", "next", "next", "complete"] == subscriber.kinds


async def test_a_failure_ends_concat_and_what_follows_is_not_subscribed_to() -> None:
    tail, subscriber = Sessions(), Recorder(UNBOUNDED)
    Flow.of(1).concat(Flow.error(OSError("down")), Flow.from_publisher(tail)).subscribe(subscriber)
    await idle()

    assert [1] == subscriber.items
    assert "down" == str(subscriber.error)
    assert [] == tail.all


async def test_a_flow_is_subscribed_to_when_the_one_before_has_completed_and_not_sooner() -> None:
    first, second, subscriber = Sessions(), Sessions(), Recorder()
    Flow.from_publisher(first).concat(Flow.from_publisher(second)).subscribe(subscriber)
    await idle()
    assert (1, 0) == (len(first.all), len(second.all))

    first.last.complete()
    await idle()
    assert (1, 1) == (len(first.all), len(second.all))
    assert [[]] == second.requests


async def test_a_tail_behind_a_flow_that_never_ends_is_not_subscribed_to() -> None:
    tail = Sessions()

    assert [0] == await Flow.of(0).concat(Flow.never(), Flow.from_publisher(tail)).take(1).to_list()
    assert [] == tail.all


async def test_a_flow_is_asked_for_what_those_before_it_have_left_of_the_demand() -> None:
    publishers = [Sessions() for _ in range(4)]
    head, *tail = (Flow.from_publisher(publisher) for publisher in publishers)
    subscriber = Recorder(6)
    head.concat(*tail).subscribe(subscriber)
    await idle()
    publishers[0].last.next(1, 2)
    publishers[0].last.complete()
    await idle()
    publishers[1].last.complete()
    await idle()
    subscriber.request(1)
    await idle()
    publishers[2].last.next(3, 4, 5, 6, 7)
    publishers[2].last.complete()
    await idle()

    assert [[[6]], [[4]], [[4, 1]], [[]]] == [publisher.requests for publisher in publishers]
    assert [1, 2, 3, 4, 5, 6, 7] == subscriber.items


async def test_what_a_stage_behind_concat_swallows_is_asked_for_again_of_the_current_flow() -> None:
    first, second, subscriber = Sessions(), Sessions(), Recorder(2)
    flow = Flow.from_publisher(first).concat(Flow.from_publisher(second))
    flow.filter(lambda n: n > 10).subscribe(subscriber)
    await idle()
    for n in (1, 2):
        first.last.next(n)
        await idle()
    first.last.next(11)
    first.last.complete()
    await idle()
    second.last.next(12)
    await idle()

    assert [[2, 1, 1]] == first.requests
    assert [[1]] == second.requests
    assert [11, 12] == subscriber.items


async def test_cancel_ends_the_current_flow_and_what_follows_is_not_subscribed_to() -> None:
    first, second, third, subscriber = Sessions(), Sessions(), Sessions(), Recorder(2)
    Flow.from_publisher(first).concat(*map(Flow.from_publisher, [second, third])).subscribe(subscriber)
    await idle()
    first.last.complete()
    await idle()
    second.last.next(1)
    await idle()
    subscriber.cancel()
    await idle()
    second.last.next(2)
    second.last.complete()
    await idle()

    assert [0, 1] == [first.last.cancels, second.last.cancels]
    assert [] == third.all
    assert ["subscribe", "next"] == subscriber.kinds


async def test_an_element_that_comes_after_cancel_goes_to_the_hook() -> None:
    publisher, subscriber, discarded = Sessions(), Recorder(2), list[object]()
    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(publisher).concat(Flow.of(3)).subscribe(subscriber)
    await idle()
    subscriber.cancel()
    await idle()
    publisher.last.next("late")
    await idle()

    assert ["late"] == discarded


async def test_one_flow_may_stand_in_several_places_with_a_subscriber_for_each() -> None:
    publisher, subscriber = Sessions(), Recorder()
    flow = Flow.from_publisher(publisher)
    flow.concat(flow, flow).subscribe(subscriber)
    for _ in range(3):
        await idle()
        publisher.last.complete()
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds
    assert 3 == len({id(session.subscriber) for session in publisher.all})


async def test_flows_on_other_threads_follow_each_other() -> None:
    def on(name: str, *items: int) -> Flow[int]:
        return Flow.of(*items).subscribe_on(schedulers.thread(name))

    flow = on("first", 1, 2).concat(Flow.of(3), on("second", 4, 5).publish_on(schedulers.thread("third")))

    assert [1, 2, 3, 4, 5] == await flow.to_list()


async def test_concat_itself_may_be_on_another_thread() -> None:
    flow = Flow.of(1).concat(Flow.of(2).publish_on(schedulers.thread("inner")), Flow.of(3))

    assert [1, 2, 3] == await flow.subscribe_on(schedulers.thread("outer")).map(int).to_list()


async def test_a_chain_of_concats_is_one_however_long() -> None:
    chain: Flow[int] = reduce(lambda flow, other: flow.concat(other), [Flow.of(n) for n in range(3000)])

    assert list(range(3000)) == await chain.to_list()
    assert 3000 == len(chain.__nodes__.source.operator.inner)


async def test_a_nest_of_concats_is_as_deep_as_one_likes() -> None:
    nest: Flow[int] = reduce(lambda flow, other: flow.concat(other).map(int), [Flow.of(n) for n in range(300)])

    assert list(range(300)) == await nest.to_list()
    with pytest.raises(ZeroDivisionError) as failed:
        await nest.map(lambda n: 1 // (n - 299)).to_list()
    assert "on element #299" in failed.value.__notes__[0]


async def test_a_flow_may_be_defined_by_itself() -> None:
    def count_down(n: int) -> Flow[int]:
        return Flow.of(n).concat(Flow.defer(lambda: count_down(n - 1))) if n else Flow.of(0)

    assert list(range(150, -1, -1)) == await count_down(150).to_list()


@pytest.mark.parametrize("other", [[1, 2], None, Flow.of])
def test_concat_refuses_what_is_no_flow_when_it_is_built(other: Any) -> None:
    with pytest.raises(TypeError, match=r"concat\(\) takes flows"):
        Flow.of(1).concat(other)
