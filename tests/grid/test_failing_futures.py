"""Every operator behind a source that waits for something that fails: a socket that is reset, a task, a queue that is shut down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.testing import run_virtual
from tests.grid.points import HERE
from tests.grid.test_blocking import numbers_of
from tests.registry import AnyFlow, Entry, Settings

ELEMENTS = 5


class LostError(BaseException):
    """Outside of Exception."""


async def raised(error: BaseException) -> None:
    """Fail with the generator's own code."""
    await asyncio.sleep(1)
    raise error


async def awaited(error: BaseException) -> None:
    """Fail where the generator waits for a future."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(1, future.set_exception, error)
    await future


Fails = Callable[[BaseException], Awaitable[None]]


def failing(make: Callable[[], BaseException], fails: Fails) -> Callable[[AnyFlow], AnyFlow]:
    """Have the first source fail behind its elements, once; a retry reads it to its end."""
    failures = [make()]

    async def give(numbers: range) -> AsyncIterator[int]:
        for n in numbers:
            yield n
        if failures:
            await fails(failures.pop())

    def via(flow: AnyFlow) -> AnyFlow:
        numbers = numbers_of(flow)
        return flow if numbers is None else Flow.from_async_iterable(lambda: give(numbers))

    return via


def outcome(entry: Entry, make: Callable[[], BaseException], fails: Fails) -> list[Any]:
    """Return what arrives, and how it ends."""

    async def main() -> list[Any]:
        heard: list[Any] = []
        try:
            await entry.make(ELEMENTS, failing(make, fails), Settings()).for_each(heard.append)
        except BaseException as error:
            heard.append(repr(error))
        return heard

    return run_virtual(main())


@pytest.mark.parametrize("error", [OSError, LostError, asyncio.CancelledError])
@pytest.mark.parametrize("entry", HERE, ids=str)
def test_a_future_that_fails_is_as_good_as_code_that_raises(entry: Entry, error: type[BaseException]) -> None:
    assert outcome(entry, error, raised) == outcome(entry, error, awaited)


@pytest.mark.parametrize("error", [OSError, LostError, SystemExit, KeyboardInterrupt, StopAsyncIteration])
@pytest.mark.parametrize("at", [0, 1, 100])
@pytest.mark.parametrize(
    "end",
    [
        Flow.to_list,
        Flow.first,
        Flow.drain,
        lambda flow: flow.map(str).filter(bool).to_list(),
        lambda flow: flow.for_each(print),
    ],
)
async def test_what_an_iterator_waits_for_may_fail(
    error: type[BaseException], at: int, end: Callable[[AnyFlow], Awaitable[object]]
) -> None:
    heard: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(at):
            yield n
        try:
            await awaited_soon(error())
        except BaseException as caught:
            heard.append(type(caught).__name__)
            raise

    async def awaited_soon(failure: BaseException) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, failure)
        await future

    async with asyncio.timeout(60):
        if at and end is Flow.first:
            assert 0 == await end(Flow.from_async_iterable(numbers))
            return
        with pytest.raises(RuntimeError if error is StopAsyncIteration else error):
            await end(Flow.from_async_iterable(numbers))
    assert [error.__name__] == heard
