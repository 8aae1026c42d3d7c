"""A region on Spark that is fed from the event loop, there and back, against tasks on sockets written by hand."""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from select import select
from time import perf_counter
from typing import TYPE_CHECKING, Final

from reactive_aio import Flow, schedulers

from .harness import WALL, Bar, Contestant, Figures, Row
from .spark_session import session

if TYPE_CHECKING:
    from pyspark import SparkContext

    from reactive_aio.spark._resident.scheduler import SparkWorkers

MEDIAN, WORST = "p50 us", "p99 us"
CHUNK: Final = 1_000
TASKS: Final = 2
LIST: Final = 4_096
PREFETCH: Final = 2 * TASKS * LIST
"""As much under way as by hand: for each task the list that it works on and the next."""
BY_HAND = "tasks on sockets by hand"
LENGTH: Final = struct.Struct("!Q")


def rows(n: int) -> list[Row]:
    """The time of a chunk there and back, one at a time; and how many elements pass, pipelined."""
    trips = max(50, n // 2_000)
    there_and_back = Row(
        f"a chunk of {CHUNK:,} to Spark and back, one at a time",
        trips,
        (
            Contestant("reactive_aio", partial(_trips, trips)),
            Contestant(BY_HAND, partial(_trips_by_hand, trips)),
            Contestant("a job for each chunk", partial(_trips_by_jobs, max(5, trips // 50))),
        ),
        (Bar(at_most=1_000, metric=MEDIAN),),
        metrics=(MEDIAN, WORST),
        limit=BY_HAND,
        expect=lambda _: True,
        rounds=5,
    )
    pipelined = Row(
        f"region on Spark fed from the loop and read by it, {TASKS} tasks",
        2 * n,
        (
            Contestant("reactive_aio", partial(_pipelined, 2 * n), note=f"prefetch {PREFETCH:,}"),
            Contestant(BY_HAND, partial(_pipelined_by_hand, 2 * n), note=f"lists of {LIST:,}"),
        ),
        (Bar(at_most=500, metric=WALL),),
        metrics=(WALL,),
        limit=BY_HAND,
        expect=lambda n: n * (n + 1) // 2,
        rounds=5,
    )
    return [there_and_back, pipelined]


@cache
def context() -> SparkContext:
    return session().sparkContext


def workers(slots: int) -> SparkWorkers:
    return schedulers.spark(session(), slots)


def _percentiles(seconds: Sequence[float], right: bool) -> Figures:
    ordered = sorted(seconds)
    median, worst = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return Figures({MEDIAN: median * 1e6, WORST: worst * 1e6}, right)


def _increment() -> Callable[[int], int]:
    # Made in here, so that it travels to the workers by value.
    def increment(n: int) -> int:
        return n + 1

    return increment


# --- ours ------------------------------------------------------------------------------------------------------------


def _trips(n: int) -> Figures:
    seconds: list[float] = []
    total = 0

    async def main() -> None:
        back = asyncio.Event()
        count = 0

        async def chunks() -> AsyncIterator[Iterable[int]]:
            for _ in range(n):
                back.clear()
                start = perf_counter()
                yield range(CHUNK)
                await back.wait()
                seconds.append(perf_counter() - start)

        def arrived(item: int) -> None:
            nonlocal count, total
            total += item
            count += 1
            if count % CHUNK == 0:
                back.set()

        flow = Flow.from_async_iterable(chunks()).flat_map_iterable(lambda items: items)
        await flow.publish_on(workers(1), prefetch=4 * CHUNK).map(_increment()).for_each(arrived)

    asyncio.run(main())
    return _percentiles(seconds[n // 10 :], total == n * CHUNK * (CHUNK + 1) // 2)


def _pipelined(n: int) -> Figures:
    """From the first result on, when the tasks have started, to the last; the tasks are let go behind it."""
    first = last = 0.0
    total = 0

    async def main() -> None:
        nonlocal first, last, total
        flow = Flow.range(n).publish_on(workers(TASKS), prefetch=PREFETCH).map(_increment())
        async with flow.buffer(LIST).open() as lists:
            async for items in lists:
                first = first or perf_counter()
                total += sum(items)
                last = perf_counter()

    asyncio.run(main())
    return Figures({WALL: (last - first) * 1e9 / n}, total)


# --- by hand ---------------------------------------------------------------------------------------------------------


class Tasks:
    """Resident tasks that take pickled lists from a socket and send lists back."""

    def __init__(self, count: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            work = _resident(listening.getsockname()[1])
            rdd = context().parallelize(range(count), count).mapPartitions(work)
            self._job = threading.Thread(target=rdd.count)
            self._job.start()
            self.sockets = [listening.accept()[0] for _ in range(count)]
        for each in self.sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> list[socket.socket]:
        return self.sockets

    def __exit__(self, *_: object) -> None:
        for each in self.sockets:
            each.close()
        self._job.join()


def _resident(port: int) -> Callable[[Iterable[int]], Iterator[int]]:
    def work(items: Iterable[int]) -> Iterator[int]:
        list(items)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = connection.makefile("rb")
            while head := stream.read(8):
                got = pickle.loads(stream.read(struct.unpack("!Q", head)[0]))
                data = pickle.dumps([n + 1 for n in got], 5)
                connection.sendall(struct.pack("!Q", len(data)) + data)
        return iter(())

    return work


def _send(to: socket.socket, items: list[int]) -> None:
    data = pickle.dumps(items, 5)
    to.sendall(LENGTH.pack(len(data)) + data)


def _receive(source: socket.socket) -> list[int]:
    (length,) = LENGTH.unpack(source.recv(LENGTH.size, socket.MSG_WAITALL))
    items: list[int] = pickle.loads(source.recv(length, socket.MSG_WAITALL))
    return items


def _trips_by_hand(n: int) -> Figures:
    seconds: list[float] = []
    total = 0
    with Tasks(1) as (task,):
        for _ in range(n):
            start = perf_counter()
            _send(task, list(range(CHUNK)))
            total += sum(_receive(task))
            seconds.append(perf_counter() - start)
    return _percentiles(seconds[n // 10 :], total == n * CHUNK * (CHUNK + 1) // 2)


def _trips_by_jobs(n: int) -> Figures:
    seconds: list[float] = []
    total = 0
    increment = _increment()
    for _ in range(n):
        start = perf_counter()
        total += sum(context().parallelize(range(CHUNK), 1).map(increment).collect())
        seconds.append(perf_counter() - start)
    return _percentiles(seconds[n // 10 :], total == n * CHUNK * (CHUNK + 1) // 2)


def _pipelined_by_hand(n: int) -> Figures:
    """The limit: two lists under way for each task, results as they come."""
    items = iter(range(n))
    total = under_way = 0
    with Tasks(TASKS) as tasks:
        start = perf_counter()
        for task in tasks * 2:
            if chunk := list(islice(items, LIST)):
                _send(task, chunk)
                under_way += 1
        while under_way:
            for ready in select(tasks, [], [])[0]:
                total += sum(_receive(ready))
                under_way -= 1
                if chunk := list(islice(items, LIST)):
                    _send(ready, chunk)
                    under_way += 1
        last = perf_counter()
    return Figures({WALL: (last - start) * 1e9 / n}, total)
