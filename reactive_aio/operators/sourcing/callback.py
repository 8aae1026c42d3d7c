"""The source of elements that come by callbacks, from any thread, with or without demand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any, Final, Protocol, TypeVar

from attrs import define, field, frozen

from ..._core.guard import FAILURES, Failed, as_failure, cancelled_from_outside, guarded, is_closed_with
from ..._core.notes import add_note
from ..._fusion import label
from ..._plan import Inlet, Pushed
from ...errors import BackpressureOverflowError
from ...hooks import also_failed, discard, drop_error
from ...spec import UNBOUNDED, Subscription, add_demand, subtract_demand
from .._fluent import is_async
from ..overflow.backlog import Backlog, Overflow
from ..sharing.mutex import Mutex

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

UNDOES: Final = "the task of a registration"


class Emitter(Protocol[T_contra]):
    """The object by which callbacks feed a flow. Its methods may be called from any thread, and return at once.

    Finalizers may call them too. A handler of ``signal.signal`` must not, since it may interrupt such a call: register it
    with ``loop.add_signal_handler``.
    """

    def next(self, item: T_contra, /) -> bool:
        """Emit an element. Return False if it was dropped, because there is no room or the flow has ended."""
        ...

    def error(self, error: BaseException, /) -> None:
        """Fail the flow, after the waiting elements."""

    def complete(self) -> None:
        """Complete the flow, after the waiting elements."""


Undo = Callable[[], object] | None
Register = Callable[[Emitter[T]], Undo | Awaitable[Undo]]


@frozen
class FromCallback(Pushed[T]):
    """Source of ``Flow.from_callback``."""

    register: Register[T]
    max_size: int
    overflow: Overflow

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Register, in the subscriber's context."""
        emission = Emission(inlet, Backlog[Any](self.max_size, self.overflow))
        inlet.show(emission.backlog)
        if is_async(self.register):
            emission.registering = Registering(emission, self.register)
            emission.registering.begin()
            return emission
        registered = guarded(inlet.context, self._registered, emission)
        if isinstance(registered, Failed):
            # It may have handed the emitter over before it failed.
            emission.cancel()
            raise registered.take()
        emission.unregister = registered
        return emission

    def _registered(self, emission: Emission) -> Undo:
        return checked(self.register, self.register(emission))


def checked(register: Callable[..., object], undo: object) -> Undo:
    """Raise unless the result can undo the registration."""
    if undo is None or callable(undo):
        return undo
    hint = ""
    if iscoroutine(undo):
        undo.close()  # else Python warns of it besides
        hint = ": make it an `async def`"
    raise TypeError(f"{label(register)} must return None or a function that undoes it, not {type(undo).__name__}{hint}")


