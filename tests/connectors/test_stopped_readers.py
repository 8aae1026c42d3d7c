"""A reader that stops stops the writer, whatever is between: what is under way is counted at both ends, and is bounded."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import define, field

from reactive_aio import Flow
from reactive_aio.io import (
    Peer,
    connect,
    connect_unix,
    from_process,
    from_stream,
    read_chunks,
    read_lines,
    send_to,
    serve,
    serve_unix,
    write_file,
)
from reactive_aio.web import (
    ClientDisconnectedError,
    Connection,
    Event,
    EventStream,
    FlowResponse,
    JSONLinesResponse,
    StreamSocket,
    json_lines,
    request_body,
)
from reactive_aio.web import connect as connect_web
from tests.web.test_clients import serving
from tests.web.test_servers import SERVERS

PATIENCE = 20.0
"""Seconds after which what should come at once counts as lost."""
SIZE = 65_536
BLOCK = (b"x" * 63 + b"\n") * (SIZE // 64)
PIPE = 1
"""Blocks that a pipe holds."""
SOCKETS = 16
"""Blocks that two sockets hold, whose buffers are set, and what asyncio reads ahead."""
UPLOAD = 24
"""Blocks that two sockets hold, and what a server reads ahead."""
BUFFER = 65_536

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sets the sizes of pipes")


@define(eq=False)
class Ends:
    """The two ends of a connector."""

    given: Callable[[], int]
    """How much the writer has given."""
    read: Callable[[], Awaitable[int]]
    """Reads a little more, and returns how much that was."""
    bound: int
    """How much may be under way."""

    async def quiet(self) -> int:
        """Wait until the writer gives nothing more for many turns of the loop; return what it has given."""
        still, before = 0, -1
        while still < 20:
            await asyncio.sleep(0.002)
            still = still + 1 if self.given() == before else 0
            before = self.given()
        return before


@define(eq=False)
class Source:
    """Emits the same element without an end, and counts."""

    item: Any
    size: int = 1
    given: int = field(init=False, default=0)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            self.given += self.size
            yield self.item
            await asyncio.sleep(0)

    @property
    def flow(self) -> Flow[Any]:
        return Flow.from_async_iterable(self)

    def ends(self, items: AsyncIterator[Any], bound: int) -> Ends:
        """Return the ends where elements are read one by one."""

        async def read() -> int:
            item = await anext(items)
            return len(item) if self.size > 1 else 1

        return Ends(lambda: self.given, read, bound * self.size)


Connector = Callable[[Path], AbstractAsyncContextManager[Ends]]
CONNECTORS: dict[str, Connector] = {}


def connector(name: str) -> Callable[[Callable[[Path], AsyncGenerator[Ends]]], None]:
    def register(make: Callable[[Path], AsyncGenerator[Ends]]) -> None:
        CONNECTORS[name] = asynccontextmanager(make)

    return register


# -- the streams of anyio, and sockets


@connector("from_stream, send_to")
async def objects(_: Path) -> AsyncGenerator[Ends]:
    source = Source("x")
    send, receive = anyio.create_memory_object_stream[str](3)
    async with send, receive, anyio.create_task_group() as tasks:
        tasks.start_soon(send_to, send, source.flow)
        async with from_stream(receive).open() as items:
            yield source.ends(items, bound=3 + 1)
        tasks.cancel_scope.cancel()


def narrow(peer: Peer) -> None:
    """Have the system hold little."""
    raw = peer.stream.extra(anyio.abc.SocketAttribute.raw_socket)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        raw.setsockopt(socket.SOL_SOCKET, option, BUFFER)


@asynccontextmanager
async def unix(handler: Any, folder: Path) -> AsyncGenerator[Peer]:
    async with serve_unix(handler, folder / "socket"), connect_unix(folder / "socket") as peer:
        narrow(peer)
        yield peer


@asynccontextmanager
async def tcp(handler: Any, _: Path) -> AsyncGenerator[Peer]:
    async with serve(handler, "127.0.0.1", 0) as server, connect("127.0.0.1", server.port) as peer:
        narrow(peer)
        yield peer


@asynccontextmanager
async def asyncios(handler: Any, _: Path) -> AsyncGenerator[Peer]:
    async with serve(handler, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        try:
            yield Peer.of(reader, writer)
        finally:
            writer.close()


def sockets(name: str, connected: Callable[[Any, Path], AbstractAsyncContextManager[Peer]], lines: bool) -> None:
    @connector(f"Peer, {name}, {'lines' if lines else 'chunks'}")
    async def ends(folder: Path) -> AsyncGenerator[Ends]:
        source = Source(BLOCK, SIZE)

        async def handle(peer: Peer) -> None:
            narrow(peer)
            await peer.send(source.flow)

        async with connected(handle, folder) as peer:
            items = peer.lines().map(lambda line: line + b"\n") if lines else peer.chunks()
            async with items.open() as read:
                yield source.ends(read, bound=SOCKETS)


for name, connected in {"tcp": tcp, "unix": unix, "asyncio": asyncios}.items():
    sockets(name, connected, lines=False)
sockets("tcp", tcp, lines=True)


# -- processes


@connector("from_process")
async def process(folder: Path) -> AsyncGenerator[Ends]:
    log = folder / "written"
    program = f"import os, sys\nlog = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\nwhile os.write(1, bytes({SIZE})): os.write(log, b'.')"
    async with from_process([sys.executable, "-c", program, str(log)]).open() as chunks:

        async def read() -> int:
            return len(await anext(chunks))

        # The log gets its note after the write, so the reader may be one block ahead of the log.
        def given() -> int:
            return (log.stat().st_size + 1) * SIZE

        yield Ends(given, read, bound=(PIPE + 2 + 4 + 1) * SIZE)


@connector("from_process, with a flow to read")
async def both_pipes(_: Path) -> AsyncGenerator[Ends]:
    source = Source(BLOCK, SIZE)
    async with from_process(["cat"], stdin=source.flow).open() as chunks:
        yield source.ends(chunks, bound=SOCKETS)


# -- files: a pipe that has a name is a file whose other end can be looked at


@asynccontextmanager
async def named_pipe(folder: Path) -> AsyncGenerator[tuple[str, int]]:
    """Yield the path, and both ends of it in one descriptor."""
    path = str(folder / "pipe")
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, SIZE)
    try:
        yield path, pipe
    finally:
        with suppress(OSError):
            os.close(pipe)


@define(eq=False)
class Filling:
    """Writes to a pipe whatever fits."""

    pipe: int
    given: int = field(init=False, default=0)

    def fill(self) -> None:
        with suppress(BlockingIOError):
            self.given += os.write(self.pipe, BLOCK)


@asynccontextmanager
async def filled(folder: Path) -> AsyncGenerator[tuple[str, Filling]]:
    """Yield the path of a pipe that is filled as soon as there is room."""
    async with named_pipe(folder) as (path, pipe):
        filling = Filling(pipe)
        loop = asyncio.get_running_loop()
        loop.add_writer(pipe, filling.fill)
        try:
            yield path, filling
        finally:
            loop.remove_writer(pipe)


@connector("read_chunks")
async def chunks_of_file(folder: Path) -> AsyncGenerator[Ends]:
    async with filled(folder) as (path, filling), read_chunks(path, size=SIZE).open() as chunks:

        async def read() -> int:
            return len(await anext(chunks))

        yield Ends(lambda: filling.given, read, bound=PIPE * SIZE)


@connector("read_lines")
async def lines_of_file(folder: Path) -> AsyncGenerator[Ends]:
    async with filled(folder) as (path, filling), read_lines(path).open() as lines:

        async def read() -> int:
            return len(await anext(lines)) + 1

        yield Ends(lambda: filling.given, read, bound=PIPE * SIZE + 262_144)


@connector("write_file")
async def into_file(folder: Path) -> AsyncGenerator[Ends]:
    source = Source(BLOCK, SIZE)
    async with named_pipe(folder) as (path, pipe):
        writing = asyncio.create_task(write_file(path, source.flow, max_batch=4, seconds=0.01))
        loop = asyncio.get_running_loop()

        async def read() -> int:
            there = asyncio.Event()
            loop.add_reader(pipe, there.set)
            await there.wait()
            loop.remove_reader(pipe)
            return len(os.read(pipe, SIZE))

        yield Ends(lambda: source.given, read, bound=(PIPE + 4) * SIZE)
        os.close(pipe)
        writing.cancel()
        with suppress(OSError, asyncio.CancelledError):
            await writing


# -- the web


def responses(name: str, source: Source, answer: Callable[[Flow[Any]], Any]) -> None:
    @connector(name)
    async def ends(_: Path) -> AsyncGenerator[Ends]:
        wanted, bodies = asyncio.Semaphore(0), asyncio.Semaphore(0)

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.body":
                await wanted.acquire()
                bodies.release()

        async def read() -> int:
            wanted.release()
            await bodies.acquire()
            return 1

        source.given = 0
        scope = {"type": "http", "method": "GET", "headers": []}
        serving = asyncio.create_task(answer(source.flow)(scope, asyncio.Event().wait, send))
        yield Ends(lambda: source.given, read, bound=1)
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


responses("FlowResponse", Source(b"x"), FlowResponse)
responses("JSONLinesResponse", Source({"n": 1}), JSONLinesResponse)
responses("EventStream", Source(Event("x")), lambda flow: EventStream(lambda _: flow))


def requests(name: str, of_body: Callable[[Flow[bytes]], Flow[Any]]) -> None:
    @connector(name)
    async def ends(_: Path) -> AsyncGenerator[Ends]:
        source = Source(b'{"n": 1}\n')
        chunks = aiter(source)

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": await anext(chunks), "more_body": True}

        body = request_body({"type": "http", "headers": []}, receive, max_bytes=1 << 40)
        async with of_body(body).open() as items:
            yield source.ends(items, bound=1)


requests("request_body", lambda body: body)
requests("request_body, json_lines", json_lines)


def uploads(name: str, server: Callable[[Any, socket.socket], AbstractAsyncContextManager[None]]) -> None:
    """A client that uploads to a real server, whose application stops reading."""

    @connector(f"request_body, {name}")
    async def ends(_: Path) -> AsyncGenerator[Ends]:
        source, begun, over = Source(BLOCK, SIZE), asyncio.Queue[AsyncIterator[bytes]](), asyncio.Event()

        async def application(scope: Any, receive: Any, _: Any) -> None:
            if scope["type"] == "http":
                async with request_body(scope, receive, max_bytes=1 << 40).open() as chunks:
                    begun.put_nowait(chunks)
                    await over.wait()
                    # From Python 3.12 on the end of hypercorn waits for each connection. That ends when its body has been read.
                    with suppress(ClientDisconnectedError):
                        async for _ in chunks:
                            pass

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)  # each connection has it from here
            async with server(application, listener):
                async with connect("127.0.0.1", listener.getsockname()[1]) as peer:
                    narrow(peer)
                    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n"
                    await peer.send(Flow.of(head))
                    sending = asyncio.create_task(peer.send(source.flow))
                    yield source.ends(await begun.get(), bound=UPLOAD)
                    sending.cancel()
                    with suppress(asyncio.CancelledError):
                        await sending
                over.set()


for name, server in SERVERS.items():
    uploads(name, server)


@connector("StreamSocket, connect")
async def from_service(_: Path) -> AsyncGenerator[Ends]:
    source = Source("x")
    app = StreamSocket({"items": lambda _: source.flow})
    async with (
        serving(app) as url,
        connect_web(url) as connection,
        connection.read("items", prefetch=8).open() as items,
    ):
        yield source.ends(items, bound=8)


@connector("connect, StreamSocket")
async def from_client(_: Path) -> AsyncGenerator[Ends]:
    source = Source("x")
    connections = asyncio.Queue[Connection]()
    app = StreamSocket({}, on_connect=connections.put)
    async with serving(app) as url, connect_web(url, {"items": lambda _: source.flow}):
        connection = await connections.get()
        async with connection.read("items", prefetch=8).open() as items:
            yield source.ends(items, bound=8)


# -- all of them


@pytest.mark.parametrize("name", CONNECTORS)
async def test_a_reader_that_stops_stops_the_writer(name: str, tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), CONNECTORS[name](tmp_path) as ends:
        read = 0
        for _ in range(3):
            read += await ends.read()
        given = await ends.quiet()

        assert read <= given <= read + ends.bound

        while ends.given() == given:
            read += await ends.read()
        given = await ends.quiet()
        assert read <= given <= read + ends.bound
