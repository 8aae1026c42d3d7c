"""A failure that reaches a flow by several ways, as from groups or readers of one source, is raised once and reported to no hook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reactive_aio import Flow, hooks

Read = Callable[[Flow[int]], Flow[Any]]

READ: dict[str, Read] = {
    "groups": lambda flow: flow.group_by(lambda n: n).flat_map(lambda group: group),
    "groups, one after another": lambda flow: flow.group_by(lambda n: n).concat_map_eager(lambda group: group),
    "windows": lambda flow: flow.window(2).flat_map(lambda window: window.map(str)),
    "merge": lambda flow: flow.multicast(lambda shared: shared.merge(shared, shared.map(str))),
    "merge that delays failures": lambda flow: flow.multicast(lambda shared: shared.merge(shared, delay_errors=True)),
    "zip": lambda flow: flow.multicast(lambda shared: shared.zip(shared.skip(1))),
    "combine_latest": lambda flow: flow.multicast(lambda shared: shared.combine_latest(shared.skip(1))),
    "shared": lambda flow: merged(flow.share(start=4)),
    "a slow end": lambda flow: (
        flow.group_by(lambda n: n).flat_map(lambda group: group).map_async(slowly, max_concurrency=1)
    ),
}


def merged(shared: Flow[int]) -> Flow[int]:
    return shared.merge(shared, shared, shared)


async def slowly(item: object) -> object:
    for _ in range(5):
        await asyncio.sleep(0)
    return item


async def failing() -> AsyncIterator[int]:
    for n in range(5):
        yield n
    await asyncio.sleep(0)
    raise OSError("down")


@pytest.mark.parametrize("read", READ.values(), ids=READ)
async def test_a_failure_that_comes_by_several_ways_is_raised_once_and_not_reported(read: Read) -> None:
    reported: list[BaseException] = []
    with hooks.using(on_error_dropped=reported.append), pytest.raises(OSError, match="down") as failed:
        await read(Flow.from_async_iterable(failing)).to_list()

    assert [] == reported
    assert not [note for note in failed.value.__notes__ if "further failure" in note]


async def test_another_failure_with_the_same_text_is_reported() -> None:
    reported: list[BaseException] = []

    async def fail(_: int) -> AsyncIterator[int]:
        try:
            raise OSError("down")
        finally:
            await asyncio.sleep(0)
        yield 0

    with hooks.using(on_error_dropped=reported.append), pytest.raises(OSError, match="down") as failed:
        await Flow.range(3).flat_map(lambda n: Flow.from_async_iterable(fail(n))).to_list()

    assert [repr(failed.value)] * 2 == [repr(each) for each in reported]
    assert failed.value not in reported
