"""A thread beside a task, in its Python worker: it says that the worker is alive, and ends it when nobody wants the task.

A task in the middle of a function can't hear that its job has been cancelled, and Spark itself ends its worker after some
four seconds. So the loop, once the jobs of a flow have ended, first listens no more and then resets the connections
that are left. A reset alone may be a fault of the network, behind which a task goes on. One behind which nobody listens any
more means that Spark has ended the job, and waits for nothing but the function.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from attrs import define, field

if TYPE_CHECKING:
    from .connecting import Address

ASKING: Final = 1.0
"""Seconds for whoever listens to answer."""


@define(eq=False)
class Watch:
    """The thread, from `start` until `stop`; it waits in the system, and costs the task nothing."""

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
            self._thread = threading.Thread(target=self._run, name="reactive_aio-watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Hang up, and have the thread be gone; before the connection is closed, whose number might be used anew."""
        self._over.set()
        with suppress(OSError):  # the other side was first
            self.connection.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._reset() and not self._over.is_set():
            if self.beat is not None:
                self.beat()
        if not self._over.is_set() and self._deserted() and not self._over.is_set():
            end_process()

    def _reset(self) -> bool:
        """Wait until it is time for a beat, or the connection is of no use any more; tell whether that is so."""
        if not hasattr(select, "poll"):
            return self._over.wait(self.seconds)
        poll = select.poll()
        poll.register(self.connection.fileno(), 0)  # which is for resets, and not for what is to be read
        return bool(poll.poll(None if self.seconds is None else self.seconds * 1000))

    def _deserted(self) -> bool:
        """Tell whether the machine of the loop is there, and the loop is not."""
        try:
            socket.create_connection((self.address.host, self.address.port), ASKING).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False


def end_process() -> None:
    """End this process, which Spark's daemon has forked, whatever it is at; the task that it was for has been killed."""
    os._exit(1)


def reset(connection: socket.socket) -> None:
    """Have a connection be reset when it is closed: no data that wait to be read keep the other side from noticing."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
