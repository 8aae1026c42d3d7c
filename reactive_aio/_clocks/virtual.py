"""An event loop on virtual time: where nothing can run any more, the clock jumps to the next timer.

Nothing of asyncio is patched. The loop is asyncio's own, over a selector that does not sleep: asked to wait for the
next timer, it moves the clock there. The idea is trio's autojump clock. This one also looks at threads, whose callbacks
come by ``call_soon_threadsafe`` at times that no clock of ours decides.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple, Unpack

from attrs import define, field

from .bystanders import Bystanders
from .counted import CLOCK, Work
from .stuck import waiting
from .windows import GLANCE

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EventList = list[tuple[selectors.SelectorKey, int]]


class DeadlockError(RuntimeError):
    """Nothing is scheduled on a virtual loop and nothing can come: the test would wait for ever."""


class _Selector(selectors.BaseSelector):
    """Hands every wait to the loop, together with the selector that looks at the sockets."""

    def __init__(self) -> None:
        self.real = selectors.DefaultSelector()
        self.wait: Callable[[float | None], EventList] = self.real.select

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> EventList:
        return self.wait(timeout)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self.real.get_map()

    def close(self) -> None:
        self.wait = self.real.select  # the cycle with the loop
        self.real.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else can run.

    ``asyncio.sleep``, timeouts and ``call_later`` of any code that runs on it take no time, however long they are.
    ``loop.time()`` starts at 0 and shows what they would have taken. Callbacks run in asyncio's order. The turns of flows
    end by a count and not by the clock of the machine, so a program runs in the same order each time.

    The clock never jumps over a thread at work. That is an executor's job, a region on ``schedulers.thread``, a thread
    that was started while the loop was there, or any holder of a ``hold()``. Nor does it jump over an open socket,
    unless ``instant_io``. As long as there is one, a timer falls due no earlier than it would on an ordinary loop. But the
    time that the thread needs is not added to the clock, so what a test sees does not depend on it.

    Ready callbacks run before time passes. A source that never waits keeps its loop busy without end. That does not
    stop the clock for ever: after some real seconds timers fall due as they would on an ordinary loop.

    Where nothing is scheduled and nothing can come, ``DeadlockError`` says which tasks wait, and where.

    >>> import asyncio
    >>> async def main():
    ...     async with asyncio.timeout(86400):
    ...         await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    ...     runner.run(main())
    3600.0
    """

    # Those of asyncio.BaseEventLoop, unchanged from Python 3.4 to 3.15.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _default_executor: ThreadPoolExecutor | None
    _executor_shutdown_called: bool
    _clock_resolution: float

    def __init__(self, *, virtual: bool = True, instant_io: bool = False, patience: float = 2.0) -> None:
        """Make a loop.

        Args:
            virtual: False for the real clock, with all else as it is here.
            instant_io: let the clock jump while sockets are open: right where both ends are in the test.
            patience: real seconds to wait for other threads before it is called a deadlock. A loop that is busy without end waits as long
            before time passes.
        """
        self.jumps: int = 0
        """The number of jumps of the clock."""
        self._virtual = virtual
        self._instant_io = instant_io
        self._patience = patience
        self._now = 0.0
        self._rested = time.monotonic()  # when the loop was last at rest, or its clock last moved
        self._waited = 0.0  # real seconds spent waiting for others since the clock last moved
        self._held = 0  # changed on the loop's thread only
        self._settling: deque[asyncio.Future[None]] = deque()
        self._expiring: list[tuple[float, asyncio.Future[Any]]] = []  # by the real clock
        self._reason: str | None = None  # for the last wait
        self._bystanders = Bystanders()
        self._work = Work()
        selector = _Selector()
        super().__init__(selector)
        self._real = selector.real
        selector.wait = self._wait

    def time(self) -> float:
        """Return the time of the loop's clock, in seconds since the loop was made."""
        return self._now if self._virtual else super().time()

    def run_forever(self) -> None:
        """Run until stopped. On virtual time the turns of flows end by a count, and not by the clock of the machine."""
        if not self._virtual:
            super().run_forever()
            return
        with CLOCK.counting(self._work):
            super().run_forever()

    # -- who may still call

    def hold(self) -> Callable[[], None]:
        """Note that something outside may still call ``call_soon_threadsafe``; called on the loop.

        Until the result is called, from any thread, the clock does not jump and ``settle`` waits.
        """
        self._held += 1
        return self._release

    def _release(self) -> None:
        if not self.is_closed():
            try:
                self.call_soon_threadsafe(self._released)
            except RuntimeError:  # closed in this moment
                return

    def _released(self, _: object = None) -> None:
        self._held -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in an executor. The clock does not jump until it has ended, cancelled or not."""
        if executor is None:
            if self._executor_shutdown_called:
                raise RuntimeError("Executor shutdown has been called")
            executor = self._default_executor or ThreadPoolExecutor(thread_name_prefix="asyncio")
            if executor is not self._default_executor:
                self.set_default_executor(executor)
        keeping = _Keeping(executor)
        result = super().run_in_executor(keeping, func, *args)
        # Both: the job ends in its thread a moment before the loop hears of it, and a cancelled
        # future has ended a good while before its job.
        self._held += 1
        result.add_done_callback(self._released)
        if keeping.job is not None:
            release = self.hold()
            keeping.job.add_done_callback(lambda _: release())
        return result

    # -- waiting

    def expire(self, future: asyncio.Future[Any], within: float) -> None:
        """Fail a future that has not come after ``within`` real seconds, or at once where it can't come any more.

        With TimeoutError, or DeadlockError.
        """
        self._expiring = [each for each in self._expiring if not each[1].done()]
        self._expiring.append((time.monotonic() + within, future))

    async def settle(self, within: float = 30.0) -> None:
        """Wait until nothing else is scheduled for now; see the function of this name."""
        future: asyncio.Future[None] = self.create_future()
        self._settling.append(future)
        self.expire(future, within)
        await future

    def _wait(self, timeout: float | None) -> EventList:
        """Stand in for ``select``: called when all that was ready has run, or only to look at the sockets."""
        events = self._real.select(0)
        if self._expiring:
            self._expire_due()
        if self._ready and self._virtual and self._scheduled:
            self._pass_the_busy()
        if events or self._ready or (timeout is not None and timeout <= 0):
            return events
        while self._settling and self._settling[0].done():
            self._settling.popleft()
        self._reason = self._busy() if self._virtual or self._settling else None
        # Looking at threads takes a moment, in which one may have called.
        return [] if self._ready else self._rest(timeout)

    def _rest(self, timeout: float | None) -> EventList:
        """Nothing is ready: wait for other threads, answer a caller that waits for rest, or let time pass."""
        self._rested = time.monotonic()
        if self._reason is not None:
            return self._wait_for_others(timeout)
        if self._settling:
            self._settling.popleft().set_result(None)
            return []
        if not self._virtual:
            return self._real.select(self._until_expiry(timeout))
        if timeout is None:
            return self._wait_for_strangers()
        self._move_to(self._scheduled[0].when())
        self.jumps += 1
        return []

    def _pass_the_busy(self) -> None:
        """Let a timer expire although the loop is not at rest: no later than on an ordinary loop."""
        when = self._scheduled[0].when()
        if time.monotonic() - self._rested > max(self._patience, when - self._now):
            self._move_to(when)

    def _expire_due(self) -> None:
        now = time.monotonic()
        for deadline, future in self._expiring:
            if now >= deadline and not future.done():
                future.set_exception(TimeoutError(f"still at work: {self._reason or 'the loop itself'}"))

    def _until_expiry(self, limit: float | None) -> float | None:
        """Return the real seconds to wait, at most ``limit`` and not beyond the next deadline."""
        waits = [max(0.0, deadline - time.monotonic()) for deadline, future in self._expiring if not future.done()]
        return min(waits if limit is None else [limit, *waits], default=None)

    def _busy(self) -> str | None:
        """Return what may still call, or None."""
        if self._held:
            return f"{self._held} holds on the loop: jobs of executors, or hold()"
        if not self._settling and not self._instant_io and len(self._real.get_map()) > 1:
            return "open sockets"
        return self._others(settling=bool(self._settling))

    def _others(self, *, settling: bool) -> str | None:
        """Return which other thread may still call, or None."""
        return self._bystanders.busy(settling=settling)

    def _wait_for_others(self, timeout: float | None) -> EventList:
        """Wait for real, until something comes or the next timer would fall due on an ordinary loop."""
        start = time.monotonic()
        due = None if timeout is None else max(0.0, timeout - self._waited)
        # Who holds the loop will wake it; who does not has to be looked at again.
        limit = due if self._held else GLANCE if due is None else min(due, GLANCE)
        events = self._real.select(self._until_expiry(limit))
        elapsed = time.monotonic() - start
        self._waited += elapsed
        if self._virtual and due is not None and elapsed >= due:
            self._move_to(self._scheduled[0].when())
        return events

    def _move_to(self, when: float) -> None:
        self._now = max(self._now, when)
        # Far on, the resolution of the clock is less than that of a float, and asyncio would never find a timer due.
        self._clock_resolution = max(self._clock_resolution, 2 * math.ulp(self._now))
        self._rested = time.monotonic()
        self._waited = 0.0

    def _wait_for_strangers(self) -> EventList:
        """Nothing is scheduled and no thread works: wait for threads that may know this loop, or give up."""
        if threading.current_thread() is not threading.main_thread():
            # Somebody else's thread is in charge of this one.
            return self._real.select(self._until_expiry(None))
        patience = self._patience if self._bystanders.strangers() else 0
        events = self._real.select(self._until_expiry(patience))
        if not events and not self._ready:
            self._give_up()
        return events

    def _give_up(self) -> None:
        error = DeadlockError(f"nothing is scheduled, and no other thread can call the loop: {waiting(self)}")
        for _, future in reversed(self._expiring):
            if not future.done():
                future.set_exception(error)
                return
        raise error


@define(eq=False)
class _Keeping(Executor):
    """An executor that remembers its last job."""

    executor: Executor
    job: Future[Any] | None = field(init=False, default=None)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a job, and keep it."""
        self.job = self.executor.submit(fn, *args, **kwargs)
        return self.job
