"""The failure of a source names the source and the line where the program made it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Emitter, Flow
from reactive_aio.io import from_process, read_chunks, read_lines
from reactive_aio.web import follow_events
from tests.subscribers import ByHand


def broken() -> Iterator[int]:
    yield 1
    raise OSError("disk")


async def broken_later() -> AsyncIterator[int]:
    yield 1
    raise OSError("disk")


async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
    await emit(1)
    raise OSError("disk")


def fail() -> Any:
    raise OSError("disk")


async def fail_later() -> int:
    raise OSError("disk")


def register(emitter: Emitter[int]) -> None:
    emitter.next(1)
    emitter.error(OSError("disk"))


class Broken:
    """A client whose connection breaks."""

    async def fetch(self, n: int) -> Sequence[int]:
        raise OSError("disk")

    async def idle(self) -> None: ...
    async def close(self) -> None: ...


@asynccontextmanager
async def client() -> AsyncGenerator[Broken]:
    yield Broken()


class Failing(ByHand):
    """A publisher that fails when it is asked."""

    def request(self, n: int) -> None:
        self.error(OSError("disk"))


SOURCES: dict[str, Callable[[], Flow[Any]]] = {
    "from_iterable(broken())": lambda: Flow.from_iterable(broken()),
    "from_iterable(broken)": lambda: Flow.from_iterable(broken),
    "from_callable(fail)": lambda: Flow.from_callable(fail),
    "from_async_iterable(broken_later())": lambda: Flow.from_async_iterable(broken_later()),
    "from_async_iterable(broken_later)": lambda: Flow.from_async_iterable(broken_later),
    "from_awaitable(fail_later)": lambda: Flow.from_awaitable(fail_later),
    "create(produce)": lambda: Flow.create(produce),
    "from_callback(register, 256, 'error')": lambda: Flow.from_callback(register),
    "from_poll(client, 256, 1.0)": lambda: Flow.from_poll(client),
    "from_publisher(Failing)": lambda: Flow.from_publisher(Failing()),
    "defer(fail)": lambda: Flow.defer(fail),
    "read_lines('/nowhere/a.csv')": lambda: read_lines(Path("/nowhere/a.csv")),
    "read_chunks('/nowhere/a.csv')": lambda: read_chunks("/nowhere/a.csv"),
    "from_process('/nowhere/sort')": lambda: from_process(["/nowhere/sort"]),
}


@pytest.mark.parametrize("shown", SOURCES)
@pytest.mark.parametrize("among_others", [False, True], ids=["alone", "merged"])
async def test_the_failure_of_a_source_names_it(shown: str, among_others: bool) -> None:
    source = SOURCES[shown]()
    flow = Flow.merge(Flow[Any].never(), source) if among_others else source

    with pytest.raises(OSError, match=r"disk|No such file") as failed:
        await flow.drain()

    place = failed.value.__notes__[0]
    assert place.startswith(f"in {shown}, chained at ")
    assert f"{__file__}:" in place


async def test_a_connector_that_makes_its_flow_later_names_the_line_of_the_program() -> None:
    def opens(_: dict[str, str]) -> Any:
        raise ValueError("no address")

    with pytest.raises(ValueError, match="no address") as failed:
        await follow_events(opens).drain()

    place = failed.value.__notes__[-1]
    assert place.startswith("in follow_events(opens), chained at ")
    assert f"{__file__}:" in place
