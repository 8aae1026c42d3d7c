"""concat_eager: all flows at the same time, emitted one after another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


@pytest.mark.parametrize("prefetch", [1, 3, 32])
@pytest.mark.parametrize("demand", [1, 4, UNBOUNDED])
async def test_it_emits_what_concat_does(prefetch: int, demand: int) -> None:
    sizes = [5, 0, 40, 1, 0, 17, 0]
    flows = [Flow.range(100 * place, 100 * place + size) for place, size in enumerate(sizes)]
    subscriber = Recorder(demand)
    flows[0].concat_eager(*flows[1:], prefetch=prefetch).subscribe(subscriber)
    while not subscriber.over.is_set():
        await idle()
        subscriber.request(demand)

    assert await flows[0].concat(*flows[1:]).to_list() == subscriber.items


def test_flows_wait_for_time_together() -> None:
    async def main() -> tuple[list[Any], float]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        late = [Flow.interval(seconds).take(1).map(lambda _, s=seconds: s) for seconds in (3, 1, 4, 2)]
        return await late[0].concat_eager(*late[1:]).to_list(), loop.time() - started

    assert ([3, 1, 4, 2], 4) == run_virtual(main())


@pytest.mark.usefixtures("still")
async def test_each_flow_is_asked_for_the_prefetch_and_only_the_one_that_is_emitted_for_more() -> None:
    publishers, subscriber = [Sessions() for _ in range(3)], Recorder(UNBOUNDED)
    first, *others = map(Flow.from_publisher, publishers)
    first.concat_eager(*others, prefetch=4).subscribe(subscriber)
    await idle()
    for publisher in publishers:
        publisher.last.next(1, 2, 3, 4)
    await idle()
    requests = [publisher.last.requests for publisher in publishers]
    assert ([1, 2, 3, 4], 4) == (subscriber.items, sum(requests[0][1:])), "the first goes on"
    assert [[4], [4]] == requests[1:], "the others wait"

    publishers[0].last.complete()
    await idle()
    assert [1, 2, 3, 4] * 2 == subscriber.items
    assert [8, 4] == [sum(each) for each in requests[1:]]
    subscriber.cancel()


async def test_the_end_needs_no_further_demand() -> None:
    subscriber = Recorder(3)
    Flow.of(1).concat_eager(Flow.of(2, 3), Flow.empty()).subscribe(subscriber)
    await idle()

    assert ["subscribe", "next", "next", "next", "complete"] == subscriber.kinds


async def test_a_failure_comes_at_its_place() -> None:
    publishers, subscriber, discarded = [Sessions() for _ in range(3)], Recorder(UNBOUNDED), list[object]()
    first, *others = map(Flow.from_publisher, publishers)
    with hooks.using(on_discard=discarded.append):
        first.concat_eager(*others).subscribe(subscriber)
    await idle()
    publishers[1].last.next("b")
    publishers[1].last.error(OSError("down"))
    publishers[2].last.next("c")
    await idle()
    assert ["subscribe"] == subscriber.kinds

    publishers[0].last.next("a")
    publishers[0].last.complete()
    await idle()
    assert ["a", "b"] == subscriber.items
    assert "down" == str(subscriber.error)
    assert ["c"] == discarded
    assert 1 == publishers[2].last.cancels


async def test_cancel_reaches_every_flow_and_tells_the_hooks_of_what_waits() -> None:
    publishers, subscriber = [Sessions() for _ in range(3)], Recorder()
    discarded, dropped = list[object](), list[BaseException]()
    first, *others = map(Flow.from_publisher, publishers)
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        first.concat_eager(*others).subscribe(subscriber)
    await idle()
    publishers[0].last.next("a")
    publishers[1].last.next("b")
    publishers[1].last.error(OSError("kept"))
    await idle()
    subscriber.cancel()
    await idle()

    assert [1, 0, 1] == [publisher.last.cancels for publisher in publishers]
    assert ["a", "b"] == discarded
    assert ["kept"] == [str(error) for error in dropped]


@pytest.mark.parametrize("other", [[1, 2], None])
def test_an_argument_that_is_no_flow_is_refused_when_it_is_built(other: Any) -> None:
    with pytest.raises(TypeError, match=r"concat_eager\(\) takes flows"):
        Flow.of(1).concat_eager(other)


@pytest.mark.parametrize(("prefetch", "error"), [(0, ValueError), (1.5, TypeError)])
def test_a_prefetch_that_is_no_count_is_refused_when_it_is_built(prefetch: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"concat_eager\(prefetch="):
        Flow.of(1).concat_eager(Flow.of(2), prefetch=prefetch)
