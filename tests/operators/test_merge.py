"""merge: several flows at a time, each in its turn."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, SchedulerClosedError, hooks, schedulers
from reactive_aio.testing import run_virtual, settle
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def ticking(name: str, every: float, times: int) -> Flow[str]:
    """Elements at known times, with the times as their names."""
    return Flow.interval(every).map(lambda n: f"{name}{(n + 1) * every:g}").take(times)


def test_elements_come_when_their_flows_emit_them() -> None:
    merged = ticking("a", 2, 3).merge(ticking("b", 3, 3), ticking("c", 0.5, 2))

    assert ["c0.5", "c1", "a2", "b3", "a4", "a6", "b6", "b9"] == sorted_ties(run_virtual(merged.to_list()))


def sorted_ties(names: list[str]) -> list[str]:
    """Sort the names of elements that come at the same time, since these come in any order."""
    return sorted(names, key=lambda name: (float(name[1:]), name))


async def test_every_element_comes_once_and_those_of_one_flow_in_their_order() -> None:
    flows = [Flow.range(start, start + 500) for start in range(0, 4000, 1000)]
    items = await flows[0].merge(*flows[1:]).to_list()

    assert [[*range(start, start + 500)] for start in range(0, 4000, 1000)] == [
        [item for item in items if start <= item < start + 1000] for start in range(0, 4000, 1000)
    ]
    assert 2000 == len(items)


async def test_merge_with_nothing_is_the_flow_itself() -> None:
    assert [1, 2] == await Flow.of(1, 2).merge().to_list()


async def test_merge_completes_with_its_last_flow_without_further_demand() -> None:
    publishers = [Sessions() for _ in range(3)]
    first, *others = map(Flow.from_publisher, publishers)
    subscriber = Recorder()
    first.merge(*others).subscribe(subscriber)
    for publisher in publishers:
        await idle()
        assert ["subscribe"] == subscriber.kinds
        publisher.last.complete()
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds


# -- fairness


@pytest.mark.parametrize("demand", [1, 3, 32, UNBOUNDED])
@pytest.mark.parametrize("prefetch", [1, 4, 32])
@pytest.mark.usefixtures("still")
async def test_no_flow_that_is_ready_starves_another(demand: int, prefetch: int) -> None:
    count, each = 8, 100
    subscriber = Recorder()
    flows: list[Flow[Any]] = [Flow.of(*[name] * each) for name in range(count)]
    flows = [flow.concat(Flow.never()) for flow in flows]
    flows[0].merge(*flows[1:], prefetch=prefetch).subscribe(subscriber)
    # Until all have begun, there is nobody to be starved.
    await settle()
    subscriber.request(demand)
    while len(subscriber.items) < count * each:
        await idle(1)
        if demand != UNBOUNDED:
            subscriber.request(demand)

    seen = Counter[int]()
    for taken, name in enumerate(subscriber.items, 1):
        seen[name] += 1
        assert seen[name] <= taken / count + prefetch
    subscriber.cancel()


async def test_with_demand_for_one_at_a_time_the_flows_take_turns() -> None:
    flows = [Flow.of(*[name] * 20) for name in "abc"]
    subscriber = Recorder()
    flows[0].merge(*flows[1:]).subscribe(subscriber)
    await idle()
    for _ in range(60):
        subscriber.request(1)
        await idle()

    assert ["a", "b", "c"] * 20 == subscriber.items


@pytest.mark.usefixtures("still")
async def test_an_async_generator_that_never_suspends_does_not_starve_another() -> None:
    async def numbers(sign: int) -> Any:
        for n in range(1, 2000):
            yield sign * n

    items = await Flow.from_async_iterable(numbers(1)).merge(Flow.from_async_iterable(numbers(-1))).take(2000).to_list()

    assert 600 < sum(item > 0 for item in items) < 1400


# -- demand and buffering


async def test_each_flow_is_asked_for_the_prefetch_and_for_more_when_three_quarters_are_emitted() -> None:
    first, second, subscriber = Sessions(), Sessions(), Recorder()
    Flow.from_publisher(first).merge(Flow.from_publisher(second), prefetch=8).subscribe(subscriber)
    await idle()
    assert [[[8]], [[8]]] == [first.requests, second.requests]

    first.last.next(*range(8))
    subscriber.request(5)
    await idle()
    assert [[8]] == first.requests

    subscriber.request(1)
    await idle()
    assert [[[8, 6]], [[8]]] == [first.requests, second.requests]


async def test_what_nobody_wants_waits_and_is_no_more_than_the_prefetch_of_each() -> None:
    made = Counter[str]()

    def counting(name: str) -> Flow[str]:
        return Flow.range(100).map(lambda _: made.update([name]) or name)

    subscriber = Recorder()
    counting("a").merge(counting("b"), prefetch=7).subscribe(subscriber)
    await idle(100)

    assert {"a": 7, "b": 7} == made
    assert [] == subscriber.items
    subscriber.cancel()


async def test_unbounded_demand_asks_no_flow_for_more_than_the_prefetch() -> None:
    publisher, subscriber = Sessions(), Recorder(UNBOUNDED)
    Flow.from_publisher(publisher).merge(Flow.never(), prefetch=4).subscribe(subscriber)
    await idle()
    for n in range(40):
        publisher.last.next(n)
        await idle()

    assert [4, *[3] * 13] == publisher.last.requests
    subscriber.cancel()


async def test_a_demand_that_is_met_across_flows_is_not_met_twice() -> None:
    publishers, subscriber = [Sessions() for _ in range(2)], Recorder(3)
    first, second = map(Flow.from_publisher, publishers)
    first.merge(second).subscribe(subscriber)
    await idle()
    publishers[0].last.next(1, 2)
    publishers[1].last.next(3, 4)
    await idle()

    assert 3 == len(subscriber.items)
    subscriber.request(1)
    await idle()
    assert {1, 2, 3, 4} == set(subscriber.items)


# -- failures


async def test_a_failure_ends_the_whole_and_the_others_are_cancelled() -> None:
    other, subscriber = Sessions(), Recorder(UNBOUNDED)
    Flow.of(1).concat(Flow.error(OSError("down"))).merge(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()

    assert [1] == subscriber.items
    assert "down" == str(subscriber.error)
    assert all(session.cancels for session in other.all)


async def test_a_failure_stands_behind_the_elements_of_its_flow_and_before_those_of_others() -> None:
    first, second, subscriber, discarded = Sessions(), Sessions(), Recorder(), list[object]()
    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(first).merge(Flow.from_publisher(second)).subscribe(subscriber)
    await idle()
    first.last.next("a", "b")
    first.last.error(OSError("down"))
    second.last.next("c", "d", "e")
    await idle()
    assert ["subscribe"] == subscriber.kinds

    for _ in range(3):
        subscriber.request(1)
        await idle()
    assert ["a", "c", "b"] == subscriber.items
    assert "error" == subscriber.kinds[-1]
    assert ["d", "e"] == discarded
    assert 1 == second.last.cancels


async def test_failures_of_several_flows_arrive_once_each() -> None:
    publishers, subscriber, dropped = [Sessions() for _ in range(3)], Recorder(), list[BaseException]()
    first, *others = map(Flow.from_publisher, publishers)
    with hooks.using(on_error_dropped=dropped.append):
        first.merge(*others).subscribe(subscriber)
    await idle()
    for n, publisher in enumerate(publishers):
        publisher.last.next(n)
        publisher.last.error(OSError(n))
    await idle()
    subscriber.request(1)
    await idle()

    assert "0" == str(subscriber.error)
    assert ["1", "2"] == [str(error) for error in dropped]


async def test_delayed_a_failure_waits_for_the_others_to_end() -> None:
    failing = Flow.of(1).concat(Flow.error(OSError("down")))
    subscriber = Recorder(UNBOUNDED)
    failing.merge(Flow.range(100, 300), delay_errors=True).subscribe(subscriber)
    await idle(100)

    assert [1, *range(100, 300)] == sorted(subscriber.items)
    assert "down" == str(subscriber.error)


async def test_several_delayed_failures_are_a_group() -> None:
    failing = [Flow.error(OSError(n)) for n in range(3)]
    with pytest.raises(ExceptionGroup) as raised:
        await failing[0].merge(*failing[1:], Flow.of("well"), delay_errors=True).to_list()

    assert ["0", "1", "2"] == [str(error) for error in raised.value.exceptions]


async def test_a_delayed_failure_that_is_cancelled_before_the_end_goes_to_the_hook() -> None:
    subscriber, dropped = Recorder(UNBOUNDED), list[BaseException]()
    with hooks.using(on_error_dropped=dropped.append):
        Flow.error(OSError("down")).merge(Flow.never(), delay_errors=True).subscribe(subscriber)
    await idle()
    assert [] == dropped
    subscriber.cancel()
    await idle()

    assert ["down"] == [str(error) for error in dropped]


# -- cancelling


async def test_cancel_reaches_every_flow_and_tells_the_hook_of_what_waits() -> None:
    publishers, subscriber, discarded = [Sessions() for _ in range(3)], Recorder(), list[object]()
    first, *others = map(Flow.from_publisher, publishers)
    with hooks.using(on_discard=discarded.append):
        first.merge(*others).subscribe(subscriber)
    await idle()
    for n, publisher in enumerate(publishers):
        publisher.last.next(n)
    await idle()
    subscriber.cancel()
    await idle()
    publishers[0].last.next("late")
    await idle()

    assert [1, 1, 1] == [publisher.last.cancels for publisher in publishers]
    assert {0, 1, 2, "late"} == set(discarded)


async def test_flows_that_are_not_needed_any_more_are_cancelled_by_take() -> None:
    publisher = Sessions()

    assert [1] == await Flow.of(1, 2, 3).merge(Flow.from_publisher(publisher)).take(1).to_list()
    assert all(session.cancels for session in publisher.all)


# -- places


async def test_one_flow_may_stand_in_several_places_with_a_subscriber_for_each() -> None:
    flow = Flow.of(1, 2)

    assert [1, 1, 1, 2, 2, 2] == sorted(await flow.merge(flow, flow).to_list())


async def test_flows_on_other_threads_come_home() -> None:
    def on(name: str, *items: int) -> Flow[int]:
        return Flow.of(*items).subscribe_on(schedulers.thread(name))

    merged = on("first", 1, 2).merge(Flow.of(3), on("second", 4).publish_on(schedulers.thread("third")))

    assert [1, 2, 3, 4] == sorted(await merged.to_list())


async def test_a_nest_of_merges_is_as_deep_as_one_likes() -> None:
    nest: Flow[int] = Flow.of(0)
    for n in range(1, 200):
        nest = nest.merge(Flow.of(n)).map(int)

    assert [*range(200)] == sorted(await nest.to_list())


async def test_thousands_of_flows_are_begun_with_in_several_turns_of_the_loop() -> None:
    turns, begun = 0, set[int]()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def begin(n: int) -> Flow[int]:
        begun.add(turns)
        return Flow.of(n)

    task = asyncio.create_task(others())
    flows = [Flow.defer(lambda n=n: begin(n)) for n in range(1500)]
    items = await flows[0].merge(*flows[1:]).to_list()
    task.cancel()

    assert [*range(1500)] == sorted(items)
    assert len(begun) > 5


async def test_every_flow_is_ended_when_the_loop_that_it_is_read_on_stops_in_the_middle() -> None:
    ended, begun = list[str](), list[str]()

    def named(name: str) -> Flow[str]:
        return Flow.never().do_on_subscribe(lambda: begun.append(name)).do_finally(lambda: ended.append(name))

    foreign = asyncio.new_event_loop()
    thread = threading.Thread(target=foreign.run_forever)
    thread.start()
    merged = named("a").merge(named("b"), named("c")).subscribe_on(schedulers.loop(foreign))
    waiting = asyncio.ensure_future(merged.to_list())
    while len(begun) < 3:
        await asyncio.sleep(0)
    foreign.call_soon_threadsafe(foreign.stop)
    thread.join()
    with pytest.raises(SchedulerClosedError):
        await asyncio.wait_for(waiting, 60)
    foreign.close()

    assert ["a", "b", "c"] == sorted(ended)


# -- building


@pytest.mark.parametrize("other", [[1, 2], None, Flow.of])
def test_an_argument_that_is_no_flow_is_refused_when_it_is_built(other: Any) -> None:
    with pytest.raises(TypeError, match=r"merge\(\) takes flows"):
        Flow.of(1).merge(other)


@pytest.mark.parametrize(
    ("prefetch", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)]
)
def test_a_prefetch_that_is_no_count_is_refused_when_it_is_built(prefetch: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"merge\(prefetch="):
        Flow.of(1).merge(Flow.of(2), prefetch=prefetch)


def test_the_plan_shows_each_flow() -> None:
    shown = Flow.of(1).merge(Flow.of("a").map(len), prefetch=8).describe()

    assert "merge(8)" in shown
    assert 2 == shown.count("where merge reads:")


@pytest.mark.usefixtures("still")
def test_turns_are_by_chunk_under_unbounded_demand() -> None:
    async def main() -> list[str]:
        return await Flow.of(*"a" * 64).merge(Flow.of(*"b" * 64), prefetch=16).to_list()

    runs = [(one, two) for one, two in pairwise(asyncio.run(main())) if one != two]

    assert 7 == len(runs)
