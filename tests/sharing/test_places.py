"""Shared flows and hubs on several event loops, and where one of these ends in the middle."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, Hub, Shared, schedulers
from reactive_aio.operators.sharing.log import Log
from tests.subscribers import Recorder, idle


class Frozen(list[Any]):
    """A list that nobody may write to."""


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("a list that was handed out is written to")


for method in (
    "append",
    "extend",
    "insert",
    "remove",
    "pop",
    "clear",
    "sort",
    "reverse",
    "__setitem__",
    "__delitem__",
    "__iadd__",
    "__imul__",
):
    setattr(Frozen, method, refuse)


@pytest.mark.parametrize("lag", [1, 7, 256])
async def test_nobody_writes_to_a_list_that_all_are_given(lag: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Log.put
    monkeypatch.setattr(Log, "put", lambda log, items: put(log, Frozen(items)))
    shared = Flow.range(500).share(lag=lag, start=6)
    ends = [
        shared.to_list(),
        shared.buffer(3).flat_map_iterable(list).to_list(),
        shared.publish_on(schedulers.current(), prefetch=5).to_list(),
        shared.on_backpressure_buffer(1000).to_list(),
        shared.merge(Flow.empty()).to_list(),
        shared.map_async(_same).to_list(),
    ]

    assert [list(range(500))] * 6 == await asyncio.gather(*ends)


async def _same(item: Any) -> Any:
    return item


async def test_one_whose_loop_has_been_closed_counts_as_left_when_it_is_to_be_told() -> None:
    hub: Hub[int] = Hub(idle="drop", lag=2)
    loop = asyncio.new_event_loop()
    gone = Recorder(10)

    async def subscribe() -> None:
        hub.subscribe(gone)
        await idle()

    await asyncio.to_thread(loop.run_until_complete, subscribe())
    loop.close()
    there = Recorder(UNBOUNDED)
    hub.subscribe(there)
    await idle()
    assert 2 == hub.subscribers

    for n in range(5):
        await asyncio.wait_for(hub.emit(n), 30.0)
        await idle()
    assert (1, list(range(5))) == (hub.subscribers, there.items)


async def test_those_on_other_loops_fail_when_the_loop_of_the_run_has_been_closed() -> None:
    shared: list[Shared[int]] = []
    loop = asyncio.new_event_loop()
    first, other = Recorder(1), Recorder(1)

    async def begin() -> None:
        shared.append(Flow.range(100).share(lag=1))
        shared[0].subscribe(first)
        await idle()

    await asyncio.to_thread(loop.run_until_complete, begin())
    shared[0].subscribe(other)
    await idle()
    loop.close()
    other.request(5)
    await asyncio.wait_for(other.over.wait(), 30.0)

    assert "SchedulerClosedError" == type(other.error).__name__
