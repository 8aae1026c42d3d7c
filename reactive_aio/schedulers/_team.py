"""Worker processes: a thread starts them, notices their deaths, and ends them."""

from __future__ import annotations

import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from time import monotonic
from typing import Final

from attrs import define, field

from .._core.containers import new_deque, new_list
from .._core.guard import FAILURES
from .._remote import worker
from .._remote.channel import Channel
from .._remote.memory import Memory
from .._remote.pickling import main_module
from ..errors import WorkerDiedError
from .base import not_started

PATIENCE: Final = 0.2
"""Seconds for a worker to stop, and then for one that is interrupted in a function."""


def _command(control: int) -> list[str]:
    """Return the command that starts a new interpreter, so that no lock is copied in the middle.

    Long values come by its input: an argument has 128 KiB at most. Marshal is there before the path is.
    """
    from multiprocessing import spawn

    code = (
        "import marshal, sys; sys.path[:], main_module, argv = marshal.load(sys.stdin.buffer); "
        f"from {worker.__name__} import main; main({control}, main_module, argv)"
    )
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [os.fsdecode(spawn.get_executable()), *flags, "-c", code]


@define(eq=False, repr=False)
class WorkerProcess:
    """A worker process, seen from the thread that looks after it."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    watched: int | None = field(init=False, default=None)
    """The process as a file, if the system has that. It shows the end even if a child process holds the socket."""

    @staticmethod
    def start() -> WorkerProcess:
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
        with suppress(BrokenPipeError), process.stdin:  # it has died, which is reported on its own
            process.stdin.write(marshal.dumps(([*map(str, sys.path)], main_module(), [*map(str, sys.argv)])))
        started = WorkerProcess(process, ours)
        with suppress(AttributeError, OSError):
            started.watched = os.pidfd_open(process.pid)
        return started

    def died(self) -> str:
        """Return how it ended, and wait for that."""
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
class ChannelEnd:
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
class Team:
    """The processes, and the thread that starts them, notices their deaths and ends them."""

    name: str
    count: int
    lost: Callable[[Team, BaseException], None]
    _orders: deque[Callable[[], None]] = field(init=False, factory=new_deque)
    _wake: tuple[socket.socket, socket.socket] = field(init=False, factory=socket.socketpair)
    _processes: list[WorkerProcess] = field(init=False, factory=new_list)
    _selector: selectors.BaseSelector = field(init=False, factory=selectors.DefaultSelector)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _stopping: bool = field(init=False, default=False)
    _told: list[Callable[[], None]] = field(init=False, factory=new_list)
    _ended: bool = field(init=False, default=False)
    _idle: list[Memory] = field(init=False, factory=new_list)
    """Memory of regions that have ended: existing pages are much cheaper than new ones. Bounded by that of one region."""
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

    def channel(self) -> tuple[Channel, ChannelEnd]:
        """Return the two ends of a channel, without shared memory where the system has none."""
        ours, theirs = socket.socketpair()
        memory = self._memory()
        if memory is not None:
            with suppress(OSError):
                return Channel(ours, memory), ChannelEnd(theirs, os.dup(memory.file))
            memory.close()
        return Channel(ours), ChannelEnd(theirs, None)

    def _memory(self) -> Memory | None:
        try:
            return self._idle.pop()
        except IndexError:
            return Memory.made(self._keep)

    def _keep(self, memory: Memory) -> bool:
        with self._lock:
            keeps = not self._ended and len(self._idle) < self.count
            if keeps:
                self._idle.append(memory)
            return keeps

    def connect(self, ends: list[ChannelEnd]) -> None:
        """Pass each worker one of these connections."""
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
        """Whether the calling thread is the one that keeps the processes."""
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
        while self._told:  # none of them is kept: they hold regions that have ended
            self._told.pop(0)()

    def _close(self) -> None:
        self._selector.close()
        for end in self._wake:
            end.close()

    def _obey(self) -> None:
        """Execute the orders. When the thread has ended, the ordering thread does so, perhaps during its last look."""
        while True:
            try:
                order = self._orders.popleft()
            except IndexError:
                return
            order()

    def _start(self) -> None:
        started = WorkerProcess.start()
        self._processes.append(started)
        self._selector.register(started.control, selectors.EVENT_READ, started)
        if started.watched is not None:
            self._selector.register(started.watched, selectors.EVENT_READ, started)

    def _lose(self, process: WorkerProcess) -> None:
        self._forget(process)
        how = process.died()
        self.lost(self, WorkerDiedError(f"worker process {process.process.pid} of {self.name} {how}"))

    def _forget(self, process: WorkerProcess) -> None:
        self._processes.remove(process)
        self._selector.unregister(process.control)
        if process.watched is not None:
            self._selector.unregister(process.watched)
        process.close()

    def _connect(self, ends: list[ChannelEnd]) -> None:
        for process, end in zip(tuple(self._processes), ends, strict=False):
            with suppress(OSError):  # it has died, which is reported on its own
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
