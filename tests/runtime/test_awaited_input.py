"""The input of a region that reads an async iterator, driven by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

from reactive_aio import Flow
from reactive_aio._core.budgets import Budget
from reactive_aio._fusion import Pace
from reactive_aio._plan import Awaited
from reactive_aio._runtime.awaited import AwaitedInput


def input_of(items: AsyncIterator[int]) -> AwaitedInput:
    source = Flow.from_async_iterable(items).__nodes__.source.operator
    assert isinstance(source, Awaited)
    return AwaitedInput(source, Pace(), "numbers", Budget.of(asyncio.get_running_loop()))


def left_when_its_wait_is_over(read: AwaitedInput) -> None:
    """Have the region leave an iterator whose wait has ended, and which has not gone on."""
    assert [] == read.listed(8)
    read.pace.awaiting = None
    read.left = True
    assert not read.leave()


async def test_what_an_iterator_raises_before_it_is_told_that_it_is_left_is_a_failure_of_the_flow() -> None:
    async def numbers() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        raise ValueError("late")
        yield 1

    read = input_of(numbers())
    left_when_its_wait_is_over(read)

    assert (None, "late") == (read.cleanup, str(read.error))


async def test_what_it_raises_when_it_is_told_is_a_failure_of_its_cleanup() -> None:
    async def numbers() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        try:
            yield 1
        finally:
            raise ValueError("cleanup")

    read = input_of(numbers())
    left_when_its_wait_is_over(read)

    assert ("cleanup", None) == (str(read.cleanup), read.error)


async def test_an_iterator_that_is_left_is_not_asked_for_another_element() -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        for n in range(8):
            made.append(n)
            yield n

    left_when_its_wait_is_over(input_of(numbers()))

    assert [0] == made


async def test_an_answer_to_a_cancel_comes_behind_the_elements_that_are_listed() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield 2

    read = input_of(numbers())
    assert [1] == read.listed(1)
    read.listed(1)
    read.pace.awaiting = None
    read.throw(asyncio.CancelledError())
    read._answers = (3,)  # pyright: ignore[reportPrivateUsage] - of another cancel, while it waited for demand

    assert [[2], [3]] == [read.listed(1), read.listed(1)]
    assert read.emptied
    read.abandon()


async def test_an_iterator_that_has_caught_an_error_goes_on_outside_of_any_except_block() -> None:
    handled: list[object] = []

    async def rows() -> AsyncIterator[int]:
        try:
            async with asyncio.timeout(0.0):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        handled.append(sys.exc_info()[0])
        try:
            raise ValueError
        except ValueError as error:
            handled.append(error.__context__)
        yield 1

    assert [1] == await Flow.from_async_iterable(rows).to_list()
    assert [1] == await Flow.of(1).flat_map(lambda _: Flow.from_async_iterable(rows)).to_list()
    assert [1] == [item async for item in Flow.from_async_iterable(rows)]
    assert [None] * 6 == handled
