"""A cluster without a JVM: the tasks of resident regions run on threads of this process, and the test kills them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from attrs import define, field

from reactive_aio._remote.variables import variables
from reactive_aio.spark._job.job import Prepared
from reactive_aio.spark._resident import region, task
from reactive_aio.spark._resident.scheduler import SparkWorkers
from reactive_aio.spark._task import watch
from reactive_aio.spark._task.connecting import Address, connect


class Context:
    """Stands for the SparkContext. A region asks it for a key only."""

    master = "by hand"


@define(eq=False)
class Cluster:
    """A record of the events, and the script of the events to come."""

    attempts: int = 1
    """How often a task is tried by Spark itself."""
    started: list[int] = field(init=False, factory=list[int])
    connections: list[socket.socket] = field(init=False, factory=list[socket.socket])
    """The tasks' ends, in the order in which they connected."""
    failing: list[Exception] = field(init=False, factory=list[Exception])
    """Why the next jobs fail before they have connected."""
    ended: list[str] = field(init=False, factory=list[str])
    """The threads whose processes would have ended themselves."""
    before: Callable[[int], None] = field(init=False, default=lambda _: None)
    """Called in each task before it connects."""
    secret: bytes = field(init=False, default=b"")
    port: int = field(init=False, default=0)

    def workers(
        self, count: int = 2, *, idle: float = 60.0, beat: float = 5.0, context: Iterable[ContextVar[Any]] = ()
    ) -> SparkWorkers:
        """Return the scheduler."""
        at: Any = Context()
        return SparkWorkers(at, count, idle, beat, variables("spark", context))

    def kill(self, at: int) -> None:
        """End a connection as the death of its process would."""
        self.connections[at].shutdown(socket.SHUT_RDWR)


@define(eq=False)
class Job:
    """Stands for `reactive_aio.spark._job.job.Job`."""

    cluster: Cluster
    events: Any
    post: Callable[[Callable[[Any], None], Any], None]
    secret: bytes = b"s" * 32
    _threads: list[threading.Thread] = field(init=False, factory=list[threading.Thread])
    _address: Address = field(init=False)
    _left: int = field(init=False, default=0)
    _stopping: bool = field(init=False, default=False)

    def start(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.cluster.secret, self.cluster.port = self.secret, listening.getsockname()[1]
        self._address = Address("127.0.0.1", self.cluster.port, self.secret)
        self.post(self.events.prepared, Prepared(listening, 8, 9))

    def run(self, partition: int) -> None:
        self.cluster.started.append(partition)
        self._left += 1
        thread = threading.Thread(target=self._task, args=(partition,), name=f"reactive_aio-task-{partition}")
        self._threads.append(thread)
        thread.start()

    def _task(self, partition: int) -> None:
        failure: Exception | None = None
        if self.cluster.failing:
            failure = self.cluster.failing.pop(0)
        else:
            try:
                self.cluster.before(partition)
                task.ResidentTask(self._address, self.events.workers.beat).serve(partition, ())
            except Exception as error:
                failure = error
        self.post(self._ended, (partition, failure))

    def _ended(self, outcome: tuple[int, Exception | None]) -> None:
        partition, failure = outcome
        self._left -= 1
        if failure is None:
            self.events.confirmed(partition)
        else:
            self.events.job_failed(partition, failure)
        self._end()

    def stop(self, *, cancel: bool) -> None:
        self._stopping = True
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        if self._stopping and not self._left:
            self._stopping = False
            self.events.threads_ended()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Have regions run by hand."""
    made = Cluster()

    def connected(*args: Any) -> socket.socket:
        connection = connect(*args)
        made.connections.append(connection)
        return connection

    def job(_: Any, __: str, ___: Any, events: Any, post: Any, *_settings: Any) -> Job:
        return Job(made, events, post)

    monkeypatch.setattr(task, "connect", connected)
    monkeypatch.setattr(region, "Job", job)
    monkeypatch.setattr(watch, "end_process", lambda: made.ended.append(threading.current_thread().name))
    yield made
    assert not made.ended
