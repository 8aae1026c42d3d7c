"""take_until_other: a flow up to the first signal of another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.errors import SourceConsumedError
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def test_elements_come_until_the_other_emits() -> None:
    assert [0, 1, 2] == run_virtual(Flow.interval(1).take_until_other(Flow.interval(3.5)).to_list())


def test_elements_come_until_the_other_completes() -> None:
    over = Flow.interval(2.5).take(1).ignore_elements()

    assert [0, 1] == run_virtual(Flow.interval(1).take_until_other(over).to_list())


async def test_the_end_of_the_flow_itself_comes_first_where_the_other_says_nothing() -> None:
    assert [0, 1, 2] == await Flow.range(3).take_until_other(Flow.never()).to_list()


async def test_the_end_needs_no_demand_and_both_flows_are_cancelled() -> None:
    flow, other, subscriber = Sessions(), Sessions(), Recorder()
    Flow.from_publisher(flow).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    other.last.next("stop")
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds
    assert (1, 1) == (flow.last.cancels, other.last.cancels)


async def test_the_other_is_cancelled_when_the_flow_ends() -> None:
    other = Sessions()

    assert [1] == await Flow.of(1).take_until_other(Flow.from_publisher(other)).to_list()
    assert 1 == other.last.cancels


async def test_demand_passes_to_the_flow_and_the_other_is_asked_for_one() -> None:
    flow, other, subscriber = Sessions(), Sessions(), Recorder(2)
    Flow.from_publisher(flow).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    subscriber.request(3)
    subscriber.request(UNBOUNDED)
    await idle()

    assert 2 == flow.requests[0][0]
    assert UNBOUNDED == flow.requests[0][-1]
    assert [[1]] == other.requests


async def test_a_flow_whose_other_is_over_already_is_not_subscribed_to() -> None:
    flow = Sessions()

    assert [] == await Flow.from_publisher(flow).take_until_other(Flow.empty()).to_list()
    assert [] == flow.all


async def test_the_other_fails_the_flow_behind_the_elements_before() -> None:
    other, subscriber = Sessions(), Recorder(9)
    Flow.of(1).concat(Flow.never()).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    other.last.error(OSError("down"))
    await idle()

    assert [1] == subscriber.items
    assert "down" == str(subscriber.error)


async def test_what_comes_too_late_is_told_to_the_hooks_as_is_the_element_that_ends_it() -> None:
    flow, other, subscriber = Sessions(), Sessions(), Recorder(9)
    discarded: list[Any] = []
    dropped: list[Any] = []
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        Flow.from_publisher(flow).take_until_other(Flow.from_publisher(other)).subscribe(subscriber)
    await idle()
    other.last.next("stop")
    flow.last.next("late")
    flow.last.error(OSError("later"))
    await idle()

    assert [] == subscriber.items
    assert ["stop", "late"] == discarded
    assert ["later"] == [str(error) for error in dropped]


def test_an_event_that_is_set_ends_it() -> None:
    async def main() -> list[int]:
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(3.5, event.set)
        return await Flow.interval(1).take_until_other(event).to_list()

    assert [0, 1, 2] == run_virtual(main())


async def test_where_the_event_is_set_the_flow_is_not_begun() -> None:
    flow, event = Sessions(), asyncio.Event()
    until = Flow.from_publisher(flow).take_until_other(event)
    event.set()

    assert [] == await until.to_list()
    assert [] == flow.all


async def test_an_event_serves_each_subscription_and_tells_no_hook() -> None:
    event, discarded = asyncio.Event(), list[Any]()
    flow = Flow.never().take_until_other(event)
    with hooks.using(on_discard=discarded.append):
        running = [asyncio.ensure_future(flow.to_list()) for _ in range(3)]
        await idle()
        assert not any(task.done() for task in running)
        event.set()
        assert [[], [], []] == await asyncio.gather(*running)

    assert [] == discarded


def test_a_function_that_is_awaited_ends_it_and_is_called_for_each_subscription() -> None:
    called: list[int] = []

    async def later() -> object:
        called.append(1)
        await asyncio.sleep(3.5)
        return called

    flow = Flow.interval(1).take_until_other(later)

    assert [0, 1, 2] == run_virtual(flow.to_list())
    assert [0, 1, 2] == run_virtual(flow.to_list())
    assert [1, 1] == called


async def test_a_function_that_is_awaited_still_is_cancelled_with_the_end() -> None:
    cancelled: list[bool] = []

    async def later() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cancelled.append(True)

    flow = Flow.from_async_iterable(_numbers)

    assert [1] == await flow.take_until_other(later).to_list()
    assert [True] == cancelled


async def _numbers() -> AsyncIterator[int]:
    await idle()
    yield 1


async def _slowly(n: int) -> int:
    await asyncio.sleep(1.2)
    return n


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (lambda ticks, event: ticks.take_until_other(event).map_async(_slowly, max_concurrency=8), [0, 1, 2]),
        (lambda ticks, event: ticks.map_async(_slowly, max_concurrency=8).take_until_other(event), [0, 1]),
    ],
    ids=["behind the source", "at the end"],
)
def test_right_behind_its_source_it_lets_the_others_finish(
    until: Callable[[Flow[int], asyncio.Event], Flow[int]], expected: list[int]
) -> None:
    async def main() -> list[int]:
        event, finished = asyncio.Event(), list[int]()
        asyncio.get_running_loop().call_later(3.5, event.set)
        await until(Flow.interval(1), event).for_each(finished.append)
        return finished

    assert expected == run_virtual(main())


async def test_an_exception_of_the_function_ends_it() -> None:
    async def fail() -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await Flow.never().take_until_other(fail).to_list()


def test_what_ends_nothing_is_refused_when_the_flow_is_built() -> None:
    with pytest.raises(TypeError, match=r"takes a flow, an asyncio.Event, a function or an awaitable, not int$"):
        Flow.of(1).take_until_other(2)


@pytest.mark.parametrize("kind", ["coroutine", "task", "future"])
def test_an_awaitable_ends_one_subscription_and_a_task_outlives_it(kind: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        other: Any = loop.create_future() if kind == "future" else asyncio.sleep(10)
        if kind == "task":
            other = asyncio.ensure_future(other)
        elif kind == "future":
            loop.call_later(10, other.set_result, None)
        flow = Flow.of(1).concat(Flow.never()).take_until_other(other)

        assert [1] == await flow.to_list()
        assert 10 == loop.time()
        with pytest.raises(SourceConsumedError, match="lambda"):
            await flow.to_list()

        left = asyncio.ensure_future(asyncio.sleep(10))
        assert [1] == await Flow.of(1).take_until_other(left).to_list()
        assert not left.done()
        await left

    run_virtual(main())


async def test_the_failure_of_an_awaitable_ends_it() -> None:
    async def fail() -> None:
        raise OSError("gone")

    for other in (fail(), asyncio.ensure_future(fail())):
        with pytest.raises(OSError, match="gone"):
            await Flow.never().take_until_other(other).to_list()
