"""A CancelledError that a function of the user's raises is a failure; a cancellation from outside passes through unchanged."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from attrs import define, field

from reactive_aio import Flow, SourceCancelledError, hooks, schedulers
from reactive_aio._clocks.virtual import VirtualTimeLoop
from tests.subscribers import idle

Fn = Callable[[], Awaitable[Any]]
End = Callable[[Fn], Awaitable[Any]]

DEADLINE = 5.0
"""By the clock of a `VirtualTimeLoop`."""


# -- the ends: each awaits a function of the user's somewhere


def taking(fn: Fn) -> Callable[[int], Awaitable[Any]]:
    async def called(_: int) -> Any:
        return await fn()

    return called


async def for_each(fn: Fn) -> None:
    await Flow.range(9).map(int).for_each(taking(fn))  # made one by one: some are left when it is cancelled


async def for_each_two_at_a_time(fn: Fn) -> None:
    await Flow.range(9).for_each(taking(fn), max_concurrency=2)


async def map_async(fn: Fn) -> None:
    await Flow.range(9).map_async(taking(fn), max_concurrency=2).to_list()


async def map_async_by_an_iterator(fn: Fn) -> None:
    async for _ in Flow.range(9).map_async(taking(fn), max_concurrency=2):
        pass


async def map_async_behind_a_boundary(fn: Fn) -> None:
    await Flow.range(9).map_async(taking(fn), max_concurrency=2).publish_on(schedulers.current(), prefetch=2).count()


async def filter_when(fn: Fn) -> None:
    await Flow.range(9).filter_when(taking(fn)).to_list()


async def from_async_iterable(fn: Fn) -> None:
    async def numbers() -> AsyncIterator[Any]:
        yield await fn()

    await Flow.from_async_iterable(numbers()).to_list()


async def from_async_iterable_in_a_block(fn: Fn) -> None:
    async def numbers() -> AsyncIterator[Any]:
        yield await fn()

    async with Flow.from_async_iterable(numbers()).open() as items:
        async for _ in items:
            pass


async def from_awaitable(fn: Fn) -> None:
    await Flow.from_awaitable(fn).first()


async def create(fn: Fn) -> None:
    async def produce(emit: Callable[[Any], Awaitable[None]]) -> None:
        await emit(await fn())

    await Flow.create(produce).to_list()


async def using_as_it_is_entered(fn: Fn) -> None:
    @asynccontextmanager
    async def resource() -> AsyncGenerator[Any]:
        yield await fn()

    await Flow.using(resource, lambda _: Flow.of(1)).to_list()


async def using_as_it_is_read(fn: Fn) -> None:
    @asynccontextmanager
    async def resource() -> AsyncGenerator[int]:
        yield 1

    await Flow.using(resource, lambda _: Flow.from_awaitable(fn)).to_list()


async def retry_when(fn: Fn) -> None:
    def decide(error: BaseException, attempt: int) -> Awaitable[Any]:
        return fn()

    await Flow.error(OSError("to be retried")).retry_when(decide).to_list()


async def repeat_when(fn: Fn) -> None:
    def decide(count: int, times: int) -> Awaitable[Any]:
        return fn()

    await Flow.of(1).repeat_when(decide).to_list()


async def flat_map(fn: Fn) -> None:
    await Flow.range(9).flat_map(lambda _: Flow.from_awaitable(fn), max_concurrency=2).to_list()


ENDS: list[End] = [
    for_each,
    for_each_two_at_a_time,
    map_async,
    map_async_by_an_iterator,
    map_async_behind_a_boundary,
    filter_when,
    from_async_iterable,
    from_async_iterable_in_a_block,
    from_awaitable,
    create,
    using_as_it_is_entered,
    using_as_it_is_read,
    retry_when,
    repeat_when,
    flat_map,
]
each_end = pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)


# -- what the function raises itself


async def raising_at_once() -> None:
    raise asyncio.CancelledError("its own")


async def raising_later() -> None:
    await asyncio.sleep(0)
    raise asyncio.CancelledError("its own")


async def awaiting_what_was_cancelled() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel("its own")
    await future


@pytest.mark.parametrize(
    "fn", [raising_at_once, raising_later, awaiting_what_was_cancelled], ids=lambda fn: fn.__name__
)
@each_end
async def test_a_cancelled_error_that_a_function_raises_is_a_failure(end: End, fn: Fn) -> None:
    with pytest.raises(SourceCancelledError) as raised:
        await end(fn)

    assert isinstance(raised.value.__cause__, asyncio.CancelledError)
    assert raised.value.__cause__.args == ("its own",)


@each_end
async def test_a_task_group_hears_of_a_cancelled_error_that_a_function_raises(end: End) -> None:
    async def run() -> None:
        await end(raising_later)

    async def run_beside_another() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run())
            group.create_task(asyncio.sleep(3600))

    with pytest.raises(ExceptionGroup) as raised:
        await run_beside_another()

    assert [SourceCancelledError] == list(map(type, raised.value.exceptions))


# -- what comes from outside


@define(eq=False)
class Waiting:
    """A function that waits until it is cancelled, or is let go and then raises a CancelledError itself."""

    ended: int = 0
    began: asyncio.Event = field(init=False, factory=asyncio.Event)
    gate: asyncio.Event = field(init=False, factory=asyncio.Event)

    async def fn(self) -> None:
        self.began.set()
        try:
            await self.gate.wait()
            raise asyncio.CancelledError("its own")
        finally:
            self.ended += 1


Way = Callable[[Awaitable[Any]], Awaitable[None]]


async def by_wait_for(running: Awaitable[Any]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(running, DEADLINE)


async def by_timeout(running: Awaitable[Any]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(DEADLINE):
            await running


async def by_a_task_group(running: Awaitable[Any]) -> None:
    async def fail() -> None:
        await asyncio.sleep(DEADLINE)
        raise OSError("another task")

    async def run_beside_another() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await running

    with pytest.raises(ExceptionGroup) as raised:
        await run_beside_another()
    assert [OSError] == list(map(type, raised.value.exceptions))


async def by_a_task_in_a_group(running: Awaitable[Any]) -> None:
    async def run() -> None:
        await running

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await asyncio.sleep(DEADLINE)
        task.cancel()
    assert task.cancelled()


async def by_move_on_after(running: Awaitable[Any]) -> None:
    with anyio.move_on_after(DEADLINE) as scope:
        await running
    assert scope.cancelled_caught


async def by_fail_after(running: Awaitable[Any]) -> None:
    with pytest.raises(TimeoutError):
        with anyio.fail_after(DEADLINE):
            await running


async def by_a_scope(running: Awaitable[Any]) -> None:
    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_later(DEADLINE, scope.cancel)
        await running
    assert scope.cancelled_caught


WAYS: list[Way] = [
    by_wait_for,
    by_timeout,
    by_a_task_group,
    by_a_task_in_a_group,
    by_move_on_after,
    by_fail_after,
    by_a_scope,
]
AT_ONCE = [by_wait_for, by_timeout, by_a_task_in_a_group]
"""Those that cancel a task in the callback of a timer; anyio's do not cancel one that is about to go on anyhow."""