@define(eq=False)
class Emission:
    """One subscription to callbacks: an Emitter for any thread, and the Subscription of the region on its loop.

    The mutex guards the backlog and the flags beside it, and nobody else's code runs under it, but for finalizers.
    """

    inlet: Inlet[Any]
    backlog: Backlog[Any]
    unregister: Undo = field(init=False, default=None)
    registering: Registering | None = field(init=False, default=None)
    """The task that has registered by awaiting, and undoes that."""
    _mutex: Mutex = field(init=False, factory=Mutex)
    _due: bool = field(init=False, default=False)
    """Whether a callback is scheduled that sees to the backlog."""
    _ended: bool = field(init=False, default=False)
    """Whether nothing more is taken."""
    _error: BaseException | None = field(init=False, default=None)
    _demand: int = field(init=False, default=0)
    _over: bool = field(init=False, default=False)
    """Whether nothing more is emitted. This, the next fields and the demand belong to the loop."""
    _cancelled: bool = field(init=False, default=False)

    # -- the Emitter, from any thread

    def next(self, item: Any) -> bool:
        """Put an element where the loop will find it. That of a finalizer in the middle of another call comes behind it."""
        if self._mutex.is_mine:
            self._mutex.later(partial(self.next, item))
            return True
        with self._mutex:
            lost = [item] if self._ended else self.backlog.add([item])
            post = not self._ended and not self._due
            if lost and not self._ended and self.backlog.overflow == "error":
                self._ended, self._error = True, self._overflowed()
            taken = not lost or (not self._ended and self.backlog.overflow == "drop_oldest")
            self._due = self._due or post
        if post:
            self.inlet.post(self._drain, None)
        if lost:
            # The hook is the subscriber's, not the caller's.
            self.inlet.context.copy().run(discard, lost)
        return taken

    def error(self, error: BaseException) -> None:
        """Fail after the waiting elements."""
        if not isinstance(error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"error() takes an exception, not {type(error).__name__}")
        self._end(error)

    def complete(self) -> None:
        """Complete after the waiting elements."""
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        if self._mutex.is_mine:
            self._mutex.later(partial(self._end, error))
            return
        with self._mutex:
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
            f"an element came when {self.backlog.size} were waiting: {self.inlet.where}. "
            "Raise max_size, or choose overflow='drop_oldest' or 'drop_latest'"
        )

    # -- the Subscription of the region, on its loop

    def request(self, n: int) -> None:
        """Note the demand. A region that requests is in the middle of its turn, so kept elements come in an event."""
        self._demand = add_demand(self._demand, n)
        with self._mutex:
            post = self.backlog.buffered > 0 and not self._due
            self._due = self._due or post
        if post:
            self.inlet.post(self._drain, None)

    def cancel(self) -> None:
        """Unregister, and let go of what waits; what unregistering raises at once comes out."""
        self._cancelled = True
        self._stop()
        self._leave()

    def _stop(self) -> None:
        """Emit and take nothing more, and let go of the waiting elements."""
        self._over = True
        with self._mutex:
            self._ended, self._due = True, True
            waiting = self.backlog.take(UNBOUNDED)
            error, self._error = self._error, None
        discard(waiting)
        if error is not None and not isinstance(error, BackpressureOverflowError):
            self.inlet.dropped(error)

    def _leave(self) -> bool:
        """Unregister. Return True if that is awaited, and `undone` is called after it."""
        if self.registering is not None:
            self.registering.leave(at_once=self._cancelled)
            return True
        unregister, self.unregister = self.unregister, None
        if unregister is None:
            return False
        given = self.inlet.context.copy().run(unregister)
        if not isawaitable(given):
            return False
        task = self.inlet.start(self._undo(given))
        if iscoroutine(given):
            task.add_done_callback(lambda _: given.close())  # if it has not begun: else Python warns of that
        return True

    async def _undo(self, given: Awaitable[object]) -> None:
        failures: list[BaseException] = []
        try:
            await given
        except FAILURES as error:
            if is_closed_with(error, self.inlet.loop):
                raise
            failures = [cancelled_from_outside(error, UNDOES) if isinstance(error, asyncio.CancelledError) else error]
        self.undone(failures)

    def _drain(self, _: None) -> None:
        """Emit the waiting elements, as far as there is demand."""
        while not self._over:
            with self._mutex:
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
        try:
            later = self._leave()
        except FAILURES as error:
            self.undone([error])
        else:
            if not later:
                self.undone([])

    def undone(self, failures: list[BaseException]) -> None:
        """Signal the end, when the registration has been undone or that has failed."""
        if self._cancelled:
            for failure in failures:
                self.inlet.cleanup_failed(failure)
            return
        if not self._over:  # what was to register has failed
            self._stop()
        error, self._error = self._error, None
        failures = failures if error is None else [error, *failures]
        if not failures:
            self.inlet.on_complete()
            return
        first, *others = failures
        add_note(first, f"in {self.inlet.where}")
        for other in others:
            also_failed(first, other)
        self.inlet.on_error(first)


@define(eq=False)
class Registering:
    """A registration that is awaited: one task, in one context, that registers, waits for the end of the flow, and undoes it."""

    emission: Emission
    register: Callable[[Any], Any]
    _left: asyncio.Event = field(init=False, factory=asyncio.Event)
    _task: asyncio.Task[None] | None = field(init=False, default=None)
    """The task, while it registers. After that it is not disturbed."""
    _cancelled: bool = field(init=False, default=False)

    def begin(self) -> None:
        """Start the task."""
        self._task = self.emission.inlet.start(self._run())

    def leave(self, *, at_once: bool) -> None:
        """Undo the registration. With ``at_once`` a registration that is still awaited is cancelled."""
        self._left.set()
        if at_once and self._task is not None:
            self._cancelled = True
            self._task.cancel()

    async def _run(self) -> None:
        failures: list[BaseException] = []
        try:
            undo = await self._registered()
            try:
                await self._left.wait()
            finally:
                given = None if undo is None else undo()
                if isawaitable(given):
                    await given
        except FAILURES as error:
            if is_closed_with(error, self.emission.inlet.loop):
                raise
            failures = self._failures(error)
        self._task = self.emission.registering = None
        self.emission.undone(failures)

    async def _registered(self) -> Undo:
        undo = checked(self.register, await self.register(self.emission))
        self._task = None
        return undo

    def _failures(self, error: BaseException) -> list[BaseException]:
        if not isinstance(error, asyncio.CancelledError):
            return [error]
        if not self._cancelled:
            return [cancelled_from_outside(error, UNDOES)]
        # One behind the registration is its own: nobody cancels what undoes.
        return [] if self._task is not None else [as_failure(error)]
