"""The client in Python, over websockets, with a service on uvicorn: both directions, refusals, and a connection that breaks."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from attrs import define, field

from reactive_aio import Backoff, Flow
from reactive_aio.web import Connection, DisconnectedError, RemoteError, StreamSocket, connect
from tests.subscribers import idle

from .test_servers import PATIENCE, on_uvicorn


@define(eq=False)
class Counted:
    """Numbers without an end, and how many readers have come and have been cleaned up."""

    made: int = field(init=False, default=0)
    begun: int = field(init=False, default=0)
    cleaned: int = field(init=False, default=0)
    changed: asyncio.Condition = field(init=False, factory=asyncio.Condition)

    async def numbers(self) -> AsyncIterator[int]:
        self.begun += 1
        try:
            while True:
                self.made += 1
                yield self.made
                await asyncio.sleep(0)
        finally:
            async with self.changed:
                self.cleaned += 1
                self.changed.notify_all()

    @property
    def flow(self) -> Flow[int]:
        return Flow.from_async_iterable(self.numbers)

    async def until_cleaned(self) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: self.begun == self.cleaned)


@asynccontextmanager
async def serving(app: Any) -> AsyncGenerator[str]:
    """Serve, and give the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with on_uvicorn(app, listener):
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}"


async def test_a_stream_of_a_service_is_read_under_demand() -> None:
    counted = Counted()
    async with serving(StreamSocket({"numbers": lambda _: counted.flow})) as url, connect(url) as connection:
        assert [1, 2, 3] == await connection.read("numbers", prefetch=2).take(3).to_list()
        await counted.until_cleaned()
        assert counted.made <= 5


async def test_elements_are_json_or_bytes_in_both_directions() -> None:
    items: list[Any] = [b"", b"\x00\xff" * 50_000, {"a": [None, 1.5]}, "é"]

    def echo(connection: Connection) -> Flow[Any]:
        return connection.read("mine", prefetch=1)

    connections: list[Connection] = []

    async def keep(connection: Connection) -> None:
        connections.append(connection)

    app = StreamSocket({"echo": lambda _: echo(connections[0])}, on_connect=keep)
    async with serving(app) as url, connect(url, {"mine": lambda _: Flow.from_iterable(items)}) as connection:
        assert items == await connection.read("echo").to_list()


async def test_what_a_service_reads_of_the_client_is_cleaned_up_at_the_end_of_the_block() -> None:
    counted, taken = Counted(), asyncio.Event()

    async def take(item: int) -> None:
        if item == 3:
            taken.set()

    async def read(connection: Connection) -> None:
        await connection.read("numbers", prefetch=1).for_each(take)

    async def connected(url: str) -> None:
        async with connect(url, {"numbers": lambda _: counted.flow}):
            await taken.wait()
        assert (1, 1) == (counted.begun, counted.cleaned)

    async with serving(StreamSocket({}, on_connect=read)) as url, asyncio.timeout(PATIENCE):
        await connected(url)


async def test_what_ends_with_the_connection() -> None:
    async def leave(connection: Connection) -> None:
        raise LookupError("the service ends")

    app = StreamSocket({"never": lambda _: Flow.never()}, on_connect=leave)
    async with serving(app) as url, connect(url) as connection, asyncio.timeout(PATIENCE):
        with pytest.raises(DisconnectedError):
            await connection.read("never").drain()
        await connection.wait_closed()
        with pytest.raises(DisconnectedError, match="before the subscription"):
            await connection.read("never").drain()


async def test_a_service_that_refuses_is_a_failure() -> None:
    async with serving(StreamSocket({})) as url:
        with pytest.raises(DisconnectedError, match="refused"):
            async with connect(url, origin="https://elsewhere.example"):
                pass
        async with connect(url) as connection:
            with pytest.raises(RemoteError, match="no such stream"):
                await connection.read("nothing").drain()


async def test_a_service_that_speaks_another_protocol_is_a_failure() -> None:
    async def hear(connection: websockets.ServerConnection) -> None:
        await connection.wait_closed()

    async with websockets.serve(hear, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises(DisconnectedError, match="does not speak"):
            async with connect(f"ws://127.0.0.1:{port}"):
                pass


async def test_a_cancel_while_it_closes_closes_at_once() -> None:
    deaf, over = asyncio.Event(), asyncio.Event()

    async def silent(connection: websockets.ServerConnection) -> None:
        await connection.recv()
        connection.transport.pause_reading()  # so that it does not answer a close
        deaf.set()
        await over.wait()
        connection.transport.abort()

    async def use(url: str) -> None:
        async with connect(url):
            await deaf.wait()

    spoken = [websockets.Subprotocol("reactive-streams.v1")]
    async with websockets.serve(silent, "127.0.0.1", 0, subprotocols=spoken) as service:
        port = next(iter(service.sockets)).getsockname()[1]
        using = asyncio.create_task(use(f"ws://127.0.0.1:{port}"))
        await deaf.wait()
        await idle()
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        left = [task for task in asyncio.all_tasks() if "keepalive" in repr(task)]
        over.set()

    assert len(left) <= 1  # that of the service


async def test_the_limits_of_both_sides_hold() -> None:
    def app() -> StreamSocket:
        return StreamSocket({"echo": Flow.of}, max_frame=2048, max_credit=3)

    async with serving(app()) as url, connect(url, max_frame=1024) as connection:
        with pytest.raises(ValueError, match="2048 bytes"):
            await connection.read("echo", "x" * 2048).drain()
        with pytest.raises(RemoteError, match="1024 bytes"):
            await connection.read("echo", "x" * 1500, prefetch=1000).drain()
        assert ["x" * 500] == await connection.read("echo", "x" * 500).to_list()


async def test_a_reader_reconnects_and_goes_on_behind_its_last_element() -> None:
    breaks: list[asyncio.Event] = []

    async def until_it_breaks(_: Connection) -> None:
        breaks.append(asyncio.Event())
        await breaks[-1].wait()
        raise LookupError("the service loses the client")

    async def four(start: int) -> AsyncIterator[int]:
        for n in range(start, min(start + 4, 10)):
            yield n
        if start + 4 < 10:
            breaks[-1].set()
            await asyncio.Event().wait()

    app = StreamSocket(
        {"numbers": lambda args: Flow.from_async_iterable(lambda: four(args["start"]))}, on_connect=until_it_breaks
    )
    async with serving(app) as url:

        def numbers(start: int) -> Flow[int]:
            return Flow.using(
                lambda: connect(url), lambda service: service.read("numbers", {"start": start}, prefetch=1)
            )

        flow = numbers(0).retry(
            Backoff(0.001, max_retries=5), errors=ConnectionError, resume=lambda last: numbers(last + 1)
        )
        assert [*range(10)] == await flow.to_list()
    assert 3 == len(breaks)


def test_an_import_of_the_web_package_loads_no_library_of_clients() -> None:
    libraries = {"websockets", "httpx", "httpx2", "aiohttp", "multipart"}
    program = f"import sys, reactive_aio.web; print({libraries} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "set()\n" == done.stdout


async def test_a_url_that_is_no_text_is_refused() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match=r"connect\(\) takes a URL as text, not int"):
        async with connect(wrong):
            pass
