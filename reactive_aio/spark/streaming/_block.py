"""A resource that is open for the length of an ``async with`` block."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from attrs import define, field

from ...hooks import also_failed


class Closable(Protocol):
    """A resource that is closed in the end."""

    async def close(self) -> BaseException | None:
        """Close everything. Return the errors of the cleanup."""


C = TypeVar("C", bound=Closable)


@define(eq=False)
class Block(AbstractAsyncContextManager[C], Generic[C]):
    """The block. A generator would set the traceback of an exception that leaves it, which some exceptions forbid."""

    _open: Callable[[], Awaitable[C]]
    _opened: C = field(init=False)

    async def __aenter__(self) -> C:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failure = await self._opened.close()
        if failure is None:
            return
        if error is None:
            raise failure
        also_failed(error, failure)
