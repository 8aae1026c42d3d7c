"""Shared flows: one run for all who subscribe meanwhile, under the demand of each."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, schedulers
from reactive_aio.testing import TestPublisher
from tests.sharing.driven import Counted, Hot, reads
from tests.subscribers import idle

# -- who is given what


async def test_each_of_several_subscribers_is_given_all_elements_of_one_run() -> None:
    source = Counted(Flow.range(1000))
    shared = source.flow().share(start=3)

    sums = [*await asyncio.gather(shared.sum(), shared.map(lambda n: -n).sum(), shared.count())]
    assert ([499500, -499500, 1000], 1) == (sums, source.runs)


@pytest.mark.parametrize("source", [Flow.of(1), Flow.range(1000), Flow.empty()])
async def test_those_who_subscribe_in_one_turn_share_a_source_that_is_ready(source: Flow[Any]) -> None:
    counted = Counted(source)
    shared = counted.flow().share()
    first, second = await asyncio.gather(shared.to_list(), shared.to_list())

    assert (1, first) == (counted.runs, second)


async def test_none_is_an_element_as_any() -> None:
    shared = Flow.of(None, None).share(start=2)

    assert [2, 2] == [*await asyncio.gather(shared.count(), shared.count())]


async def test_a_shared_flow_can_be_shared() -> None:
    shared = Flow.range(500).share(start=2).map(str).share(start=1)
    other = Flow.range(500).share(lag=3).share(lag=5)

    assert [500, 500] == [*await asyncio.gather(other.count(), other.count())]
    one = asyncio.ensure_future(shared.count())
    await idle()
    assert not one.done()  # the outer run is one subscriber of the inner one, which waits for two
    one.cancel()


# -- demand


async def test_upstream_is_asked_for_what_the_fastest_wants() -> None:
    hot = Hot.of(lag=10)
    first, second = reads(hot.shared), reads(hot.shared)
    await idle()
    assert [] == hot.publisher.requests

    first.request(3)
    await idle()
    second.request(2)
    await idle()
    assert [3] == hot.publisher.requests

    second.request(5)
    await idle()
    assert [3, 4] == hot.publisher.requests


async def test_the_fastest_is_no_more_than_the_lag_ahead_of_the_slowest() -> None:
    source = Counted(Flow.range(100))
    shared = source.flow().share(lag=5)
    fast, slow = reads(shared, UNBOUNDED), reads(shared)
    await idle()
    assert (list(range(5)), [], [5]) == (fast.items, slow.items, source.asked)

    slow.request(3)
    await idle()
    assert (list(range(8)), [0, 1, 2]) == (fast.items, slow.items)


async def test_a_window_of_a_few_elements_is_asked_for_in_bulk_but_not_where_somebody_waits() -> None:
    hot = Hot.of(lag=100)
    reads(hot.shared, UNBOUNDED)
    slow = reads(hot.shared)
    await idle()
    hot.publisher.next(*range(60))
    await idle()
    slow.request(1)
    await idle()
    assert [100] == hot.publisher.requests  # forty are on their way

    hot.publisher.next(*range(40))
    await idle()
    assert [100, 1] == hot.publisher.requests  # none is


async def test_a_lag_of_one_is_lockstep() -> None:
    shared = Flow.range(100).share(lag=1)
    one, other = reads(shared, UNBOUNDED), reads(shared)
    await idle()
    for n in range(1, 4):
        assert (list(range(n)), list(range(n - 1))) == (one.items, other.items)
        other.request(1)
        await idle()


async def test_nothing_is_asked_for_before_so_many_have_come() -> None:
    source = Counted(Flow.range(10))
    shared = source.flow().share(start=3)
    one, two = reads(shared, UNBOUNDED), reads(shared, UNBOUNDED)
    await idle()
    two.cancel()
    await idle()
    reads(shared, UNBOUNDED)
    await idle()
    assert ([], []) == (source.asked, one.items)

    reads(shared, 1)
    await idle()
    assert 10 == len(one.items)


async def test_a_prefetch_is_read_ahead_for_each_subscriber() -> None:
    source = Counted(Flow.range(100))
    shared = source.flow().share(prefetch=8)
    reads(shared)
    await idle()

    assert [8] == source.asked


# -- where it runs


user: ContextVar[str] = ContextVar("user", default="nobody")


async def test_the_shared_part_runs_in_the_context_of_whoever_shares_and_the_rest_in_that_of_each_subscriber() -> None:
    async def as_user(name: str, flow: Flow[Any]) -> list[Any]:
        user.set(name)
        return await flow.map(lambda seen: (seen, user.get())).to_list()

    user.set("owner")
    shared = Flow.of(1).map(lambda _: user.get()).share(start=2)
    both = [*await asyncio.gather(as_user("anna", shared), as_user("berta", shared))]

    assert [[("owner", "anna")], [("owner", "berta")]] == both


async def test_what_is_held_open_runs_in_the_context_of_the_block() -> None:
    shared = Flow.of(1).map(lambda _: user.get()).share()
    user.set("block")
    async with shared:
        user.set("later")
        assert ["block"] == await shared.to_list()


async def test_subscribers_may_be_on_other_threads() -> None:
    threads = [schedulers.thread(f"reader-{n}") for n in range(3)]
    shared = Flow.range(5000).share(lag=100, start=4)
    flows = [shared, *(shared.subscribe_on(each).map(lambda n: n) for each in threads)]

    assert [12497500] * 4 == [*await asyncio.gather(*[flow.sum() for flow in flows])]


async def test_the_shared_part_runs_where_it_is_placed() -> None:
    import threading

    seen: set[str] = set()
    shared = (
        Flow.range(100)
        .do_on_next(lambda _: seen.add(threading.current_thread().name))
        .subscribe_on(schedulers.thread("feed"))
        .share(start=2)
    )
    assert [4950, 4950] == [*await asyncio.gather(shared.sum(), shared.sum())]
    assert 1 == len(seen)
    assert "feed" in seen.pop()


# -- what other libraries do


async def test_a_publisher_of_somebody_elses_is_shared_under_its_rules() -> None:
    publisher: TestPublisher[int] = TestPublisher()
    shared = Flow.from_publisher(publisher).share()
    one, two = reads(shared, 2), reads(shared, 3)
    await idle()
    publisher.next(1, 2, 3)
    publisher.complete()
    await idle()
    assert ([1, 2], [1, 2, 3], "complete") == (one.items, two.items, two.kinds[-1])
