"""The source of what comes by callbacks, from any thread, whether it is wanted or not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from attrs import define, field, frozen

from ..._core.guard import Failed, close_all, guarded
from ..._plan import Inlet, Pushed
from ...errors import BackpressureOverflowError
from ...hooks import also_failed, discard, drop_error
from ...spec import UNBOUNDED, Subscription, add_demand, subtract_demand
from ..overflow.backlog import Backlog, Overflow

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Emitter(Protocol[T_contra]):
    """What callbacks feed a flow by; its methods may be called from any thread, and return at once."""

    def next(self, item: T_contra, /) -> bool:
        """Emit an element; False if it was dropped, for want of room or because the flow has ended."""
        ...

    def error(self, error: BaseException, /) -> None:
        """Fail the flow, behind the elements that wait."""

    def complete(self) -> None:
        """Complete the flow, behind the elements that wait."""


@frozen
class FromCallback(Pushed[T]):
    """Source of ``Flow.from_callback``."""

    register: Callable[[Emitter[T]], Callable[[], object] | None]
    max_size: int
    overflow: Overflow

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Register, in the subscriber's context."""
        emission = Emission(inlet, Backlog[Any](self.max_size, self.overflow))
        inlet.show(emission.backlog)
        registered = guarded(inlet.context, self.register, emission)
        if isinstance(registered, Failed):
            # It may have handed the emitter over before it failed.
            emission.cancel()
            raise registered.take()
        emission.unregister = registered
        return emission


@define(eq=False)
class Emission:
    """One subscription to callbacks: an Emitter for any thread, and the Subscription of the region on its loop.

    The lock guards the backlog and the flags beside it, and nobody else's code runs under it.
    """

    inlet: Inlet[Any]
    backlog: Backlog[Any]
    unregister: Callable[[], object] | None = field(init=False, default=None)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _due: bool = field(init=False, default=False)
    """Whether a callback is scheduled that sees to the backlog."""
    _ended: bool = field(init=False, default=False)
    """Whether nothing more is taken."""
    _error: BaseException | None = field(init=False, default=None)
    _demand: int = field(init=False, default=0)
    _over: bool = field(init=False, default=False)
    """Whether nothing more is given; this and the demand belong to the loop."""

    # -- the Emitter, from any thread

    def next(self, item: Any) -> bool:
        """Put an element where the loop will find it."""
        with self._lock:
            lost = [item] if self._ended else self.backlog.add([item])
            post = not self._ended and not self._due
            if lost and not self._ended and self.backlog.overflow == "error":
                self._ended, self._error = True, self._overflowed()
            taken = not lost or (not self._ended and self.backlog.overflow == "drop_oldest")
            self._due = self._due or post
        if post:
            self.inlet.post(self._drain, None)
        if lost:
            # The hook is that of whoever subscribed, not of whoever calls.
            self.inlet.context.copy().run(discard, lost)
        return taken

    def error(self, error: BaseException) -> None:
        """Fail behind what waits."""
        if not isinstance(error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"error() takes an exception, not {type(error).__name__}")
        self._end(error)

    def complete(self) -> None:
        """Complete behind what waits."""
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        with self._lock:
            late = self._ended
            post = not late and not self._due
            if not late:
                self._ended, self._error = True, error
                self._due = True
        if post:
            self.inlet.post(self._drain, None)
        if late and error is not None:
            self.inlet.context.copy().run(drop_error, error)

    def _overflowed(self) -> BackpressureOverflowError:
        return BackpressureOverflowError(
            f"an element came when {self.backlog.size} were waiting; a larger max_size takes more, "
            f"overflow='drop_latest' or 'drop_oldest' any: {self.inlet.where}"
        )

    # -- the Subscription of the region, on its loop

    def request(self, n: int) -> None:
        """Note what is wanted; a region that asks is in the middle of its turn, so what waits comes in an event."""
        self._demand = add_demand(self._demand, n)
        with self._lock:
            post = self.backlog.buffered > 0 and not self._due
            self._due = self._due or post
        if post:
            self.inlet.post(self._drain, None)

    def cancel(self) -> None:
        """Unregister, and let go of what waits; what unregistering raises comes out."""
        self._over = True
        with self._lock:
            self._ended, self._due = True, True
            waiting = self.backlog.take(UNBOUNDED)
            error, self._error = self._error, None
        discard(waiting)
        if error is not None and not isinstance(error, BackpressureOverflowError):
            self.inlet.dropped(error)
        self._leave()

    def _leave(self) -> None:
        unregister, self.unregister = self.unregister, None
        if unregister is not None:
            self.inlet.context.copy().run(unregister)

    def _drain(self, _: None) -> None:
        """Give what waits, as far as it is wanted."""
        while not self._over:
            with self._lock:
                items = self.backlog.take(self._demand)
                finished = self._ended and not self.backlog.buffered
                # To be called again by what comes next.
                self._due = bool(items)
            if not items:
                break
            self._demand = subtract_demand(self._demand, len(items))
            self.inlet.on_chunk(items)
        else:
            return
        if finished:
            self._finish()

    def _finish(self) -> None:
        self._over = True
        error, self._error = self._error, None
        failures = [] if error is None else [error]
        failures += close_all((self._leave,))
        if not failures:
            self.inlet.on_complete()
            return
        first, *others = failures
        for other in others:
            also_failed(first, other)
        self.inlet.on_error(first)
