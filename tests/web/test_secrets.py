"""No text of the library, and nothing that a client gets, has the secrets that a client or a service is given."""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest
import websockets

from reactive_aio import Backoff, Flow, hooks
from reactive_aio.web import (
    DisconnectedError,
    Event,
    EventStream,
    FlowResponse,
    JSONLinesResponse,
    StreamSocket,
    connect,
    follow_events,
    response_body,
)
from reactive_aio.web._following import Following
from reactive_aio.web._frames import read_frame, write_frame
from reactive_aio.web._reading_events import Position

from .origin import LIBRARIES, Open
from .raw import ASK
from .test_clients import serving
from .test_servers import PATIENCE, on_uvicorn

SECRET = "hunter" + "2"
"""Put together, so that no line of a traceback has it."""
HEADERS = {"Proxy-Authorization": f"Bearer {SECRET}", "Cookie": f"session={SECRET}"}
"""With no ``Authorization``: aiohttp makes that of the user and the password of the URL, and takes no second one."""


def told(error: BaseException) -> str:
    """Return all that can be read of an error: its traceback with notes and causes."""
    return "".join(traceback.format_exception(error))


async def raised(flow: Flow[Any]) -> str:
    try:
        await flow.drain()
    except Exception as error:
        return told(error)
    raise AssertionError("it has not failed")


# -- what a client is given


