"""A task factory of the program may raise: the flow fails with that, and nothing waits for a task that was never made."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from reactive_aio import Flow


class NoTaskError(Exception):
    pass


def refuse(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **_: object) -> Any:
    coroutine.close()
    raise NoTaskError("no task today")


async def items() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(0)
    yield 2


async def same(n: int) -> int:
    await asyncio.sleep(0)
    return n


FLOWS: dict[str, Callable[[], Flow[int]]] = {
    "an iterator": lambda: Flow.from_async_iterable(items),
    "one that is read by a combinator": lambda: Flow.of(1).concat_map(lambda _: Flow.from_async_iterable(items)),
    "one with stages that is read by a combinator": lambda: Flow.of(1).flat_map(
        lambda _: Flow.from_async_iterable(items).map(abs)
    ),
    "workers": lambda: Flow.of(1).map_async(same),
    "workers of elements that come later": lambda: Flow.interval(0.001).take(2).map_async(same),
}


async def listed(flow: Flow[int]) -> object:
    return await flow.to_list()


async def one_by_one(flow: Flow[int]) -> object:
    return [item async for item in flow]


@pytest.mark.parametrize("end", [listed, one_by_one])
@pytest.mark.parametrize("made", FLOWS.values(), ids=FLOWS)
async def test_a_task_factory_that_raises_fails_the_flow(
    made: Callable[[], Flow[int]], end: Callable[[Flow[int]], Coroutine[Any, Any, object]]
) -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop.set_task_factory(refuse)
        try:
            with pytest.raises(NoTaskError):
                async with asyncio.timeout(5.0):
                    await end(made())
        finally:
            loop.set_task_factory(before)
