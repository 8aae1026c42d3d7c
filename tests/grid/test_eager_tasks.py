"""Every source and operator on a loop with an eager task factory, which takes the first step of a task where it is made."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._core.tasks import begin_task
from tests.grid.points import HERE
from tests.registry import AnyFlow, Entry, Settings, same
from tests.subscribers import Recorder

if sys.version_info < (3, 12):
    pytest.skip("this Python has no eager task factory", allow_module_level=True)

End = Callable[[AnyFlow], Awaitable[object]]


async def iterated(flow: AnyFlow) -> int:
    return len([item async for item in flow])


async def awaited_by_the_function(flow: AnyFlow) -> int:
    items: list[Any] = []

    async def take(item: Any) -> None:
        items.append(item)

    await flow.for_each(take)
    return len(items)


async def subscribed(flow: AnyFlow) -> int:
    subscriber = Recorder(9)
    flow.subscribe(subscriber)
    assert subscriber.items == []  # a signal never comes inside subscribe()
    await subscriber.over.wait()
    return len(subscriber.items)


ENDS: list[End] = [Flow.count, iterated, awaited_by_the_function, subscribed]


def eager_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    options.pop("eager_start", None)  # uvloop passes it, and not each Python takes it
    return asyncio.eager_task_factory(loop, coroutine, **options)


@pytest.fixture(autouse=True)
async def eager() -> None:
    asyncio.get_running_loop().set_task_factory(eager_task)


@pytest.mark.parametrize("end", ENDS, ids=["awaited", "iterated", "by a function", "subscribed"])
@pytest.mark.parametrize("entry", HERE, ids=str)
async def test_all_elements_come(entry: Entry, end: End) -> None:
    async with asyncio.timeout(60):
        assert 3 == await end(entry.make(3, same, Settings()))


@pytest.mark.parametrize("entry", HERE, ids=str)
async def test_many_subscriptions_end_side_by_side(entry: Entry) -> None:
    flow = entry.make(3, same, Settings())
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        counts = [tasks.create_task(flow.count()) for _ in range(3)]
    assert [3, 3, 3] == [count.result() for count in counts]


async def test_a_task_is_known_before_its_first_step() -> None:
    seen: list[object] = []

    async def look() -> None:
        seen.append(task)

    task = begin_task(look())
    assert seen == []
    await task
    assert [task] == seen


async def test_a_task_that_is_cancelled_before_its_first_step_leaves_no_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def never() -> None:
        raise AssertionError("it was cancelled")

    task = begin_task(never())
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert list(recwarn) == []
