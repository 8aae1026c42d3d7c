"""Places that are kept for many flows: by a ``with`` block, an ``async with`` block, or from ``open`` to ``close``."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import ClassVar, Protocol, Self

from .._core.here import Here


class Ending(Protocol):
    """Something that is ending."""

    def is_here(self) -> bool:
        """Return whether the calling thread belongs to it."""
        ...

    def join(self) -> None:
        """Wait for the very end. This takes no time once ``told`` was called."""


class Kept(Here, ABC):
    """A resource that is started for the first flow on it. ``open`` keeps it after the last one."""

    __slots__ = ()

    STAYS: ClassVar[str] = (
        "a scheduler can't be pickled: its threads and processes belong to this process. Make it in the process that uses it"
    )

    @abstractmethod
    def open(self) -> Self:
        """Keep it until ``close``, also while no region runs there."""

    @abstractmethod
    def _shut(self, told: Callable[[], None]) -> Sequence[Ending]:
        """Begin to end for good. ``told`` is called, on any thread, as the last act, or now."""

    def close(self) -> None:
        """End it for good and wait for that. Flows that still run there end with SchedulerClosedError.

        A call by a function of such a flow does not wait, because it would wait for itself.
        """
        ended = threading.Event()
        endings = self._shut(ended.set)
        if not _any_here(endings):
            ended.wait()
            _join(endings)

    async def __aenter__(self) -> Self:
        return self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        home, ended = asyncio.get_running_loop(), asyncio.Event()

        def told() -> None:
            with suppress(RuntimeError):  # the loop that waited has been closed
                home.call_soon_threadsafe(ended.set)

        endings = self._shut(told)
        if not _any_here(endings):
            await ended.wait()
            _join(endings)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _any_here(endings: Sequence[Ending]) -> bool:
    return any(ending.is_here() for ending in endings)


def _join(endings: Sequence[Ending]) -> None:
    for ending in endings:
        ending.join()
