"""Services on sockets: events to a thousand clients, bodies, and lines of sockets, files and requests."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from statistics import quantiles
from time import perf_counter
from typing import Any, Final

from attrs import evolve

from reactive_aio import Flow
from reactive_aio.io import Peer, json_lines, read_lines
from reactive_aio.web import request_body

from . import by_hand_web as by_hand
from .harness import CPU, WALL, Bar, Contestant, Figures, Row, Stopwatch
from .web_clients import Crowd, allow_many_files, ask, received, service
from .web_services import BY_HAND, CHUNK, OURS, STARLETTE
from .workload import Field, LoopFactory, Workload

CPU_OF_SERVICE: Final = "CPU us of the service, an event"
LATE: Final = "ms on the way, p99"
KB: Final = "KB a client"
STALLING: Final = ", while others stall"
LINE: Final = b"2026-11-23T07:00:00Z a line of a log, as long as they are in most services: %06d\n"
LENGTH: Final = len(LINE % 0) - 1
JSON_LINE: Final = b'{"n": 1, "symbol": "ABC", "price": 12.5, "quantity": 100}\n'
MOST: Final = 1 << 40

BY_LINE: Final = "a loop of readline"
BY_DRAIN: Final = "a loop of write and drain"
BY_THREAD: Final = "a loop of read on a thread"
BY_RECEIVE: Final = "a loop of receive"

SOCKET = Field()
SENDING = Field()
FILE = Field()
REQUEST = Field()


def rows(n: int) -> list[Row]:
    """First the rows that need a process of their own, and then the others."""
    found = [_events(n), _bodies(n)]
    lines = Workload(
        title="lines of a socket, 16 at a time: sum of their lengths",
        by=SOCKET,
        given={"batch": 16},
        expect=lambda n: n * LENGTH,
        bars=(Bar(BY_LINE, at_most=1.3),),
        limit=BY_LINE,
        share=0.2,
    )
    many = evolve(lines, title="lines of a socket, 1,000 at a time: sum of their lengths", given={"batch": 1_000})
    sent = Workload(
        title="lines into a socket, each awaited",
        by=SENDING,
        bars=(Bar(BY_DRAIN, at_most=1.3),),
        limit=BY_DRAIN,
        share=0.2,
    )
    file = Workload(
        title="lines of a file: sum of their lengths",
        by=FILE,
        expect=lambda n: n * LENGTH,
        bars=(Bar(BY_THREAD, at_most=1.3),),
        limit=BY_THREAD,
    )
    request = Workload(
        title="lines of JSON of a request: sum of a field",
        by=REQUEST,
        bars=(Bar(BY_RECEIVE, at_most=1.3),),
        limit=BY_RECEIVE,
        share=0.2,
    )
    for workload in (lines, many, sent, file, request):
        found += workload.rows(n)
    return found


# --- events ----------------------------------------------------------------------------------------------------------


def _events(n: int) -> Row:
    """Events to a thousand clients, with and without 50 more that read nothing. A quick run has few clients, and too few events to stall one."""
    readers, stalling, events, rounds = (1_000, 50, 50, 3) if n >= 1_000_000 else (50, 5, 10, 1)
    contestants = [
        Contestant(f"{name}{others}", partial(told, name, readers, number, events))
        for others, number in (("", 0), (STALLING, stalling))
        for name in (OURS, BY_HAND)
    ]
    return Row(
        f"10 events a second to {readers:,} clients",
        readers * events,
        tuple(contestants),
        (
            Bar(BY_HAND, at_most=1.25),
            Bar(BY_HAND, at_most=1.25, of=OURS + STALLING),
            Bar(at_most=100, metric=LATE),
            Bar(at_most=100, metric=LATE, of=OURS + STALLING),
            Bar(at_most=30, metric=KB),
        ),
        rounds=rounds,
        metrics=(CPU_OF_SERVICE, LATE, KB),
        expect=lambda elements: elements,
        limit=BY_HAND,
    )


def told(name: str, readers: int, stalling: int, events: int) -> Figures:
    allow_many_files()
    crowd = Crowd(readers, stalling, events)
    with service(name, events) as port:
        took = asyncio.run(crowd.run(port))
    number = len(crowd.delays)
    late = quantiles(crowd.delays, n=100)[98]
    return Figures({CPU_OF_SERVICE: took["cpu"] * 1e6 / number, LATE: late / 1e6, KB: took["memory"] / 1e3}, number)


# --- bodies ----------------------------------------------------------------------------------------------------------


def _bodies(n: int) -> Row:
    chunks = n // 200
    names = (OURS, BY_HAND, STARLETTE)
    return Row(
        "a body of chunks of 64 KiB to a client in another process",
        chunks,
        tuple(Contestant(name, partial(bodies, name, chunks)) for name in names),
        (Bar(STARLETTE, at_most=1.11), Bar(STARLETTE, at_most=1.11, metric=WALL)),
        rounds=5 if n >= 1_000_000 else 1,
        metrics=(CPU, WALL),
        expect=lambda chunks: chunks,
        limit=STARLETTE,
    )


def bodies(name: str, chunks: int) -> Figures:
    with service(name) as port:
        received(port, "/body?10")
        before, began = ask(port, "/figures"), perf_counter()
        number = received(port, f"/body?{chunks}") // len(CHUNK)
        wall, after = perf_counter() - began, ask(port, "/figures")
    cpu = after["cpu"] - before["cpu"]
    return Figures({CPU: cpu * 1e9 / chunks, WALL: wall * 1e9 / chunks}, number)


# --- lines of a socket -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def pair() -> AsyncGenerator[
    tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamWriter]
]:
    """Yield both ends of a connection."""
    here, there = socket.socketpair()
    reader, closing = await asyncio.open_connection(sock=here)
    other, writer = await asyncio.open_connection(sock=there)
    try:
        yield reader, closing, other, writer
    finally:
        closing.close()
        writer.close()


@asynccontextmanager
async def written(n: int, batch: int) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield one end of a connection, into whose other end a task writes lines, so many at a time."""
    async with pair() as (reader, closing, _, writer):
        lines = LINE % 0 * batch

        async def write() -> None:
            for start in range(0, n, batch):
                writer.write(lines if n - start >= batch else LINE % 0 * (n - start))
                await writer.drain()
            writer.write_eof()

        writing = asyncio.create_task(write())
        yield reader, closing
        await writing


