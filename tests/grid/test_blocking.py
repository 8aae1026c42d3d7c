"""Every operator behind a source that blocks its thread: all arrives that would arrive of a source that awaits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, schedulers
from reactive_aio.operators.sourcing.iterable import Range
from reactive_aio.testing import run_virtual
from tests.grid.points import HERE
from tests.registry import AnyFlow, Entry, Settings

ELEMENTS = 300
"""More than any boundary hands over at a time."""
PATIENCE = 20.0
"""Seconds after which a source that should not have to wait goes on, so that a test fails and does not hang."""


def numbers_of(flow: AnyFlow) -> range | None:
    """Return the elements of a source of the registry; None for what an operator makes of it."""
    nodes = flow.__nodes__
    source = nodes.source.operator
    return source.items if isinstance(source, Range) and not nodes.steps else None


@define(eq=False)
class Waiting:
    """Sources that await, at their ends, until the test goes on."""

    over: asyncio.Event = field(factory=asyncio.Event)

    def via(self, flow: AnyFlow) -> AnyFlow:
        numbers = numbers_of(flow)
        return flow if numbers is None else Flow.from_async_iterable(lambda: self._give(numbers))

    async def _give(self, numbers: range) -> AsyncIterator[int]:
        for n in numbers:
            yield n
        await self.over.wait()


@define(eq=False)
class Blocking:
    """Sources on threads of their own that block them, at their ends, until the test goes on."""

    place: Callable[[AnyFlow], AnyFlow]
    over: threading.Event = field(factory=threading.Event)
    late: list[range] = field(factory=list[range])

    def via(self, flow: AnyFlow) -> AnyFlow:
        numbers = numbers_of(flow)
        return flow if numbers is None else self.place(Flow.from_iterable(lambda: self._give(numbers)))

    def _give(self, numbers: range) -> Iterator[int]:
        yield from numbers
        if not self.over.wait(PATIENCE):
            self.late.append(numbers)


def arriving(entry: Entry) -> int:
    """Return how many elements arrive before the sources end."""

    async def main() -> int:
        waiting, taken = Waiting(), list[Any]()
        flow = entry.make(ELEMENTS, waiting.via, Settings())
        task = asyncio.create_task(flow.for_each(taken.append))
        await asyncio.sleep(3600)
        found = len(taken)
        waiting.over.set()
        await task
        return found

    return run_virtual(main())


def moved(flow: AnyFlow) -> AnyFlow:
    return flow.subscribe_on(schedulers.thread("blocking"))


def moved_when_made(flow: AnyFlow) -> AnyFlow:
    return Flow.defer(lambda: flow).subscribe_on(schedulers.thread("blocking"))


@pytest.mark.parametrize("place", [moved, moved_when_made])
@pytest.mark.parametrize("entry", HERE, ids=str)
def test_what_a_source_has_made_arrives_while_it_blocks_its_thread(
    entry: Entry, place: Callable[[AnyFlow], AnyFlow]
) -> None:
    expected = arriving(entry)
    blocking, taken = Blocking(place), list[Any]()

    def take(item: Any) -> None:
        taken.append(item)
        if len(taken) == expected:
            blocking.over.set()

    async def main() -> None:
        if not expected:
            blocking.over.set()
        await entry.make(ELEMENTS, blocking.via, Settings()).for_each(take)

    asyncio.run(main())

    assert [] == blocking.late
