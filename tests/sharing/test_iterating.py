"""Who iterates over a shared flow or a hub takes the elements in its own task, without a region in between."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import Context
from itertools import count, pairwise
from typing import Any

import pytest

from reactive_aio import Flow, Hub, hooks
from reactive_aio._core import budgets
from reactive_aio.errors import SlowSubscriberError, SourceCancelledError
from reactive_aio.operators.sharing.delivery import AT_ONCE
from reactive_aio.testing import run_virtual
from tests.sharing.driven import Counted, reads
from tests.subscribers import Recorder, idle

PREFETCHES = [None, 1, 4, 256]


async def iterated(flow: Flow[Any]) -> list[Any]:
    """Return all elements, one by one."""
    return [item async for item in flow]


@pytest.mark.parametrize("prefetch", PREFETCHES)
@pytest.mark.parametrize("lag", [1, 3, 256])
async def test_each_who_iterates_is_given_all_elements(lag: int, prefetch: int | None) -> None:
    flow = Flow.range(1000).share(lag=lag, start=3, prefetch=prefetch)

    assert [list(range(1000))] * 3 == await asyncio.gather(*[iterated(flow) for _ in range(3)])


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("prefetch", PREFETCHES)
async def test_all_elements_come_however_short_the_turns_are(prefetch: int | None) -> None:
    flow = Flow.range(100).share(lag=7, start=3, prefetch=prefetch)

    assert [list(range(100))] * 3 == await asyncio.gather(*[iterated(flow) for _ in range(3)])


@pytest.mark.parametrize("prefetch", PREFETCHES)
def test_those_who_iterate_may_be_on_other_threads(prefetch: int | None) -> None:
    found: list[list[int]] = []

    async def main() -> None:
        flow = Flow.range(500).share(lag=16, start=3, prefetch=prefetch)
        threads = [threading.Thread(target=lambda: found.append(asyncio.run(iterated(flow)))) for _ in range(2)]
        for thread in threads:
            thread.start()
        found.append(await iterated(flow))
        for thread in threads:
            await asyncio.to_thread(thread.join)

    asyncio.run(main())
    assert [list(range(500))] * 3 == found


async def test_an_element_is_asked_for_when_it_is_awaited() -> None:
    source = Counted(Flow.range(100))
    items = aiter(source.flow().share())
    assert (0, [1]) == (await anext(items), source.asked)
    assert (1, [1, 1]) == (await anext(items), source.asked)
    await items.aclose()


async def test_with_a_prefetch_as_many_are_asked_for_ahead_and_again_when_three_quarters_are_taken() -> None:
    source = Counted(Flow.range(100))
    items = aiter(source.flow().share(prefetch=4))
    await idle()
    assert [4] == source.asked

    assert [0, 1] == [await anext(items) for _ in range(2)]
    await idle()
    assert [4] == source.asked

    assert 2 == await anext(items)
    await idle()
    assert [4, 3] == source.asked
    await items.aclose()


async def test_one_who_waits_is_woken_by_what_is_emitted() -> None:
    hub: Hub[str] = Hub(idle="drop")
    items = aiter(hub.flow)
    waits = asyncio.ensure_future(anext(items))
    await idle()
    assert not waits.done()

    await hub.emit("a")
    assert "a" == await waits
    hub.complete()
    with pytest.raises(StopAsyncIteration):
        await anext(items)
    with pytest.raises(StopAsyncIteration):
        await anext(items)


@pytest.mark.parametrize("prefetch", [None, 4])
async def test_two_tasks_that_await_the_next_element_are_refused(prefetch: int | None) -> None:
    hub: Hub[int] = Hub(idle="drop", prefetch=prefetch)
    items = aiter(hub.flow)
    first = asyncio.ensure_future(anext(items))
    await idle()
    with pytest.raises(RuntimeError, match="two tasks await the next element"):
        await anext(items)

    await hub.emit(1)
    assert 1 == await first
    await items.aclose()


@pytest.mark.parametrize("prefetch", [None, 4])
async def test_a_wait_that_is_cancelled_loses_nothing(prefetch: int | None) -> None:
    hub: Hub[int] = Hub(idle="drop", prefetch=prefetch)
    async with hub.flow.open() as items:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(items), 0.001)
        await hub.emit(1)
        await hub.emit(2)

        assert [1, 2] == [await anext(items) for _ in range(2)]


@pytest.mark.parametrize("opened", [True, False])
async def test_leaving_waits_for_the_cleanup(opened: bool) -> None:
    cleaned = asyncio.Event()

    async def source() -> Any:
        try:
            for item in range(9):
                yield item
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    flow = Flow.from_async_iterable(source).share()
    if opened:
        async with flow.open() as items:
            assert 0 == await anext(items)
    else:
        items = aiter(flow)
        assert 0 == await anext(items)
        await items.aclose()

    assert cleaned.is_set()
    with pytest.raises(StopAsyncIteration):
        await anext(items)


def test_the_end_comes_when_the_flow_has_been_cleaned_up() -> None:
    log: list[str] = []

    async def source() -> Any:
        try:
            yield 1
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            log.append("cleaned up")

    async def read(flow: Flow[Any]) -> None:
        with pytest.raises(SourceCancelledError):
            await iterated(flow)
        log.append("ended")

    async def main() -> None:
        async with Flow.from_async_iterable(source()).share() as flow:
            reading = asyncio.ensure_future(read(flow))
            await asyncio.sleep(1)
        await reading

    run_virtual(main())
    assert ["cleaned up", "ended"] == log


async def test_a_task_that_waits_hears_of_the_end_when_another_closes_the_iterator() -> None:
    hub: Hub[int] = Hub(idle="drop")
    items = aiter(hub.flow)
    waits = asyncio.ensure_future(anext(items, None))
    await idle()
    await items.aclose()

    assert (None, 0) == (await waits, hub.subscribers)


@pytest.mark.parametrize("prefetch", [None, 8])
async def test_a_task_that_waits_for_its_turn_hears_of_the_end_when_another_closes_the_iterator(
    prefetch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub: Hub[int] = Hub(idle="wait", prefetch=prefetch)
    items, seen = aiter(hub.flow), list[int]()
    for n in range(8):
        hub.offer(n)

    async def read() -> None:
        async for n in items:
            seen.append(n)

    monkeypatch.setattr(budgets, "TURN", 0.0)  # each element needs a turn of its own
    reading = asyncio.create_task(read())
    while len(seen) < 3:
        await asyncio.sleep(0)
    await items.aclose()
    await reading
    assert list(range(len(seen))) == seen


async def test_the_failure_is_behind_the_elements_and_is_raised_once() -> None:
    items = aiter(Flow.of(1, 2).concat(Flow.error(ValueError("of the source"))).share(prefetch=4))
    assert [1, 2] == [await anext(items) for _ in range(2)]
    with pytest.raises(ValueError, match="of the source"):
        await anext(items)
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_a_stop_of_an_iteration_that_is_a_failure_is_no_end() -> None:
    with pytest.raises(RuntimeError, match="a function or source of the flow raised StopAsyncIteration"):
        await iterated(Flow.error(StopAsyncIteration()).share())


async def test_what_was_read_ahead_and_a_failure_go_to_the_hooks_of_one_who_leaves() -> None:
    discarded: list[object] = []
    dropped: list[BaseException] = []
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        flow = Flow.of(1, 2, 3).concat(Flow.error(ValueError())).share(prefetch=8)
        items = aiter(flow)
        assert 1 == await anext(items)
        await idle()
        await items.aclose()

    assert [2, 3] == discarded
    assert [ValueError] == list(map(type, dropped))


async def test_another_task_may_close_an_iterator_and_what_is_lost_goes_to_the_hooks_of_the_subscriber() -> None:
    discarded: list[object] = []
    dropped: list[BaseException] = []
    foreign: list[object] = []
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        items = aiter(Flow.of(1, 2, 3).concat(Flow.error(ValueError())).share(prefetch=8))
    assert 1 == await anext(items)
    await idle()
    with hooks.using(on_discard=foreign.append, on_error_dropped=foreign.append):
        await asyncio.create_task(items.aclose())

    assert [2, 3] == discarded
    assert [ValueError] == list(map(type, dropped))
    assert not foreign


async def test_an_iterator_is_left_on_whatever_thread_it_is_collected() -> None:
    discarded: list[object] = []
    threads: list[int] = []

    def note(item: object) -> None:
        discarded.append(item)
        threads.append(threading.get_ident())

    with hooks.using(on_discard=note):
        flow = Flow.range(3).share(prefetch=8)
        held = [aiter(flow)]
    assert 0 == await anext(held[0])
    await asyncio.to_thread(held.clear)
    await idle()

    assert ([1, 2], {threading.get_ident()}, 0) == (discarded, set(threads), flow.subscribers)


async def test_the_loop_holds_what_a_task_waits_for_that_nobody_else_holds() -> None:
    class Item:
        pass

    hub: Hub[Item] = Hub(idle="drop", replay=1)
    await hub.emit(Item())
    seen = weakref.ref(hub._emission.log.head.items[0])
    before = asyncio.all_tasks()
    asyncio.ensure_future(iterated(hub.flow))  # noqa: RUF006 - that is the point
    await idle()
    del hub
    gc.collect()
    assert seen() is not None

    (waits,) = asyncio.all_tasks() - before
    waits.cancel()
    await asyncio.wait([waits])
    del waits, before
    await idle()
    gc.collect()
    assert seen() is None


def test_one_who_is_too_slow_fails_by_the_name_of_its_flow_and_the_others_go_on() -> None:
    async def main() -> None:
        shared = Flow.range(100).share(lag=5, evict_after=3.0)
        fast = reads(shared, 1_000)
        async with shared.open() as items:
            assert 0 == await anext(items)
            await asyncio.sleep(3.5)
            with pytest.raises(SlowSubscriberError, match=r"behind: share\(lag=5, evict_after=3.0\), chained at "):
                await anext(items)
            await idle()
            assert 100 == len(fast.items)

    run_virtual(main())


@pytest.mark.parametrize("prefetch", [None, 256])
async def test_one_who_never_waits_lets_the_event_loop_have_a_turn(
    prefetch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1e-4  # so the time of a turn is up after ten looks
        return now

    monkeypatch.setattr(budgets, "clock", clock)
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    hub: Hub[int] = Hub(idle="wait", lag=1000, prefetch=prefetch)
    for item in range(200):
        await hub.emit(item)
    hub.complete()
    turn()

    assert list(range(200)) == await iterated(hub.flow)
    assert turns > 15


async def woken_in_turns(readers: int, tick: float, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many tasks went on in each turn of the loop, for one element, if each look at the clock takes some time."""
    hub: Hub[int] = Hub(idle="drop")
    woken: list[int] = []
    turn = 0

    def note() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(note)

    async def one() -> None:
        await anext(aiter(hub.flow))
        woken.append(turn)

    tasks = [asyncio.ensure_future(one()) for _ in range(readers)]
    await idle()
    note()
    monkeypatch.setattr(budgets, "clock", count(step=tick).__next__)
    await hub.emit(1)
    await asyncio.gather(*tasks)
    return [woken.count(each) for each in sorted(set(woken))]


