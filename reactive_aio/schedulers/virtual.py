"""The scheduler that runs regions on a thread whose clock jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar
from weakref import WeakSet

from attrs import define, field

from .._clocks import VirtualTimeLoop
from .base import Attachment
from .thread import ThreadScheduler


class _RegionLoop(VirtualTimeLoop):
    """A virtual loop that looks at the loops of those who subscribed as well, whatever thread they are in."""

    def __init__(self, homes: WeakSet[asyncio.AbstractEventLoop]) -> None:
        self._homes = homes
        super().__init__()

    def _others(self, *, settling: bool) -> str | None:
        if not self._scheduled and not settling:
            return None  # there is nowhere to jump to
        homes = [home for home in list(self._homes) if home is not self and home.is_running()]
        # As in settling: what others wait for by their own clocks, this one does not wait for.
        return self._bystanders.busy(settling=True, loops=homes)


@define(eq=False)
class VirtualTimeScheduler(ThreadScheduler):
    """A thread with an event loop on virtual time, shared by the regions that are placed on it."""

    has_clock: ClassVar[bool] = True
    """Whether operators go by its clock that are called on a source which `subscribe_on` has moved here."""
    _homes: WeakSet[asyncio.AbstractEventLoop] = field(init=False, factory=WeakSet[asyncio.AbstractEventLoop])

    @property
    def name(self) -> str:
        """How plans show the place."""
        return "virtual_time()"

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the thread's loop, and have it look at the loop of the subscriber."""
        with suppress(RuntimeError):
            self._homes.add(asyncio.get_running_loop())
        return ThreadScheduler.attach(self, lost)

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        return _RegionLoop(self._homes)


def virtual_time() -> VirtualTimeScheduler:
    """Run the region on a thread whose clock jumps: what is waited for there by the clock takes no time.

    ``asyncio.sleep``, timeouts and ``Flow.interval`` are over as soon as nothing else can run. That is: nothing on that
    loop, nothing on the loop of the subscriber, nothing on a loop of another region. Then the clock, which starts at 0,
    jumps to the next timer. So a day of ticks passes at once, in the order and at the
    ``asyncio.get_running_loop().time()`` that it would have had.

    The clock belongs to the regions on this scheduler. It does not wait for sleeps elsewhere, so give all regions with a
    sense of time the same ``virtual_time()``. While a socket is open there, or a thread or executor is at work, the clock
    runs no faster than an ordinary one. To have all of a test on virtual time, with the subscriber, use
    ``reactive_aio.testing.run_virtual``. The thread starts and ends as that of ``schedulers.thread``.
    (Reactor: ``VirtualTimeScheduler``, RxJava: ``TestScheduler``; both are moved by hand.)

    >>> from reactive_aio import Flow, schedulers
    >>> Flow.interval(3600.0).subscribe_on(schedulers.virtual_time()).take(24).run_sync()[-1]
    23
    """
    return VirtualTimeScheduler("virtual time")
