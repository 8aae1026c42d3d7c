"""Attempts that come one after another leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Backoff, Flow
from reactive_aio.testing import run_virtual

MANY = 50


class DownError(Exception):
    """The failure of an attempt."""


def fail(*_: object) -> Any:
    raise DownError


def alive() -> int:
    gc.collect()
    return sum(isinstance(each, DownError) for each in gc.get_objects())


async def once_more(_: Exception, attempt: int) -> bool:
    await asyncio.sleep(1)
    return attempt < MANY


SOURCES: dict[str, Callable[[], Flow[Any]]] = {
    "from_callable": lambda: Flow.from_callable(fail),
    "error": lambda: Flow.error(DownError),
    "map": lambda: Flow.of(1).map(fail),
    "defer": lambda: Flow.defer(fail),
    "concat": lambda: Flow.of(1).concat(Flow.of(1).map(fail)),
    "flat_map": lambda: Flow.of(1).flat_map(fail),
    "from_callback": lambda: Flow.from_callback(fail),
}
AGAIN: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "retry": lambda flow: flow.retry(MANY),
    "retry with a backoff": lambda flow: flow.retry(Backoff(1, max_retries=MANY, reset=False)),
    "retry_if": lambda flow: flow.retry_if(lambda _, attempt: attempt < MANY),
    "retry_when": lambda flow: flow.retry_when(once_more),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("again", AGAIN)
def test_no_failure_outlives_its_attempt(source: str, again: str) -> None:
    left: list[int] = []
    attempts: list[int] = []

    def look() -> None:
        attempts.append(1)
        if len(attempts) == MANY - 5:
            left.append(alive())

    flow = Flow.defer(lambda: (look(), SOURCES[source]())[1])
    with pytest.raises(DownError):
        run_virtual(AGAIN[again](flow).drain())

    assert len(left) == 1
    assert left[0] <= 2
