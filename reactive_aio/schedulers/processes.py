"""The scheduler that runs CPU-bound functions in worker processes."""

from __future__ import annotations

import asyncio
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import Context, ContextVar
from functools import partial
from importlib import import_module
from time import monotonic
from typing import Any, Final

from attrs import define, field

from .._core.guard import FAILURES, brief
from .._remote import worker
from .._remote.channel import Channel
from .._remote.failures import unpack
from .._remote.frames import CLEANUP, CREDIT, FAILED, REGION, Frame
from .._remote.memory import Memory
from .._remote.pickling import by_reference, by_value_dumps, dumps, dumps_in_pieces, has_main, main_module
from .._remote.variables import Variable, values_in, variables
from ..errors import WorkerDiedError
from ._channels import WatchedChannel, chunk_frame, report
from .base import Released, Report, Reports, Work, WorkerRegion, not_started
from .pool import Pool
from .threads import check_workers

PATIENCE: Final = 0.2
"""Seconds for a worker to stop by itself, and then for one that is interrupted in a function."""


def _command(control: int) -> list[str]:
    """Give what starts a new interpreter, so that no lock is copied in the middle.

    What may be long comes by its input: an argument has 128 KiB at most. Marshal is there before the path is.
    """
    from multiprocessing import spawn

    code = (
        "import marshal, sys; sys.path[:], main_module, argv = marshal.load(sys.stdin.buffer); "
        f"from {worker.__name__} import main; main({control}, main_module, argv)"
    )
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [os.fsdecode(spawn.get_executable()), *flags, "-c", code]


@define(eq=False, repr=False)
class _Process:
    """A worker process, seen from the thread that looks after it."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    watched: int | None = field(init=False, default=None)
    """The process as a file, where the system has such: it tells the end though a child of it holds the socket."""

    @staticmethod
    def start() -> _Process:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = subprocess.Popen(
                    _command(theirs.fileno()),
                    stdin=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    # Not in the terminal's group, so that Ctrl-C interrupts the program alone.
                    process_group=0,
                )
        except FAILURES:
            ours.close()
            raise
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it has died, which is told on its own
            process.stdin.write(marshal.dumps(([*map(str, sys.path)], main_module(), [*map(str, sys.argv)])))
        started = _Process(process, ours)
        with suppress(AttributeError, OSError):
            started.watched = os.pidfd_open(process.pid)
        return started

    def died(self) -> str:
        """Say how it ended; it is about to, if it has not."""
        code = self.process.wait()
        if code >= 0:
            return f"exited with code {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    def close(self) -> None:
        self.control.close()
        if self.watched is not None:
            os.close(self.watched)


@define(eq=False, repr=False)
class _End:
    """The worker's end of a channel, on its way there."""

    connection: socket.socket
    memory: int | None
    """A file of memory that both ends have, where the system has such."""

    @property
    def files(self) -> list[int]:
        return [self.connection.fileno(), *([] if self.memory is None else [self.memory])]

    def close(self) -> None:
        self.connection.close()
        if self.memory is not None:
            os.close(self.memory)


