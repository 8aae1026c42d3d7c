"""A function that takes longer than a turn of the event loop holds it for a call or two, wherever a flow calls it.

The clock goes by the calls alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any, TypeAlias

import pytest
from attrs import define, field

from reactive_aio import Flow, schedulers

CALLS = 200
SECONDS = 2e-3


@define(eq=False)
class Slow:
    """A function, and how often it was called in each turn of the event loop."""

    now: list[float]
    calls: int = 0
    at_turns: list[int] = field(factory=list)

    def __call__(self, item: Any = 0, *_: Any) -> Any:
        self.now[0] += SECONDS
        self.calls += 1
        return item

    def lines(self, _: object = 0) -> Iterator[int]:
        for n in range(CALLS):
            yield self(n)

    def nothing(self, _: object) -> tuple[int, ...]:
        self()
        return ()

    async def read(self, flow: Flow[Any]) -> None:
        async for item in flow:
            self(item)

    async def run(self, end: Awaitable[Any]) -> int:
        """Return the most calls in one turn, once the flow is under way."""
        task = asyncio.ensure_future(end)
        while not task.done():
            self.at_turns.append(self.calls)
            await asyncio.sleep(0)
        await task
        assert self.calls >= CALLS - 1
        return max(
            after - before for before, after in zip(self.at_turns, [*self.at_turns[1:], self.calls], strict=True)
        )


async def ready() -> AsyncGenerator[int]:
    for n in range(20):
        yield n


Made: TypeAlias = Callable[[Slow], Awaitable[Any]]

N = Flow.range(CALLS)
LIST = Flow.from_iterable([*range(CALLS)])
PLACES: dict[str, Made] = {
    "map": lambda slow: N.map(slow).drain(),
    "a source": lambda slow: Flow.from_iterable(slow.lines).drain(),
    "flat_map_iterable": lambda slow: Flow.of(1).flat_map_iterable(slow.lines).drain(),
    "flat_map_iterable, to a list": lambda slow: Flow.of(1).flat_map_iterable(slow.lines).to_list(),
    "flat_map_iterable, each to nothing": lambda slow: N.flat_map_iterable(slow.nothing).drain(),
    "map behind flat_map_iterable": lambda slow: Flow.of(1).flat_map_iterable(lambda _: range(CALLS)).map(slow).drain(),
    "map behind two of them": lambda slow: (
        Flow.range(20).flat_map_iterable(range).flat_map_iterable(range).map(slow).drain()
    ),
    "map behind buffer": lambda slow: N.buffer(CALLS).flat_map_iterable(list).map(slow).drain(),
    "map_batches": lambda slow: N.map_batches(slow.lines, size=CALLS).drain(),
    "group_by": lambda slow: N.group_by(slow).flat_map(lambda group: group).drain(),
    "group_by_key": lambda slow: N.group_by_key(slow).count().drain(),
    "sort_by": lambda slow: N.sort_by(slow).drain(),
    "sort_by, the other way": lambda slow: N.sort_by(slow, reverse=True).drain(),
    "distinct": lambda slow: N.distinct(slow).drain(),
    "scan": lambda slow: N.scan(slow).drain(),
    "map behind sort_by": lambda slow: N.sort_by().map(slow).drain(),
    "map behind take_last": lambda slow: N.take_last(CALLS).map(slow).drain(),
    "map behind merge": lambda slow: N.merge(N).map(slow).drain(),
    "map behind zip": lambda slow: N.zip(N).map(slow).drain(),
    "map behind a boundary": lambda slow: N.publish_on(schedulers.current()).map(slow).drain(),
    "flat_map to given elements": lambda slow: N.flat_map(lambda n: Flow.of(slow(n))).drain(),
    "concat_map to given elements": lambda slow: N.concat_map(lambda n: Flow.of(slow(n))).drain(),
    "flat_map": lambda slow: Flow.range(20).flat_map(lambda _: Flow.range(20).map(slow)).drain(),
    "concat_map to async generators": lambda slow: (
        Flow.range(20).concat_map(lambda _: Flow.from_async_iterable(ready).map(slow)).drain()
    ),
    "retry behind timeout": lambda slow: N.timeout(5).map(slow).retry(1).drain(),
    "window": lambda slow: N.window(7).flat_map(lambda window: window.map(slow)).drain(),
    "share": lambda slow: N.map(slow).share().drain(),
    "for_each": N.for_each,
    "to_dict": N.to_dict,
    "to_sorted_list": lambda slow: N.to_sorted_list(key=slow),
    "top_k": lambda slow: N.top_k(CALLS, key=slow),
    "async for over a range": lambda slow: slow.read(N),
    "async for over a list": lambda slow: slow.read(LIST),
    "async for behind map": lambda slow: slow.read(N.map(abs)),
}


@pytest.mark.parametrize("place", PLACES)
async def test_a_slow_function_does_not_hold_the_event_loop_for_many_calls(place: str, still: list[float]) -> None:
    slow = Slow(still)

    # One call ends a turn. Another may have begun it, and inner flows begin on the spot.
    assert await slow.run(PLACES[place](slow)) <= 4