async def test_a_delivery_to_many_wakes_those_together_for_whom_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [100] == await woken_in_turns(100, 0.0, monkeypatch)


async def test_many_tasks_are_not_woken_in_a_single_iteration_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    woken = await woken_in_turns(100, budgets.TURN / 20, monkeypatch)

    assert max(woken) <= 20
    assert 100 == sum(woken)


async def test_the_end_of_many_tasks_is_no_single_iteration_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    hub: Hub[int] = Hub(idle="drop")
    reading = [asyncio.create_task(iterated(hub.flow)) for _ in range(4 * AT_ONCE)]
    await idle()
    monkeypatch.setattr(budgets, "clock", count(step=budgets.TURN / 20).__next__)
    hub.complete()

    ended: list[int] = []
    while not all(task.done() for task in reading):
        await asyncio.sleep(0)
        ended.append(sum(task.done() for task in reading))
    assert max(after - before for before, after in pairwise([0, *ended])) <= AT_ONCE


def test_a_task_that_ends_the_loop_keeps_no_other_from_its_element() -> None:
    async def one(flow: Flow[int], end: type[BaseException] | None) -> int:
        item = await anext(aiter(flow))
        if end is not None:
            raise end
        return item

    async def emitted(item: int) -> None:
        await hub.emit(item)
        await idle()

    with asyncio.Runner() as runner:
        hub: Hub[int] = Hub(idle="drop")
        loop = runner.get_loop()
        ends = (None, SystemExit, None, KeyboardInterrupt, None)
        tasks = [loop.create_task(one(hub.flow, end)) for end in ends]
        runner.run(idle())
        with pytest.raises(SystemExit):
            runner.run(emitted(1))
        with pytest.raises(KeyboardInterrupt):
            runner.run(idle())
        runner.run(idle())

        assert [1, 1, 1] == [task.result() for task, end in zip(tasks, ends, strict=True) if end is None]
        assert [SystemExit, KeyboardInterrupt] == [type(task.exception()) for task in tasks[1::2]]


