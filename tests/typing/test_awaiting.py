"""Types survive what is awaited for each element: read by mypy and pyright in strict mode."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import assert_type

from reactive_aio import Flow


async def shown(n: int) -> str:
    return str(n)


def going_on(n: int) -> Awaitable[bytes]:
    raise NotImplementedError


async def wanted(n: int) -> bool:
    return n > 0


def test_operators_that_await() -> None:
    flow = Flow.range(3)
    assert_type(flow.map_async(shown), Flow[str])
    assert_type(flow.map_async(going_on, max_concurrency=4, order="completion"), Flow[bytes])
    assert_type(flow.map_async(shown, order=lambda n: n % 2), Flow[str])
    assert_type(flow.filter_when(wanted, max_concurrency=2), Flow[int])


@asynccontextmanager
async def connection() -> AsyncGenerator[list[bytes]]:
    yield []


def test_sources_that_functions_make() -> None:
    assert_type(Flow.from_awaitable(lambda: shown(1)), Flow[str])
    assert_type(Flow.from_callable(lambda: 1), Flow[int])
    assert_type(Flow.generate(lambda n: (str(n), n + 1), 0), Flow[str])
    assert_type(Flow.generate(lambda n: (str(n), n + 1) if n < 3 else None, 0), Flow[str])
    assert_type(Flow.using(connection, Flow.from_iterable), Flow[bytes])
    assert_type(Flow.using(TemporaryDirectory, lambda name: Flow.from_iterable(name).map(len)), Flow[int])
    assert_type(Flow.timer(1), Flow[int])
