"""from_awaitable and from_callable: one element that a function gives, anew for each subscription."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow, SourceCancelledError, hooks, schedulers
from tests.grid.test_leaks import nothing_of_ours_left
from tests.operators.test_iterators_in_each_way import AWAITED, Read, each
from tests.subscribers import Recorder, idle

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
Source = Callable[[Callable[[], Any]], Flow[Any]]


def awaited(fn: Callable[[], Any]) -> Flow[Any]:
    async def later() -> Any:
        await asyncio.sleep(0)
        return fn()

    return Flow.from_awaitable(later)


both = pytest.mark.parametrize("source", [awaited, Flow.from_callable], ids=["from_awaitable", "from_callable"])


@both
async def test_each_subscription_has_a_result_of_its_own(source: Source) -> None:
    results = iter("abc")

    assert ["a", "b", "c"] == await source(lambda: next(results)).repeat(3).to_list()


@both
async def test_the_function_is_called_with_the_first_demand_and_the_end_needs_no_other(source: Source) -> None:
    calls: list[int] = []
    recorder = Recorder()
    source(lambda: calls.append(1)).map(repr).subscribe(recorder)
    await idle()
    assert [] == calls
    recorder.request(1)
    await idle()
    assert [1] == calls
    assert ["subscribe", "next", "complete"] == recorder.kinds


@both
async def test_none_is_an_element_like_any_other(source: Source) -> None:
    assert [None] == await source(lambda: None).to_list()


@both
async def test_the_function_sees_the_variables_of_the_subscriber(source: Source) -> None:
    flow = source(VARIABLE.get)
    VARIABLE.set("subscriber's")

    assert ["subscriber's"] == await flow.to_list()


@both
async def test_a_failure_names_the_source_and_can_be_retried(source: Source) -> None:
    numbers = iter([0, 0, 1])
    flow = source(lambda: 1 // next(numbers))

    with pytest.raises(ZeroDivisionError) as caught:
        await flow.to_list()
    assert "chained at" in caught.value.__notes__[0]
    assert "from_" in caught.value.__notes__[0]
    assert [1] == await flow.retry(1).to_list()


@both
async def test_a_function_that_stops_an_iteration_is_an_error(source: Source) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await source(lambda: next(iter(()))).to_list()


async def test_any_awaitable_will_do() -> None:
    def soon() -> asyncio.Future[str]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, "soon")
        return future

    assert ["soon", "soon"] == await Flow.from_awaitable(soon).repeat(2).to_list()


async def test_cancel_cancels_what_is_awaited_and_waits_for_its_end() -> None:
    steps: list[str] = []

    async def wait() -> str:
        steps.append("begun")
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            steps.append("cleaned up")
            raise
        return "never"

    async with Flow.from_awaitable(wait).open() as items:
        task = asyncio.ensure_future(anext(items))
        while not steps:
            await asyncio.sleep(0)
        task.cancel()
    assert ["begun", "cleaned up"] == steps


async def test_a_result_that_comes_in_spite_of_the_cancellation_goes_to_the_hook() -> None:
    discarded: list[Any] = []

    async def stubborn() -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return "in spite"
        return "never"

    with hooks.using(on_discard=discarded.append):
        async with Flow.from_awaitable(stubborn).open() as items:
            task = asyncio.ensure_future(anext(items))
            await idle()
            task.cancel()
    assert ["in spite"] == discarded


@each()
async def test_a_result_that_answers_a_cancel_of_its_own_task_is_the_element(read: Read) -> None:
    async def answer() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            task.uncancel()
            return "answer"
        return "never"

    assert ["answer"] == await read(Flow.from_awaitable(answer))


@each()
async def test_a_result_is_the_one_element_in_each_way_of_reading(read: Read) -> None:
    assert [1, 2] == await read(Flow.from_awaitable(lambda: asyncio.sleep(0, 1)).concat(Flow.of(2)))
    assert [1] == await read(Flow.from_awaitable(lambda: asyncio.sleep(0, 1)))


@each()
async def test_a_result_leaves_nothing_to_the_garbage_collector_in_each_way_of_reading(read: Read) -> None:
    async def result() -> int:
        await asyncio.sleep(0)
        return 1

    flow = Flow.from_awaitable(result)
    await read(flow)
    await idle()
    with nothing_of_ours_left(unless=False):
        assert [1] == await read(flow)
        await idle()


@each(AWAITED)
async def test_the_end_of_an_iteration_that_is_awaited_is_a_failure(read: Read) -> None:
    async def over() -> int:
        raise StopAsyncIteration

    with pytest.raises((StopAsyncIteration, RuntimeError)):
        await read(Flow.from_awaitable(over))


async def test_a_future_that_somebody_else_cancels_is_a_failure() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.cancel()

    with pytest.raises(SourceCancelledError):
        await Flow.from_awaitable(lambda: future).to_list()


async def test_a_function_that_blocks_runs_on_the_thread_of_its_region() -> None:
    name = Flow.from_callable(lambda: threading.current_thread().name).subscribe_on(schedulers.thread("blocking"))

    assert ["blocking"] == await name.to_list()


async def test_what_cannot_be_awaited_is_named() -> None:
    wrong: Any = lambda: 3  # noqa: E731

    with pytest.raises(
        TypeError, match=r"<lambda> returned a value that can't be awaited, of type int: use Flow\.from_callable"
    ):
        await Flow.from_awaitable(wrong).to_list()


async def test_a_coroutine_is_refused_when_the_flow_is_built_and_closed() -> None:
    async def load() -> int:
        return 1

    coroutine: Any = load()
    with pytest.raises(TypeError, match=r"not a coroutine\. Write from_awaitable\(lambda: \.\.\.\)"):
        Flow.from_awaitable(coroutine)
    assert coroutine.cr_frame is None


@pytest.mark.parametrize("make", [lambda: asyncio.get_running_loop().create_future(), lambda: 3], ids=["future", "int"])
async def test_an_argument_that_is_no_function_is_refused_when_the_flow_is_built(make: Any) -> None:
    with pytest.raises(TypeError, match=r"takes a function that returns an awaitable, not a (_asyncio\.)?(Future|int)"):
        Flow.from_awaitable(make())
    with pytest.raises(TypeError, match=r"from_callable\(\) takes a function"):
        Flow.from_callable(make())


def test_an_async_function_is_refused_by_from_callable() -> None:
    async def load() -> int:
        return 1

    with pytest.raises(TypeError, match=r"load is async def: use Flow\.from_awaitable"):
        Flow.from_callable(load)
