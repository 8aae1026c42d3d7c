"""The cost of a source, a group, an inner flow or a subscriber does not depend on how many there are.

Lines are counted and not time, under a clock that stands still. Loops over all of them, for each of them, show in the lines.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from types import FrameType
from typing import Any

import pytest

from reactive_aio import Flow, Hub
from reactive_aio._core import budgets
from tests.subscribers import idle

FEW = 80
"""The smallest number of them. The others are twice and three times as many."""

Work = Callable[[int], Awaitable[object]]


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", itertools.repeat(0.0).__next__)


async def suspended(n: int) -> AsyncIterator[int]:
    for item in range(n):
        await asyncio.sleep(0)
        yield item


def awaited(n: int = 3) -> Flow[int]:
    return Flow.from_async_iterable(lambda: suspended(n))


def sources(n: int) -> list[Flow[int]]:
    return [awaited() for _ in range(n)]


def lists(n: int) -> list[Flow[int]]:
    return [Flow.range(3).map(abs) for _ in range(n)]


async def groups_in_tasks(n: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        async for group in Flow.range(2 * n).group_by(lambda item: item % n, max_groups=n):
            tasks.create_task(group.count())


async def groups_that_fail(n: int) -> None:
    def key(item: int) -> int:
        if item == 2 * n:
            raise OSError("down")
        return item % n

    groups = Flow.range(2 * n + 1).group_by(key, max_groups=n)
    await groups.flat_map(lambda group: group.on_error_resume_next(Flow.of(0)), max_concurrency=n).materialize().count()


async def subscribers(n: int) -> None:
    shared = awaited().share(start=n)
    await asyncio.gather(*[shared.count() for _ in range(n)])


async def iterators(n: int) -> None:
    shared = awaited().share(start=n)

    async def read() -> None:
        async for _ in shared:
            pass

    await asyncio.gather(*[read() for _ in range(n)])


async def readers_of_a_hub(n: int) -> None:
    hub = Hub[int](idle="drop")
    reads = [asyncio.ensure_future(hub.flow.take(2).count()) for _ in range(n)]
    await idle()
    for item in range(2):
        await hub.emit(item)
    await asyncio.gather(*reads)


async def attempts(n: int) -> None:
    left = iter(range(n))

    def fail(item: int) -> int:
        for _ in left:
            raise OSError("down")
        return item

    await Flow.of(1).map(fail).retry_if(lambda _error, _attempt: True).count()


WORKS: dict[str, Work] = {
    "merge": lambda n: Flow.merge(*sources(n)).count(),
    "merge of lists": lambda n: Flow.merge(*lists(n)).count(),
    "zip": lambda n: Flow.zip(*sources(n)).count(),
    "zip of lists": lambda n: Flow.zip(*lists(n)).count(),
    "concat": lambda n: Flow.concat(*sources(n)).count(),
    "race": lambda n: Flow.race(*sources(n)).count(),
    "flat_map": lambda n: Flow.range(n).flat_map(lambda _: awaited(), max_concurrency=n).count(),
    "concat_map": lambda n: Flow.range(n).concat_map(lambda _: awaited()).count(),
    "concat_map_eager": lambda n: Flow.range(n).concat_map_eager(lambda _: awaited(), max_concurrency=n).count(),
    "switch_map": lambda n: awaited(n).switch_map(lambda _: awaited()).count(),
    "map_async": lambda n: Flow.range(n).map_async(lambda _: asyncio.sleep(0), max_concurrency=n).count(),
    "groups in flat_map": lambda n: (
        Flow.range(2 * n)
        .group_by(lambda item: item % n, max_groups=n)
        .flat_map(lambda group: group, max_concurrency=n)
        .count()
    ),
    "groups in tasks": groups_in_tasks,
    "groups that fail": groups_that_fail,
    "windows": lambda n: Flow.range(2 * n).window(2).flat_map(lambda window: window).count(),
    "subscribers": subscribers,
    "iterators": iterators,
    "readers of a hub": readers_of_a_hub,
    "attempts": attempts,
    "runs": lambda n: awaited(1).repeat(n).count(),
}


def lines_of(work: Work, n: int) -> int:
    """Count the lines of the library that are run."""
    lines = itertools.count()

    def local(frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            next(lines)
        return local

    def begun(frame: FrameType, event: str, arg: object) -> Any:
        return local if "reactive_aio" in frame.f_code.co_filename or "<fused" in frame.f_code.co_filename else None

    async def run() -> None:
        await work(n)

    before = sys.gettrace()
    sys.settrace(begun)
    try:
        asyncio.run(run())
    finally:
        sys.settrace(before)
    return next(lines)


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
def test_each_costs_as_much_however_many_there_are(work: Work) -> None:
    lines_of(work, FEW)  # functions are generated, modules imported
    gc.collect()
    gc.disable()
    try:
        few, more, many = [lines_of(work, n * FEW) for n in (1, 2, 3)]
    finally:
        gc.enable()

    assert many - more <= 1.2 * (more - few)