async def test_a_snapshot_shows_how_far_it_has_come() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=8, prefetch=3)
    for item in range(5):
        await hub.emit(item)
    async with hub.flow.open() as items:
        assert 0 == await anext(items)
        (region,) = items.snapshot().regions
        boundary, kept = region.boundary, region.overflow
        assert boundary is not None
        assert kept is not None
        assert (1, 3, 3, 2, 3) == (
            region.delivered, boundary.requested, boundary.delivered, boundary.buffered, boundary.prefetch,
        )  # fmt: skip
        assert (8, 2, 0) == (kept.size, kept.buffered, kept.dropped)


def test_what_is_chained_behind_is_a_flow_as_any() -> None:
    hub: Hub[int] = Hub(idle="drop")

    assert [Flow, Flow] == [type(hub.flow.map(str)), type(Flow.range(3).share().map(str))]


def shared(prefetch: int | None) -> tuple[Flow[int], Any]:
    flow = Flow.interval(1).map(int).share(lag=4, prefetch=prefetch)
    return flow, lambda: flow.snapshot().subscribers


def of_a_hub(prefetch: int | None) -> tuple[Flow[int], Any]:
    hub: Hub[int] = Hub(idle="drop", lag=4, prefetch=prefetch)
    return hub.flow, lambda: hub.snapshot().subscribers


