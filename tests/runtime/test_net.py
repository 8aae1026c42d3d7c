"""The net: whatever leaves a turn of a region ends its flow, though it be a mistake of the library's own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow, hooks, schedulers
from reactive_aio._arbiter import Drain, Inner
from reactive_aio._arbiter.coordinator import Coordinator
from reactive_aio._fusion import RegionRun
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.emission import Emission
from reactive_aio._runtime.ends import _Result
from reactive_aio._runtime.host import begun
from reactive_aio._runtime.inputs import PushedInput
from reactive_aio._runtime.iterating import Steps
from tests.subscribers import idle

LATEST = 2
"""Up to which call of a method is broken."""


class Broken(BaseException):
    """An exception that no code of the library raises."""


class ExpectedError(Exception):
    """The flow's own failure."""


# -- the flows


async def numbers() -> AsyncIterator[int]:
    for n in range(3):
        yield n
        await asyncio.sleep(0)


def failing(attempts: list[int]) -> Flow[int]:
    attempts.append(1)
    return Flow.range(2) if len(attempts) > 2 else Flow.error(ExpectedError("to be retried"))


def one_region() -> Flow[int]:
    return Flow.range(3).map(lambda n: n)


def a_pushed_source() -> Flow[int]:
    return Flow.from_async_iterable(numbers()).map(lambda n: n)


def a_boundary() -> Flow[int]:
    return Flow.range(3).map(lambda n: n).publish_on(schedulers.current(), prefetch=2).map(lambda n: n)


def a_failure_behind_a_boundary() -> Flow[int]:
    return (
        Flow.concat(Flow.range(2), Flow.error(ExpectedError("expected")))
        .publish_on(schedulers.current(), prefetch=2)
        .map(lambda n: n)
    )


def a_thread() -> Flow[int]:
    return Flow.from_async_iterable(numbers()).publish_on(schedulers.thread("net"), prefetch=2).map(lambda n: n)


def a_source_on_a_thread() -> Flow[int]:
    return Flow.from_async_iterable(numbers()).subscribe_on(schedulers.thread("net")).map(lambda n: n)


def flat_map() -> Flow[int]:
    return Flow.range(3).flat_map(lambda _: Flow.from_async_iterable(numbers()))


def flat_map_on_a_thread() -> Flow[int]:
    return flat_map().subscribe_on(schedulers.thread("net"))


def merge() -> Flow[int]:
    return Flow.from_async_iterable(numbers()).merge(Flow.range(3))


def concat() -> Flow[int]:
    return Flow.concat(Flow.from_async_iterable(numbers()), Flow.range(2).map(lambda n: n))


def inner_flows_with_stages() -> Flow[int]:
    given = Flow.of(0, 1, 2).map(lambda n: n)
    return Flow.concat(given, Flow.from_async_iterable(numbers()).map(lambda n: n), given)


def retry() -> Flow[int]:
    attempts: list[int] = []
    return Flow.defer(lambda: failing(attempts)).retry(3)


def map_async() -> Flow[int]:
    async def awaited(n: int) -> int:
        await asyncio.sleep(0)
        return n

    return Flow.range(3).map_async(awaited, max_concurrency=2)


def using() -> Flow[int]:
    return Flow.using(contextlib.nullcontext, lambda _: Flow.range(3))


FLOWS: list[Callable[[], Flow[Any]]] = [
    one_region,
    a_pushed_source,
    a_boundary,
    a_failure_behind_a_boundary,
    a_thread,
    a_source_on_a_thread,
    flat_map,
    flat_map_on_a_thread,
    merge,
    concat,
    inner_flows_with_stages,
    retry,
    map_async,
    using,
]

PLACES: list[tuple[type, str]] = [
    (PushedInput, "add"),
    (PushedInput, "end"),
    (PushedInput, "more"),
    (PushedInput, "stretch"),
    (PushedInput, "close"),
    (RegionRun, "demand"),
    (RegionRun, "over"),
    (RegionRun, "close"),
    (RegionDriver, "request"),
    (RegionDriver, "_complete"),
    (Emission, "_deliver"),
    (_Result, "on_subscribe"),
    (_Result, "on_chunk"),
    (_Result, "on_error"),
    (_Result, "on_complete"),
    (Steps, "on_chunk"),
    (Steps, "on_error"),
    (Steps, "on_complete"),
    (Inner, "on_subscribe"),
    (Inner, "on_chunk"),
    (Inner, "on_error"),
    (Inner, "on_complete"),
    (Coordinator, "on_chunk"),
    (Coordinator, "on_end"),
    (Coordinator, "on_source_error"),
    (Coordinator, "advance"),
    (Drain, "go"),
    (Drain, "_go_on"),
]
"""Methods that are called in the turn of a region, or in the place of one."""


def break_once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, at: int) -> list[Broken]:
    """Have one call of a method raise, instead of what it does; the result tells whether it has."""
    real = getattr(owner, name)
    calls = itertools.count()
    raised: list[Broken] = []

    def broken(self: Any, *args: Any, **kwargs: Any) -> Any:
        if next(calls) == at:
            raised.append(Broken(name))
            raise raised[0]
        return real(self, *args, **kwargs)

    monkeypatch.setattr(owner, name, broken)
    return raised


async def listed(flow: Flow[Any]) -> None:
    await flow.to_list()


async def iterated(flow: Flow[Any]) -> None:
    async with flow.open() as items:
        async for _ in items:
            pass


@pytest.mark.parametrize(("owner", "name"), PLACES, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
@pytest.mark.parametrize("end", [listed, iterated], ids=lambda end: end.__name__)
async def test_what_leaves_a_turn_ends_the_flow(
    flow: Callable[[], Flow[Any]],
    end: Callable[[Flow[Any]], Awaitable[None]],
    owner: type,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks, threads = asyncio.all_tasks(), threading.active_count()
    loop = asyncio.get_running_loop()
    for at in range(LATEST):
        dropped: list[BaseException] = []
        ended: BaseException | None = None
        with hooks.using(on_error_dropped=dropped.append), monkeypatch.context() as patch:
            raised = break_once(patch, owner, name, at)
            try:
                async with asyncio.timeout(20):
                    await end(flow())
            except (Broken, ExpectedError) as error:
                ended = error
        await idle()

        if raised and flow is not retry:  # which begins once more
            assert raised[0] is ended or raised[0] in dropped
        assert begun(loop) == set()
        assert asyncio.all_tasks() == tasks
        assert threading.active_count() == threads
