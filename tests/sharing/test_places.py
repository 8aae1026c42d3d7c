"""Shared flows and hubs on several event loops, and where one of these ends in the middle."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from reactive_aio import UNBOUNDED, Emitter, Flow, Hub, Offer, SchedulerClosedError, schedulers
from reactive_aio.operators.sharing.log import Log
from tests.subscribers import Recorder, idle

T = TypeVar("T")


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


class Elsewhere:
    """An event loop on a thread, which a test stops."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    async def call(self, main: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(main, self.loop))

    async def stop(self, *, close: bool = True) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        await asyncio.to_thread(self.thread.join)
        for task in asyncio.all_tasks(self.loop):
            left: Any = task
            left._log_destroy_pending = False  # it is meant to be left
        if close:
            self.loop.close()


async def counting() -> AsyncIterator[int]:
    for n in itertools.count():
        await asyncio.sleep(0)
        yield n


def emit_one(emitter: Emitter[int]) -> None:
    emitter.next(1)


ENDLESS: dict[str, Callable[[], Flow[Any]]] = {
    "interval": lambda: Flow.interval(0.001).on_backpressure_drop(),
    "an async generator": lambda: Flow.from_async_iterable(counting),
    "a range": lambda: Flow.range(10**9),
    "callbacks": lambda: Flow.from_callback(emit_one),
    "a limited rate": lambda: Flow.range(10**9).rate_limit(1000, 1),
    "an inner flow": lambda: Flow.range(10**9).flat_map(lambda n: Flow.timer(0.001)),
    "a task for each element": lambda: Flow.range(10**9).map_async(_same),
    "a boundary before it": lambda: Flow.range(10**9).publish_on(schedulers.current()),
    "a boundary to a thread": lambda: Flow.range(10**9).publish_on(schedulers.thread("apart")),
}


@pytest.mark.parametrize("close", [True, False], ids=["closed", "stopped"])
@pytest.mark.parametrize("source", ENDLESS)
async def test_those_on_other_loops_fail_when_the_loop_of_the_run_ends(source: str, close: bool) -> None:
    shared = ENDLESS[source]().share(lag=1)
    elsewhere = Elsewhere()
    first, other = Recorder(1), Recorder(1)

    async def begin() -> None:
        shared.subscribe(first)
        await idle()

    await elsewhere.call(begin())
    shared.subscribe(other)
    await idle()
    await elsewhere.stop(close=close)
    await asyncio.wait_for(other.over.wait(), 30.0)

    assert type(other.error).__name__ in {"SchedulerClosedError", "TaskCancelledError"}
    assert await asyncio.wait_for(shared.first(), 30.0) is not None
    elsewhere.loop.close()


@pytest.mark.parametrize("source", ENDLESS)
def test_a_run_that_was_left_on_a_loop_that_has_ended_is_not_joined(source: str) -> None:
    shared = ENDLESS[source]().share()
    kept: list[object] = []

    async def begin() -> Any:
        items = aiter(shared)
        kept.append(items)
        return await anext(items)

    async def again() -> Any:
        return await asyncio.wait_for(shared.first(), 30.0)

    first = asyncio.run(begin())
    assert asyncio.run(again()) == first


def test_a_run_that_was_held_open_on_a_loop_that_has_ended_says_so() -> None:
    shared = Flow.interval(0.001).on_backpressure_drop().share()

    async def begin() -> None:
        await shared.__aenter__()
        await shared.first()

    async def again() -> None:
        await asyncio.wait_for(shared.first(), 30.0)

    asyncio.run(begin())
    with pytest.raises(SchedulerClosedError, match="loop that opened the shared flow is closed"):
        asyncio.run(again())


def reads_on_a_loop_that_is_closed_before_its_turn(hub: Hub[int]) -> list[object]:
    """Have somebody wait for an element on a loop that is closed when the element has come."""
    loop, kept = asyncio.new_event_loop(), list[object]()

    async def begin() -> None:
        items = aiter(hub.flow)
        waiting: Any = asyncio.ensure_future(anext(items))
        waiting._log_destroy_pending = False  # it is meant to be left
        kept.extend([items, waiting])
        await idle()

    loop.run_until_complete(begin())
    assert hub.offer(0)
    loop.close()
    return kept


def test_one_whose_loop_was_closed_before_its_turn_counts_as_left_when_the_hub_ends() -> None:
    hub: Hub[int] = Hub(idle="wait")
    kept = reads_on_a_loop_that_is_closed_before_its_turn(hub)
    hub.complete()
    assert 0 == hub.subscribers
    assert kept


def test_one_whose_loop_was_closed_before_its_turn_counts_as_left_when_an_emitter_waits_for_it() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=1)
    kept = reads_on_a_loop_that_is_closed_before_its_turn(hub)
    assert hub.offer(1) is Offer.FULL
    with pytest.raises(TimeoutError):
        hub.submit(1, timeout=0.0)
    assert 0 == hub.subscribers
    assert kept


@pytest.mark.parametrize("restart", ["always", "never"])
def test_another_block_may_hold_a_flow_open_when_the_loop_was_closed_inside_of_the_one_before(restart: Any) -> None:
    shared = Flow.range(5).share(replay=2, restart=restart)

    async def begin() -> None:
        await shared.__aenter__()
        await shared.take(3).to_list()

    async def again() -> list[int]:
        async with shared:
            return await asyncio.wait_for(shared.to_list(), 30.0)

    asyncio.run(begin())
    for _ in range(2):
        assert [0, 1, 2, 3, 4] == asyncio.run(again())


async def test_an_emitter_whose_loop_has_been_closed_loses_its_turn() -> None:
    hub: Hub[str] = Hub(idle="wait", lag=1)
    hub.offer("first")
    elsewhere = Elsewhere()
    kept: list[object] = []

    async def begin() -> None:
        kept.append(asyncio.ensure_future(hub.emit("never")))
        await idle()

    await elsewhere.call(begin())
    await elsewhere.stop()

    async with hub.flow.open() as items:
        assert "first" == await anext(items)
        await asyncio.wait_for(hub.emit("second"), 30.0)
        assert "second" == await anext(items)
