"""The operators that have a name in other libraries, each by the recipe of the page "Hot and cold"."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, Hub, Processor, Subscription, processor
from reactive_aio.errors import SourceConsumedError
from reactive_aio.testing import run_virtual
from tests.subscribers import ByHand, Recorder, idle


def counted(runs: list[int], items: int = 3) -> Flow[int]:
    """Return a flow that says when it is run."""
    return Flow.range(items).do_on_subscribe(lambda: runs.append(1))


async def test_a_cache_runs_once_and_gives_all_to_each_who_comes() -> None:
    runs: list[int] = []
    async with counted(runs).share(replay=100, restart="never") as cached:
        assert [[0, 1, 2]] * 3 == [await cached.to_list() for _ in range(3)]
    assert 1 == len(runs)


async def test_auto_connect_waits_for_two_and_goes_on_without_them() -> None:
    runs: list[int] = []
    async with counted(runs, 100).share(start=2) as shared:
        both = [*await asyncio.gather(shared.take(1).to_list(), shared.take(2).to_list())]
        assert [[0], [0, 1]] == both
        assert [2] == await shared.take(1).to_list()
    assert 1 == len(runs)


def test_while_subscribed_stops_after_a_while() -> None:
    runs: list[int] = []

    async def main() -> None:
        async with counted(runs, 100).share(linger=5.0) as shared:
            await shared.take(1).to_list()
            await asyncio.sleep(4.0)
            assert [1] == await shared.take(1).to_list()
            await asyncio.sleep(6.0)
            assert [0] == await shared.take(1).to_list()

    run_virtual(main())
    assert 2 == len(runs)


async def test_one_who_must_not_slow_the_others_is_given_the_latest() -> None:
    hub: Hub[int] = Hub(idle="drop", lag=1)
    slow, fast = Recorder(1), Recorder(UNBOUNDED)
    hub.flow.on_backpressure_latest().subscribe(slow)
    hub.subscribe(fast)
    await idle()
    for n in range(5):
        await hub.emit(n)
    await idle()
    slow.request(1)
    await idle()

    assert ([0, 4], list(range(5))) == (slow.items, fast.items)


async def test_a_kill_switch_ends_several_flows() -> None:
    stop: Hub[str] = Hub(idle="drop")
    running = [asyncio.ensure_future(Flow.never().take_until_other(stop.flow).to_list()) for _ in range(3)]
    await idle()
    stop.offer("now")

    assert [[]] * 3 == await asyncio.gather(*running)


async def test_a_merge_hub_is_fed_by_several_flows() -> None:
    hub: Hub[int] = Hub(idle="wait")
    reading = asyncio.ensure_future(hub.flow.to_list())
    await asyncio.gather(*[hub.feed(Flow.range(n, n + 5)) for n in (0, 5, 10)])
    hub.complete()

    assert list(range(15)) == sorted(await reading)


@pytest.mark.parametrize(("replay", "extra"), [(0, 1), (1, 0), (2, 1), (3, 4)])
async def test_a_mutable_shared_flow_takes_as_many_elements_ahead_of_a_slow_collector(replay: int, extra: int) -> None:
    hub: Hub[int] = Hub(idle="drop", replay=replay, lag=max(replay + extra, 1))
    slow = Recorder(1)
    hub.subscribe(slow)
    await idle()
    assert hub.offer(0)
    await idle()
    assert [0] == slow.items

    taken = [bool(hub.offer(n)) for n in range(1, 10)]
    assert [True] * (replay + extra) == [each for each in taken if each]


async def test_a_tee_is_bounded() -> None:
    asked: list[int] = []
    shared = Flow.range(1000).do_on_request(asked.append).share(start=2, lag=8)
    fast, slow = Recorder(UNBOUNDED), Recorder()
    shared.subscribe(fast)
    shared.subscribe(slow)
    await idle()

    assert (8, 8) == (sum(asked), len(fast.items))


# -- a function that reads a flow several times


def test_multicast_runs_the_flow_once_for_each_subscription() -> None:
    runs: list[int] = []
    flow = counted(runs).multicast(lambda one: one.zip(one.map(lambda n: -n)))

    assert [[(0, 0), (1, -1), (2, -2)]] * 2 == [flow.run_sync(), flow.run_sync()]
    assert 2 == len(runs)


@pytest.mark.usefixtures("hurried")
def test_multicast_waits_for_all_who_read_from_the_beginning_though_they_come_in_several_turns() -> None:
    def all_of_them(one: Flow[int]) -> Flow[Any]:
        return one.zip(*[one.map(str) for _ in range(20)])

    assert [0, 1, 2] == Flow.range(3).multicast(all_of_them).map(lambda row: row[0]).run_sync()


async def test_the_flow_is_cancelled_when_all_that_read_it_have_left() -> None:
    publisher = ByHand()
    reader = Recorder(UNBOUNDED)
    Flow.from_publisher(publisher).multicast(lambda one: one.merge(one)).subscribe(reader)
    await idle()
    assert 0 == publisher.cancels

    reader.cancel()
    await idle()
    assert 1 == publisher.cancels


# -- a processor with several subscribers


async def test_a_processor_with_a_lag_serves_several_and_gives_the_end_to_those_who_come_later() -> None:
    doubled: Processor[int, int] = processor(lambda flow: flow.map(lambda n: 2 * n), lag=4)
    one, two = Recorder(UNBOUNDED), Recorder(UNBOUNDED)
    doubled.subscribe(one)
    doubled.subscribe(two)
    Flow.range(3).subscribe(doubled)
    await idle()
    late = Recorder()
    doubled.subscribe(late)
    await idle()

    assert ([0, 2, 4], one.signals, "complete") == (one.items, two.signals, late.kinds[-1])


async def test_a_processor_that_all_have_left_cancels_upstream_and_serves_nobody_any_more() -> None:
    publisher = ByHand()
    passing: Processor[int, int] = processor(lambda flow: flow, lag=4)
    one, two = Recorder(1), Recorder(1)
    passing.subscribe(one)
    passing.subscribe(two)
    publisher.subscribe(passing)
    await idle()
    one.cancel()
    await idle()
    assert 0 == publisher.cancels

    two.cancel()
    await idle()
    late = Recorder(1)
    passing.subscribe(late)
    await idle()
    assert 1 == publisher.cancels
    assert isinstance(late.error, SourceConsumedError)
    assert "all subscribers of the processor have left" in str(late.error)


class Leaving(Recorder):
    """Cancels at once, so that its region never begins."""

    def on_subscribe(self, subscription: Subscription) -> None:
        super().on_subscribe(subscription)
        subscription.cancel()


async def test_a_processor_that_the_only_subscriber_has_left_at_once_serves_nobody_any_more() -> None:
    publisher = ByHand()
    passing: Processor[int, int] = processor(lambda flow: flow, lag=4)
    publisher.subscribe(passing)
    passing.subscribe(Leaving())
    await idle()
    late = Recorder(1)
    passing.subscribe(late)
    await idle()
    assert 1 == publisher.cancels
    assert isinstance(late.error, SourceConsumedError)
    assert "all subscribers of the processor have left" in str(late.error)


async def test_a_processor_goes_on_for_one_who_subscribed_before_another_left() -> None:
    publisher = ByHand()
    passing: Processor[int, int] = processor(lambda flow: flow, lag=4)
    publisher.subscribe(passing)
    stays = Recorder(3)
    passing.subscribe(Leaving())
    passing.subscribe(stays)  # its region begins in a later turn
    await idle()
    assert (["subscribe"], [3], 0) == (stays.kinds, publisher.requests, publisher.cancels)

    stays.cancel()
    await idle()
    assert 1 == publisher.cancels


async def test_a_processor_does_not_count_what_is_no_subscriber() -> None:
    publisher = ByHand()
    passing: Processor[int, int] = processor(lambda flow: flow, lag=4)
    publisher.subscribe(passing)
    nothing: Any = None
    with pytest.raises(TypeError):
        passing.subscribe(nothing)
    only = Recorder(3)
    passing.subscribe(only)
    await idle()
    only.cancel()
    await idle()
    assert 1 == publisher.cancels
