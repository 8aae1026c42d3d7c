"""The scheduler that runs regions on a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Self

from attrs import define, field

from .._core.containers import new_list, new_set
from .._core.guard import FAILURES
from ..errors import SchedulerClosedError
from .base import Attachment, Released, nobody, not_started
from .clock import has_virtual_time
from .kept import Kept


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@define(eq=False)
class _LoopThread:
    """A running thread with its loop. It is made for the first region, and ended after the last."""

    name: str
    new_loop: Callable[[], asyncio.AbstractEventLoop]
    loop: asyncio.AbstractEventLoop = field(init=False)
    ended: list[Callable[[], None]] = field(init=False, factory=new_list)
    _stop: asyncio.Event = field(init=False, factory=asyncio.Event)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name=self.name, daemon=True)
        self._thread.start()
        failure = started.exception()
        if failure is not None:
            self._thread.join()
            raise failure

    def _run(self, started: Future[None]) -> None:
        try:
            # The runner cancels what is left on the loop and closes async generators and executor threads.
            with asyncio.Runner(loop_factory=self.new_loop) as runner:
                while not self._stop.is_set():
                    self._run_loop(runner, started)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)  # no loop could be made; who attaches waits for one
        finally:
            for told in self.ended:
                told()

    def _run_loop(self, runner: asyncio.Runner, started: Future[None]) -> None:
        """Run the loop until a stop. Go on after an exit or an interrupt that leaves it."""
        try:
            runner.run(self._serve(started))
        except FAILURES as error:
            if not started.done():
                raise
            # A task's is raised where that is awaited as well; who waits for a callback's, nobody knows.
            said = f"a callback on thread({self.name!r}) raised {type(error).__name__}"
            self.loop.call_exception_handler({"message": said, "exception": error})

    async def _serve(self, started: Future[None]) -> None:
        if not started.done():
            self.loop = asyncio.get_running_loop()
            started.set_result(None)
        await self._stop.wait()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)

    @property
    def alive(self) -> bool:
        """Whether it runs. A forked process has none of the threads of its parent."""
        return self._thread.is_alive()

    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def join(self) -> None:
        self._thread.join()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@define(eq=False)
class _Attached:
    """One region's hold on a thread."""

    worker: _LoopThread
    lost: Callable[[BaseException], None]
    leave: Callable[[_Attached], bool]
    """Takes the hold back, and returns whether it was the last, so that the thread has to end."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self.worker.loop

    def detach(self, released: Released) -> None:
        self.lost = nobody  # who holds this, and would be held by it
        if self.leave(self):
            # The thread tells it itself, as its last act: no loop that could end before is needed for that.
            self.worker.ended.append(lambda: released(self.worker.join))
            self.worker.stop()
        else:
            released()


def _lost(attached: _Attached, error: BaseException) -> None:
    attached.lost(error)


@define(eq=False, repr=False)
class ThreadScheduler(Kept):
    """A thread with an event loop of its own, shared by the regions that are placed on it."""

    label: str
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _worker: _LoopThread | None = field(init=False, default=None)
    _regions: set[_Attached] = field(init=False, factory=new_set)
    _kept: bool = field(init=False, default=False)
    _closed: bool = field(init=False, default=False)

    @property
    def name(self) -> str:
        """How plans show the place."""
        return f"thread({self.label!r})"

    def __repr__(self) -> str:
        return self.name

    def _new_loop(self, *, of_a_test: bool) -> asyncio.AbstractEventLoop:
        """Return the loop of the thread. A test on virtual time has to see what that waits for, and uvloop does not show it."""
        return asyncio.new_event_loop() if of_a_test else _new_event_loop()

    def is_here(self) -> bool:
        """Return whether the place is the running event loop."""
        with self._lock:
            return self._worker is not None and self._worker.loop is _running_loop()

    def attach(self, lost: Callable[[BaseException], None]) -> Attachment:
        """Return the thread's loop. The first region starts the thread."""
        with self._lock:
            if self._closed:
                raise SchedulerClosedError(f"{self.name} has been closed. Build the flow with a new scheduler")
            attached = _Attached(self._running(), lost, self._leave)
            self._regions.add(attached)
            return attached

    def _leave(self, attached: _Attached) -> bool:
        with self._lock:
            if attached not in self._regions:
                return False
            self._regions.discard(attached)
            current = self._worker is attached.worker
            last = not (current and self._kept) and all(each.worker is not attached.worker for each in self._regions)
            if last and current:
                self._worker = None
            return last

    def open(self) -> Self:
        """Keep the thread until ``close``, also while no region runs on it."""
        with self._lock:
            if self._closed:
                raise SchedulerClosedError(f"{self.name} has been closed")
            self._kept = True
            self._running()
        return self

    def _running(self) -> _LoopThread:
        """Return the thread, started if there is none. The caller holds the lock."""
        worker = self._worker
        if worker is None or not worker.alive:
            try:
                worker = self._worker = _LoopThread(
                    self.label, partial(self._new_loop, of_a_test=has_virtual_time(_running_loop()))
                )
            except (RuntimeError, OSError) as error:
                raise not_started(self.name, error) from error
        return worker

    def _shut(self, told: Callable[[], None]) -> list[_LoopThread]:
        with self._lock:
            self._closed = True
            worker, self._worker = self._worker, None
            regions, self._regions = self._regions, set[_Attached]()
        for attached in regions:
            if not attached.worker.alive:
                continue  # this process was forked, and the thread is in the other one
            # On the loop itself and before it has to stop, so that the region ends where it ran.
            error = SchedulerClosedError(f"{self.name} was closed while a flow was running on it")
            attached.loop.call_soon_threadsafe(attached.lost, error)
            # And again for what comes behind the last turn, while the loop closes.
            attached.worker.ended.append(partial(_lost, attached, error))
        if worker is None or not worker.alive:
            told()
            return []
        worker.ended.append(told)
        worker.stop()
        return [worker]


def thread(name: str) -> ThreadScheduler:
    """Run the region on a thread named ``name`` that has an event loop of its own (uvloop where installed).

    The thread starts with the first region placed on it and ends with the last, before the terminal returns. ``async
    with schedulers.thread("io") as io:`` keeps it for many flows. Leaving the block, or ``close()``, ends the thread,
    and flows that still run on it end with SchedulerClosedError. A function on it that raises SystemExit or
    KeyboardInterrupt fails its flow, and the thread goes on. Regions of several flows share the thread. (Reactor:
    ``Schedulers.single``.)

    >>> from reactive_aio import Flow, schedulers
    >>> Flow.range(3).subscribe_on(schedulers.thread("numbers")).map(lambda n: n * n).run_sync()
    [0, 1, 4]
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
        raise TypeError(f"thread() takes a name, not {type(name).__name__}")
    if not name:
        raise ValueError("thread() takes a name that is not empty")
    return ThreadScheduler(name)
