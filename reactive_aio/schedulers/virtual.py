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
    """A virtual loop that also looks at the loops of its subscribers, on any thread."""

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
    """Whether operators on a source that `subscribe_on` has moved here use its clock."""
    _homes: WeakSet[asyncio.AbstractEventLoop] = field(init=False, factory=WeakSet[asyncio.AbstractEventLoop])

    @property
    def name(self) -> str:
        """How plans show the place."""
        return "virtual_time()"

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the thread's loop. From now on it also looks at the loop of the subscriber."""
        with suppress(RuntimeError):
            self._homes.add(asyncio.get_running_loop())
        return ThreadScheduler.attach(self, lost)

    def _new_loop(self, *, of_a_test: bool) -> asyncio.AbstractEventLoop:
        """Return the loop of the thread."""
        del of_a_test
        return _RegionLoop(self._homes)


def virtual_time() -> VirtualTimeScheduler:
    """Run the region on a thread whose clock jumps, so that waits by the clock take no time.

    ``asyncio.sleep``, timeouts and ``Flow.interval`` end as soon as nothing else can run: on that loop, on the loop of
    the subscriber, or on the loop of another region. Then the clock, which starts at 0, jumps to the next timer. So a
    day of ticks passes at once, in the same order and at the same ``asyncio.get_running_loop().time()``.

    The clock belongs to the regions on this scheduler. It does not wait for sleeps elsewhere, so use the same
    ``virtual_time()`` for all regions that use the clock. While a socket is open there, or a thread or executor is at
    work, the clock runs no faster than an ordinary one. To run a whole test on virtual time, with the subscriber, use
    ``reactive_aio.testing.run_virtual``. The thread starts and ends as with ``schedulers.thread``.
    (Reactor: ``VirtualTimeScheduler``, RxJava: ``TestScheduler``; both are moved by hand.)

    >>> from reactive_aio import Flow, schedulers
    >>> Flow.interval(3600.0).subscribe_on(schedulers.virtual_time()).take(24).run_sync()[-1]
    23
    """
    return VirtualTimeScheduler("virtual time")
