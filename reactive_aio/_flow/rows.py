"""For connectors: what is there at once, without a coroutine for each element, or as one row for one call of the system."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from .._fusion import label
from .flow import Flow

T = TypeVar("T")


async def for_each_row(
    flow: Flow[T], fn: Callable[[list[T]], Awaitable[object]], weigh: Callable[[T], int], most: int, end: object
) -> None:
    """Await ``fn`` for rows: an element, and those behind it that are there at once, as long as the row weighs less than ``most``.

    ``end`` is the function that errors name.
    """
    from .._runtime import rows

    await rows.for_each_row(flow, fn, weigh, most, lambda n: f"for_each({label(end)}), on element #{n}")


def readily(items: AsyncIterator[T]) -> Callable[[None], T | None]:
    """Return what gives the next element of an iterator if that needs no wait, else None: then `anext` has it."""
    ready: Callable[[None], T | None] = getattr(items, "ready", _none)
    return ready


def _none(_: None) -> None:
    """Give nothing, for an iterator that has only `anext`."""
