"""The timers of an event loop, also of one that does not show them (uvloop)."""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Callable
from typing import Any

from attrs import define, field

from .._core.containers import new_dict

NAMES = ("call_later", "call_at")


@define(eq=False)
class Timers:
    """Knows the pending timers of a loop. It keeps none of them alive."""

    loop: asyncio.AbstractEventLoop
    _handles: dict[int, weakref.ref[asyncio.TimerHandle]] = field(init=False, factory=new_dict)
    _reached: float = field(init=False, default=-math.inf)

    def begin(self) -> None:
        """Wrap the loop's methods for timers, on this instance only."""
        for name in NAMES:
            setattr(self.loop, name, self._noting(getattr(self.loop, name)))

    def end(self) -> None:
        """Leave the loop as it was."""
        for name in NAMES:
            delattr(self.loop, name)

    def _noting(self, schedule: Callable[..., asyncio.TimerHandle]) -> Callable[..., asyncio.TimerHandle]:
        def call(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
            handle = schedule(*arguments, **options)
            if hasattr(handle, "when"):  # uvloop makes an ordinary callback of a timer that is due
                self._handles[id(handle)] = weakref.ref(handle)
            return handle

        return call

    def next(self) -> float | None:
        """Return the time of the loop at which the next timer is due."""
        times: list[float] = []
        for key, ref in list(self._handles.items()):  # at once: the loop may run in another thread
            handle = ref()
            if handle is None or handle.cancelled() or handle.when() <= self._reached:
                self._handles.pop(key, None)
            else:
                times.append(handle.when())
        return min(times, default=None)

    async def reach(self, when: float) -> None:
        """Wait, on the loop itself, until its timers have begun to run up to this time."""
        reached: asyncio.Future[None] = self.loop.create_future()
        self.loop.call_at(when, reached.set_result, None)
        await reached
        self._reached = when