@SOCKET.contestant(OURS)
async def our_lines(n: int, batch: int) -> int:
    async with written(n, batch) as (reader, writer):
        return await Peer.of(reader, writer).lines().map(len).sum()


@SOCKET.contestant(BY_LINE)
async def lines_by_hand(n: int, batch: int) -> int:
    async with written(n, batch) as (reader, _):
        return await by_hand.lengths_of_lines(reader)


@asynccontextmanager
async def reading(n: int) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.Task[int]]]:
    """Yield one end of a connection, whose other end a task reads."""
    async with pair() as (reader, writer, other, _):

        async def read() -> int:
            number = 0
            while number < n * (LENGTH + 1) and (chunk := await other.read(1 << 18)):
                number += len(chunk)
            return number // (LENGTH + 1)

        yield reader, writer, asyncio.create_task(read())


@SENDING.contestant(OURS)
async def our_sending(n: int) -> int:
    async with reading(n) as (reader, writer, read):
        await Peer.of(reader, writer).send(Flow.range(n).map(LINE.__mod__))
        return await read


@SENDING.contestant(BY_DRAIN)
async def sending_by_hand(n: int) -> int:
    async with reading(n) as (_, writer, read):
        for number in range(n):
            writer.write(LINE % number)
            await writer.drain()
        return await read


# --- lines of a file -------------------------------------------------------------------------------------------------


@contextmanager
def lines_in_file(n: int) -> Generator[str]:
    """Yield the path of a file of so many lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lines.log")
        with open(path, "wb") as file:
            file.writelines(LINE % 0 for _ in range(n))
        yield path


def _of_file(n: int, factory: LoopFactory, read: Callable[[str], Coroutine[Any, Any, int]]) -> Figures:
    """Read a file that has been written before; what the threads take counts too."""
    with lines_in_file(n) as path, asyncio.Runner(loop_factory=factory) as runner:
        stopwatch = Stopwatch()
        total = runner.run(read(path))
        return stopwatch.figures(total, n)


@FILE.contestant(OURS)
def our_file(n: int, factory: LoopFactory) -> Figures:
    async def read(path: str) -> int:
        return await read_lines(path).map(len).sum()

    return _of_file(n, factory, read)


@FILE.contestant(BY_THREAD)
def file_by_hand(n: int, factory: LoopFactory) -> Figures:
    return _of_file(n, factory, by_hand.lengths_in_file)


@FILE.contestant("anyio.open_file, line by line")
def file_by_anyio(n: int, factory: LoopFactory) -> Figures:
    return _of_file(n, factory, by_hand.lengths_by_anyio)


# --- lines of a request ----------------------------------------------------------------------------------------------


class Request:
    """A server that has the body of a request, in chunks of 64 KiB."""

    def __init__(self, n: int) -> None:
        self._body = JSON_LINE * n
        self._at = 0
        self.scope: dict[str, object] = {"type": "http", "headers": []}

    async def receive(self) -> dict[str, Any]:
        """Return the next chunk, behind a turn of the loop."""
        await asyncio.sleep(0)
        body = self._body[self._at : self._at + len(CHUNK)]
        self._at += len(CHUNK)
        return {"type": "http.request", "body": body, "more_body": self._at < len(self._body)}


@REQUEST.contestant(OURS)
async def our_request(n: int) -> int:
    request = Request(n)
    orders: Flow[dict[str, int]] = json_lines(request_body(request.scope, request.receive, max_bytes=MOST))
    return await orders.map(_n).sum()


def _n(order: dict[str, int]) -> int:
    return order["n"]


@REQUEST.contestant(BY_RECEIVE)
async def request_by_hand(n: int) -> int:
    return await by_hand.sum_of_json_lines(Request(n).receive, MOST)
