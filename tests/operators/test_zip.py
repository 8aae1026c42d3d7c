"""zip: one element of each flow, in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle

lists = st.lists(st.integers(0, 9), max_size=20)


@settings(max_examples=40, deadline=None)
@given(st.lists(lists, min_size=1, max_size=4), st.integers(1, 9), st.booleans())
def test_zip_gives_what_the_builtin_gives(columns: list[list[int]], prefetch: int, apart: bool) -> None:
    flows: list[Flow[int]] = [Flow.from_iterable(column) for column in columns]
    if apart:
        flows = [Flow.from_publisher(flow) for flow in flows]
    first, *others = flows

    assert list(zip(*columns, strict=False)) == asyncio.run(first.zip(*others, prefetch=prefetch).to_list())


def test_a_tuple_comes_when_the_slowest_flow_has_its_element() -> None:
    times = Flow.interval(1).zip(Flow.interval(3), prefetch=8)

    async def main() -> list[tuple[Any, float]]:
        loop = asyncio.get_running_loop()
        return await times.take(2).map(lambda pair: (pair, loop.time())).to_list()

    first, second = run_virtual(main())

    assert ((0, 0), (1, 1)) == (first[0], second[0])
    assert 3 == pytest.approx(second[1] - first[1])


async def test_each_flow_is_asked_for_the_prefetch_and_for_more_when_three_quarters_are_used() -> None:
    publishers, subscriber = [Sessions(), Sessions()], Recorder()
    left, right = map(Flow.from_publisher, publishers)
    left.zip(right, prefetch=4).subscribe(subscriber)
    await idle()
    publishers[0].last.next(1, 2, 3, 4)
    publishers[1].last.next(1, 2, 3, 4)
    subscriber.request(2)
    await idle()
    assert [[[4]], [[4]]] == [publisher.requests for publisher in publishers]

    subscriber.request(1)
    await idle()
    assert [[[4, 3]], [[4, 3]]] == [publisher.requests for publisher in publishers]
    assert [(1, 1), (2, 2), (3, 3)] == subscriber.items


async def test_no_more_tuples_come_than_are_requested() -> None:
    subscriber = Recorder(2)
    Flow.range(9).zip(Flow.range(9)).subscribe(subscriber)
    await idle()
    assert [(0, 0), (1, 1)] == subscriber.items

    subscriber.request(1)
    await idle()
    assert [(0, 0), (1, 1), (2, 2)] == subscriber.items


async def test_it_completes_without_demand_when_a_flow_that_has_ended_has_nothing_left() -> None:
    publisher, subscriber = Sessions(), Recorder()
    Flow.from_publisher(publisher).zip(Flow.empty()).subscribe(subscriber)
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds
    assert [0] == [session.cancels for session in publisher.all] or 1 == publisher.last.cancels


async def test_it_completes_with_the_last_tuple_without_further_demand() -> None:
    endless, subscriber = Sessions(), Recorder(1)
    Flow.from_publisher(endless).zip(Flow.of("a")).subscribe(subscriber)
    await idle()
    endless.last.next(1, 2)
    await idle()

    assert ["subscribe", "next", "complete"] == subscriber.kinds
    assert 1 == endless.last.cancels


async def test_it_goes_on_while_a_flow_that_has_ended_has_something_left() -> None:
    slow, subscriber = Sessions(), Recorder(9)
    Flow.from_publisher(slow).zip(Flow.of("a", "b")).subscribe(subscriber)
    await idle()
    slow.last.next(1)
    await idle()
    assert ["subscribe", "next"] == subscriber.kinds

    slow.last.next(2)
    await idle()
    assert ["subscribe", "next", "next", "complete"] == subscriber.kinds


async def test_what_is_left_over_goes_to_the_discard_hook() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        assert [(0, "a")] == await Flow.range(4).zip(Flow.of("a")).to_list()

    assert [1, 2, 3] == discarded


async def test_what_is_buffered_goes_to_the_discard_hook_on_cancel_and_all_flows_are_cancelled() -> None:
    publishers, subscriber = [Sessions(), Sessions()], Recorder()
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(publishers[0]).zip(Flow.from_publisher(publishers[1])).subscribe(subscriber)
    await idle()
    publishers[0].last.next(1, 2)
    publishers[1].last.next("a")
    await idle()
    subscriber.cancel()
    await idle()

    assert {1, 2, "a"} == set(discarded)
    assert [1, 1] == [publisher.last.cancels for publisher in publishers]


async def test_a_failure_stands_behind_the_elements_that_came_before_it() -> None:
    failing, subscriber = Flow.of(1, 2).concat(Flow.error(OSError("down"))), Recorder(UNBOUNDED)
    failing.zip(Flow.range(9)).subscribe(subscriber)
    await subscriber.over.wait()

    assert [(1, 0), (2, 1)] == subscriber.items
    assert "down" == str(subscriber.error)


async def test_a_failure_ends_the_whole_though_another_flow_gives_nothing() -> None:
    with pytest.raises(OSError, match="down"):
        await Flow.never().zip(Flow.error(OSError("down"))).to_list()


async def test_a_failure_that_nobody_came_to_see_goes_to_the_hook() -> None:
    dropped: list[Any] = []
    failing = Flow.of(1, 2).concat(Flow.error(OSError("unseen")))
    short = Flow.of("a").concat(Flow.from_async_iterable(pausing()))
    with hooks.using(on_error_dropped=dropped.append):
        assert [("a", 1)] == await short.zip(failing).to_list()

    assert ["unseen"] == [str(error) for error in dropped]


async def pausing() -> Any:
    """Yield nothing, after a while."""
    await idle()
    for nothing in ():
        yield nothing


async def test_of_flows_that_have_ended_the_first_in_order_decides() -> None:
    failing = Flow.error(OSError("down"))

    assert [] == await Flow.empty().zip(failing).to_list()
    with pytest.raises(OSError, match="down"):
        await failing.zip(Flow.empty()).to_list()


async def test_zip_with_nobody_gives_tuples_of_one() -> None:
    assert [(1,), (2,)] == await Flow.of(1, 2).zip().to_list()


async def test_none_is_an_element_like_others() -> None:
    assert [(None, 1)] == await Flow.of(None).zip(Flow.of(1)).to_list()


async def test_flows_of_other_threads_are_zipped() -> None:
    threaded = Flow.range(1000).publish_on(schedulers.thread("zipped")).map(str)

    assert [(n, str(n)) for n in range(1000)] == await Flow.range(1000).zip(threaded, prefetch=7).to_list()


async def test_many_elements_of_a_synchronous_flow_leave_the_stack_flat() -> None:
    assert 100_000 == await Flow.range(100_000).zip(Flow.range(100_000), prefetch=1000).count()


@pytest.mark.parametrize("elements", [1, 2, 3])
async def test_elements_that_come_one_by_one_are_passed_on_at_once(elements: int) -> None:
    publishers, subscriber = [Sessions(), Sessions()], Recorder(9)
    Flow.from_publisher(publishers[0]).zip(Flow.from_publisher(publishers[1])).subscribe(subscriber)
    await idle()
    for n in range(elements):
        publishers[0].last.next(n)
        publishers[1].last.next(n)
        await idle()
        assert n + 1 == len(subscriber.items)


def test_it_is_shown_with_its_first_flows() -> None:
    assert "Flow.zip(Flow.range(0, 3), Flow.of('a'), ...)" == repr(Flow.range(3).zip(Flow.of("a"), Flow.of("b")))


def test_bad_arguments_are_refused_when_the_flow_is_built() -> None:
    with pytest.raises(TypeError, match=r"zip\(\) takes flows, not range"):
        Flow.of(1).zip(range(3))
    with pytest.raises(ValueError, match=r"zip\(prefetch=0\): prefetch must be at least 1"):
        Flow.of(1).zip(Flow.of(2), prefetch=0)
