"""The code that runs in Spark's Python workers for a resident region: a worker like any other, at the end of a TCP connection."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import frozen

from ..._remote.channel import Channel
from ..._remote.frames import BEAT, READY, Frame
from ..._remote.worker import Region, Worker
from .._task.connecting import Address, connect
from .._task.pickling import dumps
from .._task.watch import Watch

AT_A_TIME: Final = 2
"""The chunks that a task holds: the one it works on, and the next."""


@frozen
class ResidentTask:
    """The work of each task of a resident region; travels to the workers, and the region's functions come after it."""

    address: Address
    beat: float
    """Seconds between two signs of life."""

    def serve(self, partition: int, nothing: Iterable[Any]) -> Iterator[int]:
        """Work for the loop until it says that it is enough, or hangs up."""
        from pyspark import TaskContext

        for _ in nothing:  # else Spark ends the Python worker, and the next task has to wait for a new one
            pass
        task = TaskContext.get()
        attempt = 0 if task is None else task.attemptNumber()
        channel = SharedChannel(connect(self.address, partition, attempt), self.address, self.beat)
        worker = Worker()
        place = f"task {partition} on Spark, process {os.getpid()} on {socket.gethostname()}"
        worker.take_in(Region(worker, channel, dumps, place))
        channel.send(Frame(READY, count=AT_A_TIME))
        channel.watch.start()  # for a function may keep this thread for long
        try:
            worker.serve()
        finally:
            channel.watch.stop()
        return iter(())


class SharedChannel(Channel):
    """A channel on which a second thread sends too. That thread has to end before the channel is closed."""

    def __init__(self, connection: socket.socket, address: Address, beat: float) -> None:
        super().__init__(connection)
        self._lock = threading.RLock()
        self.watch = Watch(connection, address, lambda: self.send(Frame(BEAT)), beat)

    def send(self, frame: Frame) -> None:
        """Send a frame."""
        with self._lock:
            super().send(frame)

    def flush(self) -> None:
        """Send what goes out without blocking."""
        with self._lock:
            super().flush()

    def close(self) -> None:
        """Hang up."""
        self.watch.stop()
        super().close()
