"""What a scheduler is: the place where a region runs.

A scheduler is a value in a flow. It is asked for an event loop each time the flow is subscribed to, and
told when that region has ended, so that what it started for the region ends with it.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Protocol


class Released(Protocol):
    """What is told, once and from any thread, that what was started for a region has ended."""

    def __call__(self, join: Callable[[], None] | None = None) -> None:
        """Tell it; ``join``, where something is still in its last act, waits for the very end and takes no time."""
        ...


class Attachment(Protocol):
    """The hold that one region has on a scheduler."""

    @property
    def loop(self) -> AbstractEventLoop:
        """The event loop that the region runs on."""
        ...

    def detach(self, released: Released) -> None:
        """Let go; ``released`` is called when what was started for the region has ended."""


class Scheduler(Protocol):
    """Where a region runs; implement these three to run regions elsewhere."""

    @property
    def name(self) -> str:
        """How plans show the place."""
        ...

    def is_here(self) -> bool:
        """Tell whether the place is the running event loop."""
        ...

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Take a region in, called in the subscriber's thread.

        ``lost(error)`` is to be called, from any thread, if the loop ends before the region has detached.
        Raises SchedulerClosedError when there is no loop to run on.
        """
        ...
