"""switch_map and exhaust_map: the flow of the latest element, and the flow of the first until it has ended."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def ticks(times: list[float]) -> Flow[int]:
    """Emit the numbers of the times, at the times."""

    async def produce(emit: Any) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        for number, at in enumerate(times):
            await asyncio.sleep(started + at - loop.time())
            await emit(number)

    return Flow.create(produce)


def every(seconds: float, times: int) -> Any:
    return lambda n: Flow.interval(seconds).take(times).map(lambda k: (n, k))


# Times such that no two things happen at once.
OUTER = [0.1, 5.2, 7.1, 30.4, 31.5, 60.7]


def test_switched_elements_come_until_the_next_is_there() -> None:
    expected = [
        (n, k)
        for n, (begun, left) in enumerate(zip(OUTER, [*OUTER[1:], float("inf")], strict=True))
        for k in range(4)
        if begun + 2 * (k + 1) < left
    ]

    assert expected == run_virtual(ticks(OUTER).switch_map(every(2, 4)).to_list())


def test_exhausting_elements_that_come_while_a_flow_is_read_are_left_out() -> None:
    expected, free, left_out, discarded = list[tuple[int, int]](), 0.0, list[object](), list[object]()
    for n, begun in enumerate(OUTER):
        if begun >= free:
            expected += [(n, k) for k in range(4)]
            free = begun + 8
        else:
            left_out.append(n)

    with hooks.using(on_discard=discarded.append):
        assert expected == run_virtual(ticks(OUTER).exhaust_map(every(2, 4)).to_list())
    assert left_out == discarded


async def test_what_is_left_out_is_counted() -> None:
    outer, inner = Sessions(), Sessions()
    flow = Flow.from_publisher(outer).exhaust_map(lambda _: Flow.from_publisher(inner))
    async with flow.open() as items:
        waiting = asyncio.ensure_future(anext(items))
        await idle()
        outer.last.next(1, 2, 3)
        await idle()
        inner.last.next("a")
        assert "a" == await waiting
        assert 2 == items.snapshot().dropped


@pytest.mark.parametrize("name", ["switch_map", "exhaust_map"])
async def test_the_outer_flow_is_asked_for_all_it_has_whatever_the_demand(name: str) -> None:
    outer = Sessions()
    getattr(Flow.from_publisher(outer), name)(lambda _: Flow.never()).subscribe(Recorder())
    await idle()
    for n in range(100):
        outer.last.next(n)
        await idle()

    assert [32, *[24] * 4] == outer.last.requests


async def test_the_flow_before_is_cancelled_and_the_next_is_asked_for_what_it_left() -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder(5)
    Flow.from_publisher(outer).switch_map(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    await idle()
    inner.last.next("a", "b")
    await idle()
    outer.last.next(2)
    await idle()

    assert [[5], [3]] == inner.requests
    assert [1, 0] == [session.cancels for session in inner.all]


async def test_what_still_comes_of_a_flow_that_was_left_goes_to_the_hooks() -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder(5)
    discarded, dropped = list[object](), list[BaseException]()
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        Flow.from_publisher(outer).switch_map(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    await idle()
    outer.last.next(2)
    inner.all[0].next("late")
    await idle()
    inner.all[0].next("later")
    inner.all[0].error(OSError("late"))
    inner.all[1].next("b")
    await idle()

    assert ["b"] == [item for item in subscriber.items if item != "late"]
    assert {"late", "later"} == {*discarded, *[item for item in subscriber.items if item == "late"]}
    assert ["late"] == [str(error) for error in dropped]


async def test_no_element_is_lost_whenever_the_switch_comes() -> None:
    chance = random.Random(7)
    for _ in range(100):
        made, discarded, subscriber = list[Any](), list[object](), Recorder()
        outer = Sessions()

        def inner(n: int, made: list[Any] = made) -> Flow[Any]:
            return Flow.range(1000).map(lambda k: made.append((n, k)) or (n, k))

        with hooks.using(on_discard=discarded.append):
            Flow.from_publisher(outer).switch_map(inner).subscribe(subscriber)
        await idle()
        for n in range(5):
            outer.last.next(n)
            for _ in range(chance.randrange(4)):
                subscriber.request(chance.randrange(1, 9))
                await idle(chance.randrange(4))
        subscriber.cancel()
        await idle()

        assert sorted(made) == sorted([*subscriber.items, *(item for item in discarded if isinstance(item, tuple))])


@pytest.mark.parametrize("name", ["switch_map", "exhaust_map"])
async def test_the_whole_completes_when_both_have_ended(name: str) -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder(UNBOUNDED)
    getattr(Flow.from_publisher(outer), name)(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    await idle()
    outer.last.complete()
    await idle()
    assert ["subscribe"] == subscriber.kinds

    inner.last.complete()
    await idle()
    assert ["subscribe", "complete"] == subscriber.kinds


@pytest.mark.parametrize("name", ["switch_map", "exhaust_map"])
async def test_the_failure_of_the_outer_flow_ends_the_whole_at_once(name: str) -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder()
    getattr(Flow.from_publisher(outer), name)(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    await idle()
    outer.last.error(OSError("down"))
    await idle()

    assert "down" == str(subscriber.error)
    assert 1 == inner.last.cancels


async def test_an_element_that_comes_while_nothing_is_wanted_is_mapped_all_the_same() -> None:
    outer, called = Sessions(), list[int]()
    Flow.from_publisher(outer).switch_map(lambda n: called.append(n) or Flow.of(n)).subscribe(Recorder())
    await idle()
    outer.last.next(1, 2, 3)
    await idle()

    assert [1, 2, 3] == called


async def test_many_elements_at_once_give_the_others_their_turns() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    flow = Flow.range(2000).switch_map(lambda n: Flow.never() if n < 1999 else Flow.of(n))
    assert [1999] == await flow.to_list()
    task.cancel()

    assert turns > 20
