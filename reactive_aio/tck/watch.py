"""Watching an event loop, so that it can be asked whether anything is left to run.

This is what makes it possible to tell that something will *not* come without waiting for it by the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar

from attrs import define, field

Callback = Callable[..., object]


H = TypeVar("H", bound=asyncio.Handle)


class Tracked:
    """A callback that says when it begins to run. It keeps its owner in sight for loops that ask for it."""

    __slots__ = ("__self__", "_callback", "live")

    def __init__(self, callback: Callback, live: dict[Tracked, Any]) -> None:
        self._callback = callback
        self.live = live
        self.__self__ = getattr(callback, "__self__", None)

    def __call__(self, *args: Any) -> object:
        """Run it."""
        self.live.pop(self, None)
        return self._callback(*args)


@define(eq=False)
class Watch:
    """Knows the callbacks and timers of a loop that have not run yet."""

    loop: asyncio.AbstractEventLoop
    activity: int = field(init=False, default=0)
    """How many callbacks and timers were scheduled so far."""
    _ready: dict[Tracked, asyncio.Handle] = field(init=False, factory=dict[Tracked, asyncio.Handle])
    _timers: dict[Tracked, asyncio.TimerHandle] = field(init=False, factory=dict[Tracked, asyncio.TimerHandle])
    _methods: dict[str, Any] = field(init=False, factory=dict[str, Any])

    def begin(self) -> None:
        """Look over the shoulder of the loop, on this instance only."""
        for name in ("call_soon", "call_soon_threadsafe"):
            self._replace(name, self._soon(getattr(self.loop, name)))
        # call_later goes through call_at on some loops and not on others: counted twice, it would never be idle.
        self._replace("call_later", self._later(self.loop.call_later))
        self._replace("call_at", self._later(self.loop.call_at))

    def end(self) -> None:
        """Leave the loop as it was."""
        for name in self._methods:
            delattr(self.loop, name)
        self._methods.clear()

    def _replace(self, name: str, method: Any) -> None:
        self._methods[name] = method
        setattr(self.loop, name, method)

    def _soon(self, schedule: Callable[..., asyncio.Handle]) -> Callable[..., asyncio.Handle]:
        def call_soon(callback: Callback, *args: Any, context: Context | None = None) -> asyncio.Handle:
            if _looks(callback):
                return schedule(callback, *args, context=context)
            self.activity += 1
            tracked = Tracked(callback, self._ready)
            # Entered before it is scheduled: another thread may run it at once.
            self._ready[tracked] = asyncio.Handle(callback, (), self.loop)
            handle = schedule(tracked, *args, context=context)
            if tracked in self._ready:
                self._ready[tracked] = handle
            return handle

        return call_soon

    def _later(self, schedule: Callable[..., asyncio.TimerHandle]) -> Callable[..., asyncio.TimerHandle]:
        def call_later(
            when: float, callback: Callback, *args: Any, context: Context | None = None
        ) -> asyncio.TimerHandle:
            if isinstance(callback, Tracked):
                return schedule(when, callback, *args, context=context)
            self.activity += 1
            tracked = Tracked(callback, self._timers)
            handle = schedule(when, tracked, *args, context=context)
            if hasattr(handle, "when"):
                self._timers[tracked] = handle
            else:
                # uvloop makes an ordinary callback of a timer that is due.
                tracked.live = self._ready
                self._ready[tracked] = handle
            return handle

        return call_later

    @property
    def busy(self) -> bool:
        """Tell whether callbacks are waiting for their turn."""
        return _purge(self._ready)

    @property
    def next_timer(self) -> float | None:
        """The time of the loop at which the next timer is due."""
        _purge(self._timers)
        return min((handle.when() for handle in list(self._timers.values())), default=None)


def _looks(callback: Callback) -> bool:
    """Tell whether a callback is that of a loop of the testing kit, which looks whether this one is idle too."""
    return str(getattr(callback, "__module__", "")).startswith("reactive_aio.testing.")


def _purge(handles: dict[Tracked, H]) -> bool:
    """Forget what was cancelled; tell whether anything is left."""
    for tracked, handle in list(handles.items()):
        if handle.cancelled():
            handles.pop(tracked, None)
    return bool(handles)
