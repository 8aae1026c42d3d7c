"""Waiting for a future of somebody else in one's own task: a cancel of the task ends the wait, and leaves the future alone.

``await asyncio.wait([future])`` does the same by a future of its own, which takes one more turn of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any


class SharedWait:
    """Stands for a future where a task waits for it. Yielded by a coroutine, it is to the task what a future is."""

    __slots__ = ("_asyncio_future_blocking", "_cancelled", "_context", "_future", "_wake")

    def __init__(self, future: asyncio.Future[Any] | SharedWait) -> None:
        self._asyncio_future_blocking = True
        """Says to the task that this is awaited, and not yielded by mistake."""
        self._future = future
        self._wake: Callable[[SharedWait], object] | None = None
        """Wakes the task."""
        self._context: Context | None = None
        """That of the task."""
        self._cancelled: tuple[Any, ...] | None = None
        """The message of the cancel, if there was one."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the future."""
        return self._future.get_loop()

    def add_done_callback(self, wake: Callable[[SharedWait], object], *, context: Context | None = None) -> None:
        """Have the task woken when the future is done."""
        self._wake, self._context = wake, context
        self._future.add_done_callback(self._done, context=context)

    def remove_done_callback(self, wake: Callable[[SharedWait], object]) -> None:
        """Have the task not be woken."""
        if self._wake == wake:
            self._wake = None
            self._future.remove_done_callback(self._done)

    def _done(self, _: object) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake(self)

    def end(self) -> None:
        """Wake the task, whether the future is done or not."""
        wake, self._wake = self._wake, None
        if wake is not None:
            self._future.remove_done_callback(self._done)
            self.get_loop().call_soon(wake, self, context=self._context)

    def cancel(self, msg: object = None) -> bool:
        """Cancel the wait, and not the future. Return False if it is over."""
        if self._wake is None:
            return False
        self._cancelled = () if msg is None else (msg,)
        self.end()
        return True

    def result(self) -> None:
        """Raise the cancel of the wait, if there was one. A failure of the future is no failure of the wait."""
        if self._cancelled is not None:
            raise asyncio.CancelledError(*self._cancelled)