@asynccontextmanager
async def answering(answer: str) -> AsyncGenerator[int]:
    """Serve by one answer, whatever is asked for; give the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer.encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


REFUSALS = {
    "forbidden": "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    "sent elsewhere": f"HTTP/1.1 302 Found\r\nLocation: http://ann:{SECRET}@other/?token={SECRET}\r\nContent-Length: 0\r\n\r\n",
    "no HTTP": "nonsense\r\n\r\n",
}


@pytest.mark.parametrize("answer", REFUSALS)
async def test_a_service_that_refuses_a_websocket_is_named_without_secrets(answer: str) -> None:
    async with answering(REFUSALS[answer]) as port, asyncio.timeout(PATIENCE):
        url = f"ws://ann:{SECRET}@127.0.0.1:{port}/?token={SECRET}"
        with pytest.raises((DisconnectedError, ValueError)) as failed:
            async with connect(url, additional_headers=HEADERS):
                pass

    assert SECRET not in told(failed.value)


async def test_a_redirect_that_is_not_followed_is_named_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise websockets.SecurityError(f"cannot follow redirect to non-secure URI ws://ann:{SECRET}@other/a?{SECRET}")

    monkeypatch.setattr(websockets, "connect", refuse)
    with pytest.raises(DisconnectedError, match=r"ws://other/a\?\.\.\.") as failed:
        async with connect("wss://example.org"):
            pass
    assert SECRET not in told(failed.value)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (f"http://ann:{SECRET}@127.0.0.1/?token={SECRET}", {}),
        (f"ws://ann:{SECRET}@127.0.0.1/#{SECRET}", {}),
        (f"ws://ann:{SECRET}/@127.0.0.1/", {}),
        (f"ws://ann:{SECRET}@[::1/", {}),
        ("ws://127.0.0.1:1/", {"proxy": f"ftp://ann:{SECRET}@127.0.0.1"}),
        ("ws://127.0.0.1:1/", {"proxy": f"http://ann:{SECRET}/@127.0.0.1"}),
    ],
    ids=["scheme", "fragment", "port", "brackets", "scheme of a proxy", "port of a proxy"],
)
async def test_what_is_no_url_of_a_websocket_is_refused_without_secrets(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"connect\(") as failed:
        async with connect(url, **options):
            pass

    assert SECRET not in told(failed.value)


def over_http(request: Open, url: str) -> dict[str, Flow[Any]]:
    """Return the flows of a client, as users write them: with a partial, whose arguments are visible, and a lambda."""
    asked = partial(request, "GET", url, headers=HEADERS)
    return {
        "a body": Flow.using(asked, response_body),
        "a body, by a lambda": Flow.using(lambda: request("GET", url, headers=HEADERS), response_body),
        "a body for each URL": Flow.of(url).flat_map(lambda each: Flow.using(partial(asked, url=each), response_body)),
        "a body for each URL, awaited": Flow.of(url).map_async(partial(opened, request)),
        "events": follow_events(
            lambda headers: asked(headers={**HEADERS, **headers}), backoff=Backoff(0, max_retries=1)
        ),
        "events behind one": follow_events(lambda _: asked(), last_id=SECRET, backoff=Backoff(0, max_retries=1)),
    }


async def opened(request: Open, url: str) -> None:
    async with request("GET", url, headers=HEADERS):
        pass


def unused() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("flow", over_http(lambda *_, **__: aiohttp.ClientSession(), ""))
async def test_a_client_over_http_shows_no_secret(flow: str, library: str) -> None:
    url = f"http://ann:{SECRET}@127.0.0.1:{unused()}/a?token={SECRET}"
    async with LIBRARIES[library]() as request, asyncio.timeout(PATIENCE):
        asking = over_http(request, url)[flow].map(str)
        async with asking.open() as items:
            shown = [repr(asking), asking.describe(), asking.diagram(), repr(items.snapshot()), str(items.snapshot())]
        shown.append(await raised(asking))

    assert SECRET not in "\n".join(shown)


@pytest.mark.parametrize("library", LIBRARIES)
async def test_an_answer_that_is_no_stream_of_events_shows_no_secret(library: str) -> None:
    async with (
        answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as port,
        LIBRARIES[library]() as request,
    ):
        failure = await raised(over_http(request, f"http://ann:{SECRET}@127.0.0.1:{port}/?token={SECRET}")["events"])

    assert "status 403" in failure
    assert SECRET not in failure


async def test_the_arguments_and_elements_of_a_websocket_are_not_shown() -> None:
    offers = {"mine": partial(Flow.of, SECRET)}
    asked: Any = partial(opened, url=SECRET)
    app = StreamSocket({"kept": lambda _: Flow.of(SECRET).repeat(), "fails": lambda _: Flow.error(OSError())})
    async with serving(app) as url, connect(url, offers, additional_headers=HEADERS) as connection:
        kept = connection.read("kept", {"token": SECRET})
        async with kept.open() as items:
            await anext(items)
            while not kept_by(connection):
                await asyncio.sleep(0)
            shown = [repr(kept), kept.describe(), repr(items.snapshot()), repr(connection), repr(vars_of(connection))]
        with hooks.using(on_error_dropped=lambda _: None):
            shown.append(await raised(connection.read("fails", {"token": SECRET})))
        shown.append(await raised(connection.read("x", {"token": SECRET * 1_000_000})))
        shown.append(repr(read_frame(write_frame(type="subscribe", id=1, stream="x", args=SECRET, n=1))))
        shown.append(repr(read_frame(write_frame(type="next", id=1, item=SECRET))))
        shown.append(repr(Position(SECRET)))
        shown.append(repr(Following(asked, Backoff(1.0), 1, Position())))

    assert SECRET not in "\n".join(shown)


def kept_by(connection: Any) -> bool:
    """Return whether elements have come that nobody has taken yet."""
    return any(reading.items for reading in connection._reading.values())


def vars_of(connection: Any) -> list[Any]:
    """Return the parts of a connection, as a debugger shows them."""
    return [getattr(connection, name) for name in ("_reading", "_serving", "_takes")]


# -- what a service is given


def test_a_header_that_is_refused_is_shown_by_its_name() -> None:
    with pytest.raises(ValueError, match="'set-cookie'") as failed:
        FlowResponse(Flow.of(b""), headers={"Set-Cookie": f"session={SECRET}\r\n"})

    assert SECRET not in told(failed.value)


def test_the_origins_that_are_refused_are_shown_without_secrets() -> None:
    with pytest.raises(TypeError, match="origins") as failed:
        StreamSocket({}, origins=f"https://ann:{SECRET}@example.org")

    assert SECRET not in told(failed.value)


async def failing(first: Any) -> AsyncIterator[Any]:
    if first is not None:
        yield first
    error = OSError(f"postgres://ann:{SECRET}@database/")
    error.add_note(SECRET)
    raise error


def flow_of(first: Any = None) -> Flow[Any]:
    return Flow.from_async_iterable(lambda: failing(first))


async def broken(_: Any) -> None:
    raise OSError(SECRET)


def refused(_: str | None) -> Flow[Event]:
    raise PermissionError(SECRET)


FAILING: dict[str, Any] = {
    "a body at its begin": FlowResponse(flow_of()),
    "a body": FlowResponse(flow_of(b"begun")),
    "lines": JSONLinesResponse(flow_of({"begun": 1})),
    "events": EventStream(lambda _: flow_of(Event("begun"))),
    "events that are refused": EventStream(refused),
    "a stream of a WebSocket": StreamSocket({"x": lambda _: flow_of(1)}),
    "what runs beside a WebSocket": StreamSocket({"x": lambda _: flow_of(1)}, on_connect=broken),
}


@pytest.mark.parametrize("name", FAILING)
async def test_a_client_gets_nothing_of_what_a_failure_says(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        with hooks.using(on_error_dropped=lambda _: None):
            async with on_uvicorn(FAILING[name], listener), asyncio.timeout(PATIENCE):
                got = await all_of(port, websocket="WebSocket" in name)

    assert b"HTTP/1.1" in got
    assert SECRET.encode() not in got
    assert b"database" not in got


async def all_of(port: int, *, websocket: bool) -> bytes:
    """Ask, and read until the server says no more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        if not websocket:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return await reader.read()
        writer.write(ASK.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        for frame in (write_frame(type="limits"), write_frame(type="subscribe", id=1, stream="x", n=9)):
            writer.write(bytes([0x81, 0x80 | len(frame)]) + bytes(4) + frame.encode())
        end = b"the stream has failed"
        got = b""
        while end not in got and (more := await reader.read(4096)):
            got += more
        return head + got
    finally:
        writer.transport.abort()
