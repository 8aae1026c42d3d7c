"""A consumer of one element at a time goes on by a callback of the future that its source waits for, without a step of the source's task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from reactive_aio import Flow
from tests.subscribers import idle

Items = Flow[int]


async def read_on(flow: Items) -> AsyncGenerator[int]:
    async for item in flow:
        yield item


FLOWS: dict[str, Callable[[Items], Items]] = {
    "source": lambda flow: flow,
    "stage": lambda flow: flow.map(lambda item: item),
    "combinator": lambda flow: flow.retry(1),
    "two combinators": lambda flow: flow.retry(1).concat(Flow[int].empty()),
    "inside a source": lambda flow: Flow.from_async_iterable(read_on(flow)),
}

flows = pytest.mark.parametrize("apply", FLOWS.values(), ids=FLOWS)


class Source:
    """Yields a number when each wait is over, and notes what it hears."""

    def __init__(self) -> None:
        self.waits: list[asyncio.Future[None]] = []
        self.heard: list[str] = []
        self.tasks: set[asyncio.Task[Any] | None] = set()

    async def _items(self) -> AsyncGenerator[int]:
        try:
            for n in range(5):
                self.tasks.add(asyncio.current_task())
                wait = asyncio.get_running_loop().create_future()
                self.waits.append(wait)
                try:
                    await wait
                except LookupError as error:
                    self.heard.append(repr(error))
                self.tasks.add(asyncio.current_task())
                yield n
        except BaseException as error:
            self.heard.append(type(error).__name__)
            raise
        finally:
            self.tasks.add(asyncio.current_task())

    @property
    def flow(self) -> Items:
        return Flow.from_async_iterable(self._items)


async def behind_one(source: Source, items: AsyncIterator[int]) -> asyncio.Future[int]:
    """Take the first element, and begin to wait for the second one."""
    first = asyncio.ensure_future(anext(items))
    await idle()
    source.waits[-1].set_result(None)
    assert await first == 0
    second = asyncio.ensure_future(anext(items))
    await idle()
    assert len(source.waits) == 2
    return second


@flows
async def test_the_source_runs_in_one_task_of_its_own_however_it_goes_on(apply: Callable[[Items], Items]) -> None:
    source = Source()
    items = aiter(apply(source.flow))
    second = await behind_one(source, items)
    source.waits[-1].set_result(None)
    assert await second == 1
    await items.aclose()

    assert len(source.tasks) == 1
    assert asyncio.current_task() not in source.tasks
    assert source.heard == ["GeneratorExit"]


@flows
async def test_an_element_comes_in_the_turn_behind_its_wait(apply: Callable[[Items], Items]) -> None:
    source = Source()
    items = aiter(apply(source.flow))
    second = await behind_one(source, items)
    source.waits[-1].set_result(None)
    await asyncio.sleep(0)  # the callback of the future
    await asyncio.sleep(0)  # the consumer

    assert second.done()


@flows
async def test_a_wait_that_fails_fails_in_the_source(apply: Callable[[Items], Items]) -> None:
    source = Source()
    second = await behind_one(source, aiter(apply(source.flow)))
    source.waits[-1].set_exception(LookupError("gone"))

    assert await second == 1
    assert source.heard == ["LookupError('gone')"]


@flows
async def test_a_consumer_that_gives_up_loses_no_element(apply: Callable[[Items], Items]) -> None:
    source = Source()
    items = aiter(apply(source.flow))
    second = await behind_one(source, items)
    second.cancel()
    await idle()
    assert not source.waits[-1].cancelled()
    source.waits[-1].set_result(None)
    await idle()

    assert await anext(items) == 1


@flows
@pytest.mark.parametrize("first", ["element", "cancel"])
async def test_an_element_that_comes_in_the_turn_of_a_cancel_is_not_lost(
    apply: Callable[[Items], Items], first: str
) -> None:
    source = Source()
    items = aiter(apply(source.flow))
    second = await behind_one(source, items)
    if first == "element":
        source.waits[-1].set_result(None)
    second.cancel()
    if first == "cancel":
        source.waits[-1].set_result(None)
    await asyncio.wait([second])

    assert 1 == (await anext(items) if second.cancelled() else second.result())
    rest = asyncio.ensure_future(anext(items))
    await idle()
    source.waits[-1].set_result(None)
    assert await rest == 2


@flows
async def test_a_cancel_has_its_message_and_its_count(apply: Callable[[Items], Items]) -> None:
    source = Source()
    second = await behind_one(source, aiter(apply(source.flow)))
    second.cancel("enough")
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await second

    assert second.cancelled()


@flows
async def test_a_second_task_that_awaits_the_same_element_is_refused(apply: Callable[[Items], Items]) -> None:
    source = Source()
    items = aiter(apply(source.flow))
    second = await behind_one(source, items)
    with pytest.raises(RuntimeError, match="two tasks await"):
        await anext(items)
    source.waits[-1].set_result(None)

    assert await second == 1


@flows
async def test_a_consumer_with_a_timeout_goes_on_with_the_same_element(apply: Callable[[Items], Items]) -> None:
    source = Source()
    items = aiter(apply(source.flow))
    (await behind_one(source, items)).cancel()
    await idle()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await anext(items)
    source.waits[-1].set_result(None)

    assert await anext(items) == 1


@flows
async def test_a_flow_that_is_read_inside_a_source_goes_on_too(apply: Callable[[Items], Items]) -> None:
    inner, dropped = Source(), list[BaseException]()

    async def source() -> AsyncGenerator[int]:
        try:
            async for item in apply(inner.flow):
                yield item
        except BaseException as error:
            dropped.append(error)
            raise

    items = aiter(apply(Flow.from_async_iterable(source())))
    second = await behind_one(inner, items)
    inner.waits[-1].set_result(None)
    assert await second == 1
    third = asyncio.ensure_future(anext(items))
    await idle()
    await items.aclose()
    with pytest.raises(StopAsyncIteration):
        await third
    await idle()  # a loop that an exception leaves closes nothing itself

    assert inner.waits[-1].cancelled()
    assert inner.heard == ["CancelledError"]
    assert [type(error) for error in dropped] == [asyncio.CancelledError]


@flows
async def test_a_flow_that_is_closed_cancels_the_wait(apply: Callable[[Items], Items]) -> None:
    source = Source()
    items = aiter(apply(source.flow))
    second = await behind_one(source, items)
    await items.aclose()
    with pytest.raises(StopAsyncIteration):
        await second

    assert source.waits[-1].cancelled()
    assert source.heard == ["CancelledError"]


@flows
async def test_tasks_that_wait_for_the_same_future_all_go_on(apply: Callable[[Items], Items]) -> None:
    shared = asyncio.get_running_loop().create_future()

    async def source(n: int) -> AsyncGenerator[int]:
        yield n
        await shared
        yield n + 10

    readers = [aiter(apply(Flow.from_async_iterable(source(n)))) for n in range(3)]
    assert [await anext(items) for items in readers] == [0, 1, 2]
    waiting = [asyncio.ensure_future(anext(items)) for items in readers]
    await idle()

    async def by_hand() -> None:
        await shared

    plain = asyncio.create_task(by_hand())
    await idle()
    shared.set_result(None)
    await plain

    assert [await each for each in waiting] == [10, 11, 12]


@flows
@pytest.mark.parametrize("scope", ["asyncio", "anyio"])
async def test_a_timeout_around_the_wait_ends_it(apply: Callable[[Items], Items], scope: str) -> None:
    waits, heard = list[asyncio.Future[None]](), list[object]()

    async def source() -> AsyncGenerator[int]:
        try:
            for n in range(3):
                yield n
                wait = asyncio.get_running_loop().create_future()
                waits.append(wait)
                try:
                    if scope == "asyncio":
                        async with asyncio.timeout(0.01):
                            await wait
                    else:
                        with anyio.fail_after(0.01):
                            await wait
                except TimeoutError:
                    heard.append(n)
        except BaseException as error:
            heard.append(error)
            raise

    assert await collected(apply(Flow.from_async_iterable(source()))) == [0, 1, 2]
    assert all(wait.cancelled() for wait in waits)
    assert heard == [0, 1, 2]


@flows
async def test_a_source_that_waits_for_a_turn_alone_gets_one(apply: Callable[[Items], Items]) -> None:
    async def source() -> AsyncGenerator[int]:
        for n in range(4):
            await asyncio.sleep(0)
            yield n
            await asyncio.sleep(0)

    assert await collected(apply(Flow.from_async_iterable(source()))) == [0, 1, 2, 3]


@flows
async def test_a_source_that_awaits_its_own_task_or_a_future_of_another_loop_fails_as_in_any_task(
    apply: Callable[[Items], Items],
) -> None:
    elsewhere = asyncio.new_event_loop()

    async def source(wait: Callable[[], Any]) -> AsyncGenerator[int]:
        yield 0
        try:
            await wait()
        except RuntimeError:
            yield 1

    try:
        for wait in (asyncio.current_task, elsewhere.create_future):
            assert await collected(apply(Flow.from_async_iterable(source(wait)))) == [0, 1]
    finally:
        elsewhere.close()


async def collected(flow: Items) -> list[int]:
    return [item async for item in flow]
