"""The event loop of a worker: one for each process, on a thread of its own, for what regions in that process await."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attrs import define, field

from ..._core.containers import new_deque
from ..._core.tasks import begin_task
from ...hooks import drop_error
from ...spec import UNBOUNDED

if TYPE_CHECKING:
    from ..._plan import Receiver
    from ..._plan.nodes import FlowLike
    from ...schedulers.base import Released
    from .in_flight import InFlight

U = TypeVar("U")

_LOCK: Final = threading.Lock()
_LOOPS: Final[list[WorkerLoop]] = []
"""The one of this process, once there is one."""

# A thread does not come along into a forked process.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOOPS.clear)


@define(eq=False)
class WorkerLoop:
    """An event loop that runs as long as the process, so that clients and their connections may be kept on it."""

    loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.new_event_loop)
    news: threading.Event = field(init=False, factory=threading.Event)
    """Set when an awaited call has a result."""

    @staticmethod
    def of_process() -> WorkerLoop:
        """Return the loop of this process."""
        with _LOCK:
            if not _LOOPS:
                made = WorkerLoop()
                _LOOPS.append(made)
                try:
                    threading.Thread(target=made.run, name="awaiting", daemon=True).start()
                except RuntimeError:  # not one more thread is to be had
                    _LOOPS.clear()
                    made.loop.close()
                    raise
            return _LOOPS[0]

    def run(self) -> None:
        """Run while it is the one of the process. An exit or an interrupt of a task's is passed on to its waiter."""
        asyncio.set_event_loop(self.loop)
        while self in _LOOPS:
            with suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()
        self.loop.close()


@define(eq=False)
class Side:
    """The end of a region's awaiting on the event loop (a Feed). Elements and results of the worker cross here.

    Elements and calls go to the loop as callbacks. Results are appended there and taken by the worker, and ``error`` is
    set behind the last result.
    """

    worker_loop: WorkerLoop
    where: str
    context: Context
    results: deque[Any] = field(init=False, factory=new_deque)  # bounded by what the worker has given
    error: BaseException | None = field(init=False, default=None)
    _receiver: Receiver[Any] | None = field(init=False, default=None)
    _released: threading.Event = field(init=False, factory=threading.Event)

    # -- for the worker, on its thread

    def begin(self, machine: InFlight) -> None:
        """Let the machine begin. It may emit all that it has."""
        self._call(lambda: self._begin(machine))

    def _begin(self, machine: InFlight) -> None:
        nobody: Any = None  # `subscribe` below stands for the flow that it reads
        machine.begin(nobody)
        machine.request(UNBOUNDED)

    def give(self, items: list[Any]) -> None:
        """Start awaiting elements."""
        self._call(lambda: None if self._receiver is None else self._receiver.on_chunk(items))

    def wait(self, seconds: float) -> bool:
        """Wait until something has come, here or elsewhere in the process; False if it did not, or not here."""
        news = self.worker_loop.news
        if not (self.results or self.error is not None):
            news.wait(None if seconds == inf else max(0.0, seconds))
            news.clear()
        return bool(self.results) or self.error is not None

    def close(self, cancel: Callable[[], None]) -> None:
        """Cancel, and wait until all has ended."""
        if not self._released.is_set():
            self._call(lambda: None if self._released.is_set() else cancel())
            self._released.wait()

    def _call(self, fn: Callable[[], object]) -> None:
        self.worker_loop.loop.call_soon_threadsafe(fn, context=self.context)

    # -- the Feed, on the loop

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop."""
        return self.worker_loop.loop

    def on_chunk(self, items: list[Any]) -> None:
        """Take results."""
        self.results.extend(items)
        self.worker_loop.news.set()

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        self.error = error
        self.worker_loop.news.set()

    def on_complete(self) -> None:
        """Nothing: the worker knows what it has passed on."""

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Call back."""
        self.loop.call_soon(handle, value, context=self.context)

    def hold(self) -> Released:
        """Let `close` wait."""
        return lambda join=None: self._released.set()

    def start(self, coroutine: Coroutine[Any, Any, U], context: Context | None = None) -> asyncio.Task[U]:
        """Run a coroutine on the loop. The machine keeps the task."""
        return begin_task(coroutine, context or self.context.copy(), self.loop)

    def cleanup_failed(self, error: BaseException) -> None:
        """Report it to the hook: the worker has no end that could raise it."""
        self.context.copy().run(drop_error, error)

    def dropped(self, error: BaseException, *, again: bool = False) -> None:
        """Report it to the hook."""
        drop_error(error)

    def given(self, flow: FlowLike, most: int) -> list[Any] | None:
        """Nothing: elements come when the worker passes them."""
        return None

    def is_given(self, flow: FlowLike) -> bool:
        """False, as nothing is given."""
        return False

    def subscribe(
        self,
        flow: FlowLike,
        receiver: Receiver[Any],
        *,
        at_once: bool,
        ahead: bool = False,
        ended: Callable[[], None] | None = None,
        context: Context | None = None,
    ) -> None:
        """Receive the worker's elements."""
        self._receiver = receiver
        receiver.on_subscribe(self)

    # -- the Subscription of what the worker gives, which gives no more than `max_concurrency` ahead by itself

    def request(self, n: int) -> None:
        """Nothing: fewer elements are in flight than the machine requests."""

    def cancel(self) -> None:
        """Pass nothing more to a machine that has failed or ended."""
        self._receiver = None
