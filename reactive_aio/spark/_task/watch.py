"""Threads beside a task, in its Python worker. They report that the worker lives, and end it when the task is useless.

A task in the middle of a function can't hear that its job has been cancelled, and Spark itself ends its worker after some
four seconds. So the loop, once the jobs of a flow have ended, first listens no more and then resets the connections
that are left. A reset alone may be a fault of the network, behind which a task goes on. One behind which nobody listens any
more means that Spark has ended the job, and waits for nothing but the function.

A task whose results Spark reads opens a connection too, if it can, and says nothing on it. And it watches the
connection to Spark, which hangs up when it gets a result of a task that was cancelled. The worker would find out when
it next writes, and PySpark then says in the log that a pipe is broken.
"""

from __future__ import annotations

import inspect
import io
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Final

from attrs import define, field

from .connecting import PATIENCE, Address, prepare

ASKING: Final = 1.0
"""Seconds for the listener to answer."""
LINE: Final = "line-to-spark"
"""The thread that waits for Spark to hang up. A worker needs one, as long as it lives."""


@define(eq=False)
class Watch:
    """The thread, from `start` until `stop`. It waits in the system, and costs the task nothing."""

    connection: socket.socket
    address: Address
    beat: Callable[[], None] | None = None
    """Called again and again, to say that the worker is alive."""
    seconds: float | None = None
    """The time between two beats."""
    _over: threading.Event = field(init=False, factory=threading.Event)
    _thread: threading.Thread | None = field(init=False, default=None)

    def start(self) -> None:
        """Begin, where the system can wait for what matters."""
        if self.beat is not None or hasattr(select, "poll"):
            self._thread = threading.Thread(target=self.run, name="reactive_aio-watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Hang up, and have the thread be gone; before the connection is closed, whose number might be used anew."""
        self._over.set()
        with suppress(OSError):  # the other side was first
            self.connection.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()

    def run(self) -> None:
        """Watch, until `stop` or until the connection is gone."""
        while not self._reset() and not self._over.is_set():
            if self.beat is not None:
                self.beat()
        if not self._over.is_set() and deserted(self.address) and not self._over.is_set():
            end_process()

    def _reset(self) -> bool:
        """Wait until it is time for a beat, or the connection is useless. Return whether it is."""
        if not hasattr(select, "poll"):
            return self._over.wait(self.seconds)
        poll = select.poll()
        poll.register(self.connection.fileno(), 0)  # which is for resets, and not for what is to be read
        return bool(poll.poll(None if self.seconds is None else self.seconds * 1000))


def deserted(address: Address) -> bool:
    """Return whether the loop's machine is reachable but the loop is gone."""
    try:
        socket.create_connection((address.host, address.port), ASKING).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


@define(eq=False)
class Lifeline:
    """A silent connection that is never accepted. It is reset when the listener needs no more."""

    address: Address
    _watch: Watch | None = field(init=False, default=None)
    _over: bool = field(init=False, default=False)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)

    def start(self) -> None:
        """Connect, without keeping the task waiting. Where that can't be, Spark ends the worker, some seconds later."""
        if hasattr(select, "poll"):
            threading.Thread(target=self._run, name="reactive_aio-lifeline", daemon=True).start()

    def stop(self) -> None:
        """Hang up: the worker may be used again."""
        with self._lock:
            self._over = True
        if self._watch is not None:
            self._watch.stop()

    def _run(self) -> None:
        try:
            connection = socket.create_connection((self.address.host, self.address.port), PATIENCE)
        except ConnectionResetError:  # it was there, a moment ago
            self._lost()
            return
        except OSError:
            return
        with connection:
            prepare(connection)
            watch = Watch(connection, self.address)
            with self._lock:
                if self._over:
                    return
                self._watch = watch
            watch.run()

    def _lost(self) -> None:
        if deserted(self.address):
            with self._lock:
                if not self._over:
                    end_process()


@define
class WhileWanted(AbstractContextManager[None]):
    """Ends the worker of a task, in a block, when its results are not needed, and from then on when Spark hangs up.

    No generator, which would set the traceback of what leaves the block, and not all let that be set.
    """

    address: Address | None
    _line: int | None = field(init=False, default=None)
    _lifeline: Lifeline | None = field(init=False, default=None)

    def __enter__(self) -> None:
        self._line = line_to_spark()
        if self._line is not None:
            end_with(self._line)
        if self.address is not None:
            self._lifeline = Lifeline(self.address)
            self._lifeline.start()

    def __exit__(self, *exc_info: object) -> None:
        if self._lifeline is not None:
            self._lifeline.stop()
        if self._line is not None and hung_up(self._line, 0):  # a write was quicker to notice than the thread
            end_process()


def line_to_spark() -> int | None:
    """Find the connection on which Spark reads the worker's results, if its file says which it is.

    PySpark passes the file only to its own function.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and "outfile" in frame.f_code.co_varnames:
            outfile: io.IOBase = frame.f_locals["outfile"]
            with suppress(io.UnsupportedOperation):
                return outfile.fileno()
            return None  # it is a pair of files for a socket, as where no daemon has forked the worker
        frame = frame.f_back
    return None


def end_with(line: int) -> None:
    """End this process when the other side of a connection hangs up, by a thread that lives as long as it."""
    if hasattr(select, "poll") and LINE not in (thread.name for thread in threading.enumerate()):
        threading.Thread(target=_end_with, args=(line,), name=LINE, daemon=True).start()


def _end_with(line: int) -> None:
    if hung_up(line, None):
        end_process()


def hung_up(line: int, milliseconds: int | None) -> bool:
    """Wait until the other side has hung up, or not at all. Tell whether it has."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    # Data may well wait to be read in front of the end.
    poll.register(line, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(milliseconds))


def end_process() -> None:
    """End this process, which Spark's daemon has forked, whatever it is at.

    The task that it was for has been killed.
    """
    os._exit(1)


def reset(connection: socket.socket) -> None:
    """Make a close reset a connection, so that unread data do not keep the other side from noticing."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
