"""Async context managers that are taken for iterators."""

from __future__ import annotations

from typing import Final, NoReturn

NOT_ENTERED: Final = (
    "open() returns a context manager. Write `async with flow.open() as items`, and iterate over items in the block"
)


class Entered:
    """The value of ``open()``. Iterating over it, and not over what it gives in a block, is a TypeError."""

    __slots__ = ()

    def __aiter__(self) -> NoReturn:
        raise TypeError(NOT_ENTERED)

    async def __anext__(self) -> NoReturn:
        raise TypeError(NOT_ENTERED)
