"""Every operator, with whatever may fail failing at each of its steps: the error comes out once, and nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.testing import settle
from tests.grid.points import HERE, Books, InjectedError, Points, around, errors_in, left_since
from tests.registry import AnyFlow, Entry, Settings

ELEMENTS = 3
MOST_TURNS = 60
"""More turns of the loop than any entry takes for the elements, where no thread takes part."""
End = Callable[[AnyFlow, Points], Awaitable[object]]


def fused(flow: AnyFlow) -> AnyFlow:
    return flow


async def for_each(flow: AnyFlow, points: Points) -> None:
    await flow.for_each(points.identity)


async def for_each_async(flow: AnyFlow, points: Points) -> None:
    async def consume(item: Any) -> None:
        points.step()
        await asyncio.sleep(0)
        points.step()

    await flow.for_each(consume, max_concurrency=2)


async def iterated(flow: AnyFlow, points: Points) -> None:
    async with flow.open() as items:
        async for _ in items:
            points.step()


ENDS: list[End] = [for_each, for_each_async, iterated]


async def failing_at(place: int, entry: Entry, way: Callable[[AnyFlow], AnyFlow], end: End) -> Points:
    """Run an entry with one failing step. Check that the failure is reported once, and that nothing is left."""
    points, books, failure = Points(place), Books(), None
    before = around()
    with books.open():
        flow = entry.make(ELEMENTS, lambda flow: way(points.via(flow)), Settings(prefetch=2))
        try:
            await end(flow, points)
        except InjectedError as error:
            failure = error
        if way is not fused:
            await settle()  # the contract has no word by which a publisher could be waited for

    told = [error for each in (failure, *books.dropped) for error in errors_in(each) if error is points.error]
    if points.failed and not entry.recovers:
        assert told == [points.error], f"step {place} has failed, and that was told {len(told)} times"
    assert not points.failed or len(told) <= 1
    assert left_since(before) == []
    return points


# The second run has to come by the same steps as the first; how many elements are read ahead is a matter of turns.
@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize("way", [fused, Flow.from_publisher], ids=["fused", "apart"])
@pytest.mark.parametrize("entry", HERE, ids=str)
async def test_a_failure_at_any_step_comes_out_once_and_nothing_is_left(entry: Entry, way: Any, end: End) -> None:
    unharmed = await failing_at(0, entry, way, end)

    for place in range(1, unharmed.passed + 1):
        points = await failing_at(place, entry, way, end)
        assert points.failed, f"there was no step {place} of {unharmed.passed}"


@pytest.mark.parametrize("end", [for_each, iterated], ids=lambda end: end.__name__)
@pytest.mark.parametrize("way", [fused, Flow.from_publisher], ids=["fused", "apart"])
@pytest.mark.parametrize("entry", HERE, ids=str)
def test_a_failure_that_meets_a_cancellation_at_any_turn_is_reported_once(entry: Entry, way: Any, end: End) -> None:
    asyncio.run(cancelled_at_every_turn(entry, way, end))


async def cancelled_at_every_turn(entry: Entry, way: Any, end: End) -> None:
    """Have the first or the last step of a run fail, and cancel the run in one turn of the loop after another."""
    steps = (await failing_at(0, entry, way, end)).passed

    for place in (1, steps):
        for turns in range(MOST_TURNS):
            points, books, came = Points(place), Books(), list[BaseException]()

            async def main(points: Points = points, came: list[BaseException] = came) -> None:
                try:
                    await end(entry.make(ELEMENTS, lambda flow: way(points.via(flow)), Settings(prefetch=2)), points)
                except BaseException as error:
                    came.append(error)

            with books.open():
                task = asyncio.ensure_future(main())
                for _ in range(turns):
                    await asyncio.sleep(0)
                ended = not task.cancel()
                await asyncio.wait([task])
                await settle()

            told = [each for each in (*came, *books.dropped) if points.error in errors_in(each)]
            assert len(told) == points.failed or entry.recovers, f"step {place} failed, cancelled at turn {turns}"
            if ended:
                break