@define(eq=False, repr=False)
class _Team:
    """The processes, and the thread that starts them, hears of their deaths and ends them."""

    name: str
    count: int
    lost: Callable[[_Team, BaseException], None]
    _orders: deque[Callable[[], None]] = field(init=False, factory=deque[Callable[[], None]])
    _wake: tuple[socket.socket, socket.socket] = field(init=False, factory=socket.socketpair)
    _processes: list[_Process] = field(init=False, factory=list[_Process])
    _selector: selectors.BaseSelector = field(init=False, factory=selectors.DefaultSelector)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _stopping: bool = field(init=False, default=False)
    _told: list[Callable[[], None]] = field(init=False, factory=list[Callable[[], None]])
    _ended: bool = field(init=False, default=False)
    _idle: list[Memory] = field(init=False, factory=list[Memory])
    """That of regions that have ended: pages that are there already are much cheaper than new ones."""
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        # Imported before the thread starts: a fork in the middle of an import leaves the child half a module.
        import_module("multiprocessing.spawn")
        self._thread = threading.Thread(target=self._run, name=f"{self.name}-keeper", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._close()
            raise

    # -- from any thread

    def channel(self) -> tuple[Channel, _End]:
        """Give the two ends of a channel; it does without the memory where there is none."""
        ours, theirs = socket.socketpair()
        memory = self._memory()
        if memory is not None:
            with suppress(OSError):
                return Channel(ours, memory), _End(theirs, os.dup(memory.file))
            memory.close()
        return Channel(ours), _End(theirs, None)

    def _memory(self) -> Memory | None:
        try:
            return self._idle.pop()
        except IndexError:
            return Memory.made(self._keep)

    def _keep(self, memory: Memory) -> bool:
        with self._lock:
            if not self._ended:
                self._idle.append(memory)
            return not self._ended

    def connect(self, ends: list[_End]) -> None:
        """Have each worker take one of these connections."""
        self._order(partial(self._connect, ends))

    def stop(self, told: Callable[[], None]) -> None:
        """End the processes: at once, if they are in the middle of something."""
        with self._lock:
            ended = self._ended
            if not ended:
                self._told.append(told)
        if ended:
            told()
        else:
            self._order(self._stop)

    def is_here(self) -> bool:
        """Tell whether the calling thread is the one that keeps the processes."""
        return threading.current_thread() is self._thread

    def join(self) -> None:
        """Wait for the thread."""
        self._thread.join()

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        if self._ended:
            self._obey()
        with suppress(OSError):  # the thread has ended, or is awake already
            self._wake[1].send(b"o", socket.MSG_DONTWAIT)

    # -- on the thread

    def _run(self) -> None:
        self._selector.register(self._wake[0], selectors.EVENT_READ, None)
        try:
            for _ in range(self.count):
                self._start()
        except OSError as error:
            self.lost(self, not_started(self.name, error))
        except FAILURES as error:
            self.lost(self, error)
        while not self._stopping:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._wake[0].recv(4096)
                    self._obey()
                elif key.data in self._processes:
                    self._lose(key.data)
        self._end_all()
        with self._lock:
            self._ended = True
            idle, self._idle = self._idle, []
        for memory in idle:
            memory.close()
        self._obey()
        self._close()
        for tell in self._told:
            tell()

    def _close(self) -> None:
        self._selector.close()
        for end in self._wake:
            end.close()

    def _obey(self) -> None:
        """Carry out what there is; when the thread has ended, whoever gives an order does so, and may meet its last look."""
        while True:
            try:
                order = self._orders.popleft()
            except IndexError:
                return
            order()

    def _start(self) -> None:
        started = _Process.start()
        self._processes.append(started)
        self._selector.register(started.control, selectors.EVENT_READ, started)
        if started.watched is not None:
            self._selector.register(started.watched, selectors.EVENT_READ, started)

    def _lose(self, process: _Process) -> None:
        self._forget(process)
        how = process.died()
        self.lost(self, WorkerDiedError(f"worker process {process.process.pid} of {self.name} {how}"))

    def _forget(self, process: _Process) -> None:
        self._processes.remove(process)
        self._selector.unregister(process.control)
        if process.watched is not None:
            self._selector.unregister(process.watched)
        process.close()

    def _connect(self, ends: list[_End]) -> None:
        for process, end in zip(tuple(self._processes), ends, strict=False):
            with suppress(OSError):  # it has died, which is told on its own
                socket.send_fds(process.control, [worker.JOIN], end.files)
        for end in ends:
            end.close()

    def _stop(self) -> None:
        self._stopping = True
        for process in self._processes:
            with suppress(OSError):
                process.control.send(worker.END)

    def _end_all(self) -> None:
        """Wait a moment for all, then insist."""
        for insist in (subprocess.Popen[bytes].terminate, subprocess.Popen[bytes].kill):
            until = monotonic() + PATIENCE
            for process in self._processes:
                with suppress(subprocess.TimeoutExpired):
                    process.process.wait(max(0.0, until - monotonic()))
            for process in self._processes:
                insist(process.process)  # does nothing to one that has ended
        for process in tuple(self._processes):
            process.process.wait()
            self._forget(process)


@define(eq=False, repr=False)
class _Member:
    """One region's hold on the processes: a channel to each, on the region's event loop."""

    pool: ProcessPool
    team: _Team
    reports: Reports
    loop: asyncio.AbstractEventLoop
    _most: int = field(init=False, default=0)
    _lines: dict[WatchedChannel, set[int]] = field(init=False, factory=dict[WatchedChannel, set[int]])
    """The chunks that each worker has."""
    _failing: dict[int, BaseException] = field(init=False, factory=dict[int, BaseException])
    """Chunks that lack the rest of their elements, which could not be pickled."""
    _left: bool = field(init=False, default=False)
    """Whether no more results are wanted."""
    _released: Released | None = field(init=False, default=None)
    """What is to be told when the last line has ended, where the workers go on for others."""

    def begin(self, region: bytes, most: int) -> None:
        """Connect, and send the function."""
        self._most = most
        ends: list[_End] = []
        try:
            for _ in range(self.team.count):
                channel, end = self.team.channel()
                ends.append(end)
                line = WatchedChannel(self.loop, channel, self._heard, self._ended)
                self._lines[line] = set()
                line.open()
                line.send(Frame(REGION, pickled=region))
        finally:
            self.team.connect(ends)

    def submit(self, chunk: int, items: list[Any], index: int) -> None:
        """Send a chunk to the worker that has the fewest."""
        frame, failure = chunk_frame(chunk, items, index, self._most, dumps_in_pieces)
        if frame is None:
            self.reports.reported(Report(chunk, [], 0, 0.0, True, failure))
            return
        if failure is not None:
            self._failing[chunk] = failure
        line = min(self._lines, key=lambda line: len(self._lines[line]))
        self._lines[line].add(chunk)
        line.send(frame)

    def go_on(self, chunk: int) -> None:
        """Tell the worker that has the chunk."""
        for line, chunks in self._lines.items():
            if chunk in chunks:
                line.send(Frame(CREDIT, chunk, self._most))

    def leave(self, released: Released) -> None:
        """Say goodbye, and listen until each worker has dropped what it was at and said what it could not let go of."""
        self._left = True
        for line in self._lines:
            line.say_goodbye()
        if self.pool.ends_with(self):
            # At once: a worker may be stuck, and the next region is to find new ones.
            self.pool.let_go(self, self.team, partial(self._workers_ended, released))
        else:
            self._released = released
            self._ended(None)

    def _workers_ended(self, released: Released, join: Callable[[], None] | None = None) -> None:
        """Hear, on the thread that keeps the workers, that they have ended."""

        def hang_up() -> None:
            self._hang_up()
            released(join)

        try:
            self.loop.call_soon_threadsafe(hang_up)
        except RuntimeError:  # it has been closed
            hang_up()

    def expel(self, error: BaseException) -> None:
        """Fail the region, because the pool is closed or a worker has died."""
        self.reports.lost(error)
        if self.loop.is_closed():
            self._hang_up()  # nobody else will

    def _hang_up(self) -> None:
        """Hear what there is still to be heard, and hang up."""
        for line in self._lines:
            line.drain()

    def _ended(self, failure: BaseException | None) -> None:
        """Be gone with the last line. That a worker has died tells the thread that looks after it, which knows how."""
        if failure is not None:
            self.reports.lost(failure)
        released = self._released
        if released is not None and not any(line.is_open for line in self._lines):
            self._released = None
            self.pool.let_go(self, self.team, released)

    def _heard(self, frame: Frame) -> None:
        if frame.kind == CLEANUP:
            self.reports.cleanup_failed(unpack(frame.pickled))
        elif frame.kind == FAILED or not self._left:
            told = report(frame, self._failing.get(frame.number))
            if told.over:
                self._failing.pop(frame.number, None)
                for chunks in self._lines.values():
                    chunks.discard(frame.number)
            self.reports.reported(told)


@define(eq=False, repr=False)
class ProcessPool(Pool[_Team]):
    """Processes for CPU-bound functions, shared by the regions that are placed on them (Workers)."""

    variables: tuple[Variable, ...] = ()

    @property
    def name(self) -> str:
        """How plans show the place."""
        return f"processes({self.count})"

    def check(self, stage: object) -> None:
        """Refuse what can't be pickled."""
        try:
            if by_value_dumps() is None:
                by_reference(stage, None, main=has_main())
            else:
                dumps(stage)
        except FAILURES as error:
            advice = (
                "leave what can't be pickled out of its function"
                if by_value_dumps() is not None
                else "use a function from the top level of a module, or install cloudpickle for lambdas and local ones"
            )
            raise TypeError(
                f"{stage}, can't be sent to a worker process: {brief(error)}; {advice}, or keep it here with "
                ".publish_on(schedulers.current()) before it"
            ) from error

    def add_region(self, work: Work, most: int, context: Context, reports: Reports) -> WorkerRegion:
        """Take a region in; the first one starts the processes."""
        if worker.starting:
            raise RuntimeError(
                f"{worker.starting[0]} runs a flow on processes while a worker process imports it: put what only the "
                'program itself is to do under `if __name__ == "__main__":`'
            )
        region = dumps((dumps(work), values_in(context, self.variables)))
        hired: list[_Member] = []

        def make(team: _Team) -> _Member:
            hired.append(_Member(self, team, reports, asyncio.get_running_loop()))
            return hired[0]

        self._enter(make)
        try:
            hired[0].begin(region, most)
        except FAILURES:
            hired[0].leave(lambda join=None: None)
            raise
        return hired[0]

    def _form(self) -> _Team:
        return _Team(self.name, self.count, self._lost)

    def _lost(self, team: _Team, error: BaseException) -> None:
        for member in self._dismiss(team):
            member.expel(error)


def processes(n: int, *, context: Iterable[ContextVar[Any]] = ()) -> ProcessPool:
    """Run the functions that follow in ``n`` worker processes: for functions that keep a processor busy.

    It is for ``publish_on``. The elements travel in small chunks, pickled once each way, and come back in order. A chunk
    is what is there, one element at first and more as long as the functions are quick. Operators that depend on an
    element's place in the stream, such as ``take``, run with what follows them on the event loop that reads.

    The functions are pickled once for each flow: by reference, or where that can't be, as for lambdas, by value, if
    cloudpickle is installed. What can't be pickled is refused with TypeError when the flow is built. Of the subscriber's
    context the variables in ``context`` are current in the functions, with values that can be pickled.

    The processes start with the first flow, as new interpreters, and end with the last, before its terminal returns; a
    cancel ends them in the middle of a function. ``async with schedulers.processes(2) as pool:`` keeps them for many
    flows. A worker that dies fails the flows on the pool with WorkerDiedError. Functions of microseconds want a prefetch
    of thousands. Raises NotImplementedError on Windows, where no socket carries another. (Pekko: none; Python:
    ``ProcessPoolExecutor``.)

    >>> import math
    >>> from reactive_aio import Flow, schedulers
    >>> Flow.of(10, 20).publish_on(schedulers.processes(1)).map(math.factorial).map(str).map(len).run_sync()
    [7, 19]
    """
    check_workers("processes", n)
    if not hasattr(socket, "send_fds"):
        raise NotImplementedError("processes() needs a system with Unix sockets; threads(n) does without")
    return ProcessPool(n, variables("processes", context))