async def is_cancelled(items: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    task = asyncio.create_task(items())
    await idle()
    task.cancel()
    return task


async def runs_out_of_time(items: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    async def in_time() -> None:
        async with asyncio.timeout(0):
            await items()

    return asyncio.create_task(in_time())


@pytest.mark.parametrize("ends", [is_cancelled, runs_out_of_time])
@pytest.mark.parametrize("prefetch", [None, 4])
@pytest.mark.parametrize("source", [shared, of_a_hub])
async def test_a_task_that_is_kept_when_it_has_failed_does_not_keep_its_reader(
    source: Any, prefetch: int | None, ends: Any
) -> None:
    flow, subscribers = source(prefetch)

    async def items() -> None:
        async for _ in flow:
            pass

    gc.disable()
    try:
        task = await ends(items)
        await asyncio.wait([task])
        await idle()

        assert () == subscribers()
        assert task.cancelled() or isinstance(task.exception(), TimeoutError)
    finally:
        gc.enable()


async def test_a_future_that_no_task_awaits_alone_is_resumed_by_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", lambda: 0.0)
    loop = asyncio.get_running_loop()
    seen: list[str] = []

    async def awaits(waiter: asyncio.Future[float]) -> None:
        await waiter
        seen.append("awaited")

    def come() -> None:
        budgets.resume(deque(waiters), 1.0, math.inf, Context())
        seen.append("come")

    waiters = [loop.create_future() for _ in range(3)]
    tasks = [asyncio.create_task(awaits(waiter)) for waiter in (*waiters[1:], waiters[2])]
    await idle()
    loop.call_soon(come)
    await asyncio.gather(*tasks)

    assert ["awaited", "come", "awaited", "awaited"] == seen
    assert [1.0] * 3 == [waiter.result() for waiter in waiters]


@pytest.mark.parametrize(
    "around",
    [
        lambda flow: flow,
        lambda flow: flow.take_until_other(Flow.never()),
        lambda flow: Flow.empty().concat(flow.map(lambda n: n)),
    ],
    ids=["a region", "a combinator", "a combinator behind a stage"],
)
async def test_a_flow_of_a_generator_that_waits_for_what_others_share_goes_on(around: Callable[[Any], Any]) -> None:
    # Such a flow goes on behind the future of the generator without a step of its task, in the context of the turn.
    async def suspending() -> AsyncIterator[int]:
        for n in range(5):
            await asyncio.sleep(0)
            yield n

    shared = Flow.from_async_iterable(suspending).share()

    async def read() -> AsyncIterator[int]:
        async for n in shared:
            yield n

    recorder = Recorder()
    around(Flow.from_async_iterable(read)).subscribe(recorder)
    for _ in range(6):  # few at a time, else the task takes the step
        recorder.request(1)
        await idle()

    assert list(range(5)) == recorder.items
    assert "complete" == recorder.kinds[-1]
