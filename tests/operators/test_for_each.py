"""for_each with a coroutine function for several elements at a time: what it shares with map_async, and what it does not."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter

import pytest

from reactive_aio import Flow, hooks
from reactive_aio._runtime.rows import for_each_row
from reactive_aio.testing import run_virtual
from tests.grid.test_leaks import nothing_of_ours_left
from tests.subscribers import ByHand, idle

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def test_a_call_begins_when_another_one_has_ended() -> None:
    begun: list[tuple[int, float]] = []

    async def work(n: int) -> int:
        begun.append((n, asyncio.get_running_loop().time()))
        await asyncio.sleep(n + 1)
        return n

    run_virtual(Flow.range(5).for_each(work, max_concurrency=2))
    assert [(0, 0.0), (1, 0.0), (2, 1.0), (3, 2.0), (4, 4.0)] == begun


async def test_one_element_is_asked_for_for_each_call() -> None:
    publisher, ending = ByHand(), asyncio.Event()

    async def work(_: int) -> None:
        await ending.wait()

    task = asyncio.ensure_future(Flow.from_publisher(publisher).for_each(work, max_concurrency=3))
    await idle()
    publisher.next(1, 2, 3)
    await idle()
    assert [3] == publisher.requests
    ending.set()
    await idle()
    assert 6 == sum(publisher.requests)
    publisher.complete()
    await task


async def test_it_returns_when_the_last_call_has_ended() -> None:
    ended: list[int] = []

    async def work(n: int) -> None:
        await idle(n)
        ended.append(n)

    assert await Flow.range(9).for_each(work, max_concurrency=4) is None
    assert [*range(9)] == sorted(ended)


async def test_a_failure_names_the_element_and_the_others_go_to_the_hook() -> None:
    dropped: list[BaseException] = []

    async def work(n: int) -> None:
        try:
            await asyncio.sleep(0 if n == 2 else 1000)
        except asyncio.CancelledError:
            raise KeyError(n) from None
        raise ZeroDivisionError

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(ZeroDivisionError) as caught:
        await Flow.range(9).for_each(work, max_concurrency=3)

    assert "in for_each(work, 3), chained at" in caught.value.__notes__[0]
    assert caught.value.__notes__[0].endswith("element #2")
    assert Counter(["KeyError(0)", "KeyError(1)"]) == Counter(map(repr, dropped))


async def test_a_failure_of_the_flow_comes_when_the_calls_have_ended() -> None:
    ended: list[int] = []

    async def work(n: int) -> None:
        await idle()
        ended.append(n)

    with pytest.raises(ZeroDivisionError):
        await Flow.of(2, 1, 0).map(lambda n: 1 // n).for_each(work, max_concurrency=4)
    assert [0, 1] == sorted(ended)


async def test_cancelling_it_cancels_the_calls_and_waits_for_them() -> None:
    cleaned: list[int] = []

    async def work(n: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await idle()
            cleaned.append(n)

    task = asyncio.ensure_future(Flow.range(9).for_each(work, max_concurrency=3))
    await idle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [0, 1, 2] == cleaned


async def test_calls_see_the_variables_of_whoever_awaits() -> None:
    seen: list[str] = []

    async def work(_: int) -> None:
        seen.append(VARIABLE.get())
        VARIABLE.set("theirs")
        await asyncio.sleep(0)

    VARIABLE.set("ours")
    await Flow.range(6).for_each(work, max_concurrency=2)
    assert ["ours"] * 6 == seen


@pytest.mark.parametrize("rows", [False, True], ids=["elements", "rows"])
@pytest.mark.parametrize("ending", ["cancelled before an element", "cancelled in a call", "failed"])
async def test_a_failure_of_one_call_at_a_time_leaves_nothing_to_the_garbage_collector(ending: str, rows: bool) -> None:
    async def work(_: object) -> None:
        if ending == "failed":
            raise ZeroDivisionError
        await asyncio.Event().wait()

    async def end() -> None:
        flow = Flow.never() if ending == "cancelled before an element" else Flow.of("one")
        task = asyncio.ensure_future(for_each_row(flow, work, len, 9, str) if rows else flow.for_each(work))
        await idle()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or isinstance(task.exception(), ZeroDivisionError)

    await end()
    with nothing_of_ours_left(unless=False):
        await end()
        await idle()
