"""The input of a region that reads an async iterator, driven by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from reactive_aio import Flow
from reactive_aio._fusion import Pace
from reactive_aio._plan import Awaited
from reactive_aio._runtime.awaited import AwaitedInput


async def test_an_answer_to_a_cancel_comes_behind_the_elements_that_are_listed() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield 2

    source = Flow.from_async_iterable(numbers()).__nodes__.source.operator
    assert isinstance(source, Awaited)
    read = AwaitedInput(source, Pace(), "numbers", asyncio.get_running_loop())
    assert [1] == read.listed(1)
    read.listed(1)
    read.pace.awaiting = None
    read.throw(asyncio.CancelledError())
    read._answers = (3,)  # pyright: ignore[reportPrivateUsage] - of another cancel, while it waited for demand

    assert [[2], [3]] == [read.listed(1), read.listed(1)]
    assert read.emptied
    read.abandon()