def run(main: Callable[[], Awaitable[None]]) -> list[BaseException]:
    """Run on a virtual clock; give what the hook was told."""
    dropped: list[BaseException] = []

    async def run_it() -> None:
        before = asyncio.all_tasks()
        with hooks.using(on_error_dropped=dropped.append):
            await main()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run_it())
    return dropped


@pytest.mark.costly
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@each_end
def test_a_cancellation_from_outside_passes_through_unchanged(end: End, way: Way) -> None:
    async def main() -> None:
        waiting = Waiting()
        await way(end(waiting.fn))
        gc.collect()  # an iterator that the traceback of an error holds
        await idle()
        assert waiting.ended in {1, 2}

    assert run(main) == []


@pytest.mark.parametrize("by", [-1e-10, 1e-10], ids=["just before", "just after"])
@pytest.mark.parametrize("way", AT_ONCE, ids=lambda way: way.__name__)
@each_end
def test_a_cancellation_from_outside_wins_over_a_cancelled_error_of_the_same_turn(
    end: End, way: Way, by: float
) -> None:
    async def main() -> None:
        waiting = Waiting()
        loop = asyncio.get_running_loop()
        loop.call_at(loop.time() + DEADLINE + by, waiting.gate.set)
        await way(end(waiting.fn))
        await idle()
        assert waiting.ended in {1, 2}

    assert all(isinstance(error, SourceCancelledError) for error in run(main))


@pytest.mark.parametrize("turns", range(12))
@each_end
async def test_who_has_been_cancelled_before_it_has_ended_is_cancelled(end: End, turns: int) -> None:
    dropped: list[BaseException] = []
    waiting = Waiting()
    with hooks.using(on_error_dropped=dropped.append):
        task = asyncio.ensure_future(end(waiting.fn))
    await waiting.began.wait()
    waiting.gate.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    in_time = task.cancel()
    await asyncio.wait([task], timeout=60)
    await idle()

    assert task.done()
    assert in_time is task.cancelled()
    assert in_time or isinstance(task.exception(), SourceCancelledError)
    assert not any(isinstance(error, asyncio.CancelledError) for error in dropped)


# -- what the body of a loop raises


async def in_the_body_of_a_loop(log: list[str], error: BaseException) -> None:
    async for _ in Flow.from_async_iterable(numbers(log)):
        raise error


async def in_the_body_of_a_block(log: list[str], error: BaseException) -> None:
    async with Flow.from_async_iterable(numbers(log)).open() as items:
        async for _ in items:
            raise error


async def in_a_block_that_is_not_read(log: list[str], error: BaseException) -> None:
    async with Flow.from_async_iterable(numbers(log)).open():
        raise error


async def numbers(log: list[str]) -> AsyncIterator[int]:
    try:
        yield 1
        yield 2
    finally:
        await asyncio.sleep(0)
        log.append("closed")


@pytest.mark.parametrize(
    ("raising", "closed"),
    [(in_the_body_of_a_loop, ["closed"]), (in_the_body_of_a_block, ["closed"]), (in_a_block_that_is_not_read, [])],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_what_a_body_raises_is_its_own_affair(
    raising: Callable[[list[str], BaseException], Awaitable[None]], closed: list[str]
) -> None:
    log: list[str] = []
    error = asyncio.CancelledError("of the body")
    with pytest.raises(asyncio.CancelledError) as raised:
        await raising(log, error)

    assert raised.value is error
    del raised, error  # they hold the iterator
    await idle()
    assert closed == log
