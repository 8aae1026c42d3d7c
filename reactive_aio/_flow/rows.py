"""For connectors: the elements that are there, without a coroutine for each, or as one row for one system call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from .._core.missing import NOTHING
from .._fusion import label
from .flow import Flow

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


async def for_each_row(
    flow: Flow[T], fn: Callable[[list[T]], Awaitable[object]], weigh: Callable[[T], int], most: int, end: object
) -> None:
    """Await ``fn`` for rows: an element and the next ones that are there, as long as the row weighs less than ``most``.

    ``end`` is the function that errors name.
    """
    from .._runtime import rows

    await rows.for_each_row(flow, fn, weigh, most, lambda n: f"for_each({label(end)}), on element #{n}")


class Ready(Protocol[T_co]):
    """Returns elements that are there, without a wait."""

    @property
    def poll(self) -> Callable[[], T_co | Any]:
        """Return a function that returns the next element, or NOTHING if that needs a wait."""
        ...


class Never:
    """For an iterator that has only `anext`."""

    def poll(self) -> Any:
        """Return NOTHING."""
        return NOTHING


def readily(items: AsyncIterator[T]) -> Ready[T]:
    """Return an object whose ``poll`` returns the next element of an iterator, if that needs no wait."""
    ready: Ready[T] = getattr(items, "steps", NEVER)
    return ready


NEVER: Final = Never()
