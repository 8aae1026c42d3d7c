"""The end that awaits a function for rows of elements, instead of each element."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .._core.guard import FAILURES, cancels
from .._core.missing import NOTHING
from .._plan import FlowLike
from .iterating import Opened, located


async def for_each_row(
    flow: FlowLike,
    fn: Callable[[list[Any]], Awaitable[object]],
    weigh: Callable[[Any], int],
    most: int,
    at: Callable[[int], str],
) -> None:
    """Await ``fn`` for lists of elements that are already there, in the calling task.

    A list has one element, and the elements that follow it at once. The list ends in three cases: the iterator has to be
    awaited, the time of a turn is over, or the list weighs ``most``. ``at`` holds the end and the place of an element, for
    errors.
    """
    before = cancels()
    taken = 0
    async with Opened(flow) as items:
        there = items.there
        async for item in items:
            try:
                row, weight = [item], weigh(item)
                while weight < most and (item := there()) is not NOTHING:
                    row.append(item)
                    weight += weigh(item)
                await fn(row)
            except FAILURES as error:
                failure = located(error, cancels() > before, f"in {at(taken)} of {items.source}")
                try:
                    if failure is error:
                        raise
                    raise failure from error
                finally:
                    del failure  # its traceback leads back to here
            taken += len(row)
            del item, row  # which would be kept for as long as the flow waits
