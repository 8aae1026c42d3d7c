"""The scheduler that stays on the event loop of the subscriber."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from attrs import frozen

from .base import Attachment, Released


@frozen
class Staying:
    """A region's hold on a loop. Nothing was started for it."""

    loop: asyncio.AbstractEventLoop

    def detach(self, released: Released) -> None:
        """Let go at once."""
        released()


@frozen
class Current:
    """The event loop of the subscriber: a boundary to it is a queue and a scheduled callback."""

    stays: ClassVar[bool] = True
    """Whether regions stay on the loop of the subscriber."""

    @property
    def name(self) -> str:
        """How plans show the place."""
        return "current()"

    def is_here(self) -> bool:
        """Return whether the place is the running event loop: always."""
        return True

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the running loop."""
        return Staying(asyncio.get_running_loop())


@frozen
class Home:
    """The event loop of the subscriber, for flows that are subscribed to on another loop."""

    loop: asyncio.AbstractEventLoop

    @property
    def name(self) -> str:
        """How plans show the place."""
        return Current().name

    def is_here(self) -> bool:
        """Return whether the place is the running event loop."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the loop."""
        return Staying(self.loop)


def current() -> Current:
    """Run the region on the event loop of the subscriber.

    A boundary to it is a hop: a bounded queue and a scheduled callback. The specification calls it the line between two
    regions on one resource. (Reactor: ``Schedulers.immediate``, but asynchronous.)

    >>> from reactive_aio import Flow, schedulers
    >>> Flow.range(3).publish_on(schedulers.current()).run_sync()
    [0, 1, 2]
    """
    return Current()
