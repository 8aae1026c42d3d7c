"""flat_map: a flow for each element, and all of them merged."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio._core import budgets
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def test_elements_come_when_their_flows_emit_them() -> None:
    async def main() -> list[tuple[float, int]]:
        loop, came = asyncio.get_running_loop(), list[tuple[float, int]]()
        started = loop.time()
        flow = Flow.of(3, 2, 5).flat_map(lambda every: Flow.interval(every).take(2).map(lambda _: every))
        await flow.for_each(lambda item: came.append((loop.time() - started, item)))
        return came

    assert [(2, 2), (3, 3), (4, 2), (5, 5), (6, 3), (10, 5)] == run_virtual(main())


@pytest.mark.parametrize("max_concurrency", [1, 2, 7, 256])
@pytest.mark.parametrize("prefetch", [1, 3, 32])
async def test_every_element_of_every_flow_comes_once(max_concurrency: int, prefetch: int) -> None:
    flow = Flow.range(60).flat_map(
        lambda n: Flow.range(100 * n, 100 * n + n % 7), max_concurrency=max_concurrency, prefetch=prefetch
    )

    assert [100 * n + k for n in range(60) for k in range(n % 7)] == sorted(await flow.to_list())


async def test_the_event_loop_has_a_turn_when_sixteen_flows_have_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", lambda: 1.0)  # or it may have one sooner, since the time is up
    begun: list[int] = []
    all_have_begun = asyncio.Event()

    async def inner(n: int) -> AsyncGenerator[int]:
        begun.append(n)
        await all_have_begun.wait()
        yield n

    reading = asyncio.ensure_future(Flow.range(40).flat_map(lambda n: Flow.from_async_iterable(inner(n))).count())
    turns = [0]
    while len(begun) < 40:
        await asyncio.sleep(0)
        turns.append(len(begun))
    all_have_begun.set()

    assert [16, 16, 8] == [after - before for before, after in pairwise(turns) if after > before]
    assert 40 == await reading


@pytest.mark.parametrize("max_concurrency", [1, 2, 5])
async def test_no_more_flows_are_read_at_the_same_time_than_concurrency_says(max_concurrency: int) -> None:
    inner, subscriber = Sessions(), Recorder(UNBOUNDED)
    flow = Flow.range(12).flat_map(lambda _: Flow.from_publisher(inner), max_concurrency=max_concurrency)
    flow.subscribe(subscriber)
    for ended in range(12):
        await idle()
        assert min(12, ended + max_concurrency) == len(inner.all)
        inner.all[ended].complete()
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds


async def test_the_outer_flow_is_asked_for_one_more_when_a_flow_has_ended() -> None:
    outer, inner = Sessions(), Sessions()
    Flow.from_publisher(outer).flat_map(lambda _: Flow.from_publisher(inner), max_concurrency=3).subscribe(Recorder())
    await idle()
    outer.last.next(1, 2)
    await idle()
    assert [3] == outer.last.requests

    inner.all[0].complete()
    await idle()
    inner.all[1].next("kept")
    inner.all[1].complete()
    await idle()
    assert [3, 1] == outer.last.requests


@pytest.mark.usefixtures("still")
async def test_each_flow_is_asked_for_the_prefetch_and_no_more_waits() -> None:
    inner, subscriber = Sessions(), Recorder()
    Flow.of(1, 2).flat_map(lambda _: Flow.from_publisher(inner), prefetch=4).subscribe(subscriber)
    await idle()
    for session in inner.all:
        session.next(1, 2, 3, 4)
    for _ in range(2):
        subscriber.request(2)  # two of the first, then two of the second
        await idle()
    assert [[4], [4]] == inner.requests

    subscriber.request(1)
    await idle()
    assert [[4, 3], [4]] == inner.requests


async def test_flows_that_are_ready_take_turns() -> None:
    subscriber = Recorder()
    Flow.of(*"abc").flat_map(lambda name: Flow.of(*[name] * 10)).subscribe(subscriber)
    await idle()
    for _ in range(30):
        subscriber.request(1)
        await idle()

    assert ["a", "b", "c"] * 10 == subscriber.items


async def test_the_failure_of_the_outer_flow_ends_the_whole_and_the_inner_ones_are_cancelled() -> None:
    outer, inner, subscriber, discarded = Sessions(), Sessions(), Recorder(), list[object]()
    with hooks.using(on_discard=discarded.append):
        Flow.from_publisher(outer).flat_map(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1, 2)
    await idle()
    inner.all[0].next("kept")
    outer.last.error(OSError("down"))
    await idle()

    assert "down" == str(subscriber.error)
    assert [1, 1] == [session.cancels for session in inner.all]
    assert ["kept"] == discarded


async def test_elements_that_have_not_been_mapped_are_told_to_the_hook_when_the_function_fails() -> None:
    discarded, subscriber = list[object](), Recorder(1)

    def fail(_: int) -> Flow[Any]:
        raise ValueError

    with hooks.using(on_discard=discarded.append):
        Flow.of(1, 2, 3).flat_map(fail).subscribe(subscriber)
    await idle()

    assert isinstance(subscriber.error, ValueError)
    assert [2, 3] == discarded


async def test_given_elements_of_a_flow_that_is_not_subscribed_to_are_not_told_to_the_hook() -> None:
    discarded, subscriber = list[object](), Recorder(32)

    def made(n: int) -> Flow[int]:
        return Flow.of(n) if n < 30 else Flow.of(*range(100, 110))

    with hooks.using(on_discard=discarded.append):
        Flow.range(40).flat_map(made, max_concurrency=64).take_while(lambda n: n != 29).subscribe(subscriber)
    await idle()

    assert [*range(29)] == subscriber.items
    assert [*range(31, 40)] == discarded


async def test_the_function_is_called_once_for_each_element_in_order() -> None:
    called: list[int] = []
    await Flow.range(1000).flat_map(lambda n: called.append(n) or Flow.of(n)).drain()

    assert [*range(1000)] == called


async def test_a_flow_that_never_ends_does_not_starve_the_others() -> None:
    def inner(n: int) -> Flow[int]:
        return Flow.of(n).repeat() if n == 0 else Flow.of(*[n] * 50)

    counted = Counter(await Flow.of(0, 1, 2).flat_map(inner).take(400).to_list())

    assert (50, 50) == (counted[1], counted[2])


async def test_what_is_ready_does_not_wait_for_all_elements_to_be_mapped() -> None:
    effects: list[str] = []
    flow = Flow.range(100).flat_map(lambda n: effects.append("mapped") or Flow.of(n), max_concurrency=100)
    await flow.for_each(lambda _: effects.append("emitted"))

    assert effects.index("emitted") < 5


async def test_after_cancel_nothing_is_mapped() -> None:
    called: list[int] = []
    flow = Flow.range(10**6).flat_map(lambda n: called.append(n) or Flow.of(n), max_concurrency=2)

    assert [0, 1, 2] == await flow.take(3).to_list()
    assert len(called) < 100
