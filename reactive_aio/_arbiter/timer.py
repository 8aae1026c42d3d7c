"""The timer of a subscription: set and set again for each element, by the clock of its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from attrs import Factory, define, field

from .._plan.source import Host


@define(eq=False)
class Timer:
    """Calls a function at a time of the loop's clock, in the subscriber's context, unless it is stopped before.

    To set it later or to stop it only notes so: a callback of the loop that comes too early goes on to the time that
    holds by then. So an element that puts the time off costs the loop nothing. ``cancel`` is for the end of the
    subscription: behind it there is no callback left, and no setting it any more.
    """

    host: Host
    _call: Callable[[], None] | None
    _loop: asyncio.AbstractEventLoop = field(init=False, default=Factory(lambda self: self.host.loop, takes_self=True))
    _due: float | None = field(init=False, default=None)
    """When to call, or None while it is stopped."""
    _handle: asyncio.Handle | None = field(init=False, default=None)
    _at: float = field(init=False, default=0.0)
    """When the callback of the loop comes, where there is one."""

    @property
    def now(self) -> float:
        """The time of the loop's clock, in seconds."""
        return self._loop.time()

    @property
    def running(self) -> bool:
        """Whether it is set."""
        return self._due is not None

    def start(self, seconds: float) -> None:
        """Set it to ``seconds`` from now, whatever it was set to before."""
        # As `now` and `start_at`, without their calls: a timeout comes by here for each element.
        if self._call is None:
            return
        self._due = when = self._loop.time() + seconds
        if self._handle is None or when < self._at:
            self._wind(when)

    def start_at(self, when: float) -> None:
        """Set it to a time of the loop's clock, whatever it was set to before."""
        if self._call is None:
            return
        self._due = when
        if self._handle is None or when < self._at:
            self._wind(when)

    def stop(self) -> None:
        """Call nothing until it is set again."""
        self._due = None

    def cancel(self) -> None:
        """Call nothing any more."""
        self._due = self._call = None
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()

    def _wind(self, when: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._at = when
        self._handle = self._loop.call_at(when, self._ring, context=self.host.context)

    def _ring(self) -> None:
        self._handle = None
        due, call = self._due, self._call
        if due is None or call is None:
            return
        # No look at the clock: that of uvloop counts milliseconds, and its callbacks may come half of one early.
        if due > self._at:
            self._wind(due)
        else:
            self._due = None
            call()
