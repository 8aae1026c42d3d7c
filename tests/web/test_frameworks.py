"""Starlette, FastAPI and Litestar on uvicorn and hypercorn: the same service, written as the users of each of them write one."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Annotated, Any

import pytest
from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route, WebSocketRoute

from reactive_aio import Flow
from reactive_aio.web import (
    Event,
    EventStream,
    FlowResponse,
    JSONLinesResponse,
    StreamSocket,
    connect,
    json_lines,
    request_body,
)

from .test_servers import PATIENCE, SERVERS, reset

EVENTS = EventStream(lambda last_id: Flow.range(int(last_id or 0), 3).map(lambda n: Event(str(n))))
STREAMS = StreamSocket({"numbers": lambda args: Flow.range(args["stop"])})


def numbers(stop: int) -> Flow[dict[str, int]]:
    return Flow.range(stop).map(lambda n: {"n": n})


@define(eq=False)
class Quiet:
    """A body that says one thing, and then nothing more."""

    left: asyncio.Event = field(init=False, factory=asyncio.Event)

    def response(self) -> FlowResponse:
        return FlowResponse(Flow.of(b"begun").concat(Flow[bytes].never()).do_finally(self.left.set))


async def total(request: Any) -> int:
    """Add up what is uploaded; a request of each framework has a scope and a receive."""
    body = request_body(request.scope, request.receive, max_bytes=1_000)
    return await json_lines(body).map(lambda line: line["n"]).sum()


def of_starlette(quiet: Quiet) -> Any:
    async def get(request: Request) -> Any:
        return JSONLinesResponse(numbers(int(request.query_params["stop"])))

    async def post(request: Request) -> JSONResponse:
        return JSONResponse({"total": await total(request)})

    async def silent(_: Request) -> Any:
        return quiet.response()

    routes = [Route("/numbers", get), Route("/quiet", silent), Route("/total", post, methods=["POST"])]
    return Starlette(routes=[*routes, Mount("/events", EVENTS), WebSocketRoute("/streams", STREAMS)])


def of_fastapi(quiet: Quiet) -> Any:
    fastapi = pytest.importorskip("fastapi", reason="needs the package fastapi")
    app = fastapi.FastAPI()

    def wanted(stop: int) -> Flow[dict[str, int]]:
        """Be a dependency, which FastAPI hands the query."""
        return numbers(stop)

    # The annotations are made here: those of the module are texts, which FastAPI would look up among its globals.
    async def get(flow: Any) -> Any:
        return Passing(JSONLinesResponse(flow))

    class Passing(fastapi.Response):  # type: ignore[name-defined, misc] # imported where it is there
        """A response of ours as one of FastAPI's, which it demands of an endpoint."""

        def __init__(self, response: Any) -> None:
            super().__init__()
            self._response = response

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await self._response(scope, receive, send)

    async def post(request: Any) -> Any:
        return {"total": await total(request)}

    async def silent() -> Any:
        return Passing(quiet.response())

    get.__annotations__ = {"flow": Annotated[Flow[dict[str, int]], fastapi.Depends(wanted)]}
    wanted.__annotations__ = {"stop": int}
    post.__annotations__ = {"request": fastapi.Request}
    app.get("/numbers", response_model=None)(get)
    app.get("/quiet", response_model=None)(silent)
    app.post("/total")(post)
    app.mount("/events", EVENTS)
    app.router.routes.append(WebSocketRoute("/streams", STREAMS))
    return app


def of_litestar(quiet: Quiet) -> Any:
    litestar = pytest.importorskip("litestar", reason="needs the package litestar")

    async def get(request: Any) -> Any:
        return JSONLinesResponse(numbers(int(request.query_params["stop"])))

    async def post(request: Any) -> Any:
        return {"total": await total(request)}

    async def silent() -> Any:
        return quiet.response()

    # The annotations are made here: those of the module are texts, which Litestar would look up among its globals.
    get.__annotations__ = {"request": litestar.Request, "return": JSONLinesResponse}
    silent.__annotations__ = {"return": FlowResponse}
    post.__annotations__ = {"request": litestar.Request, "return": dict[str, int]}
    return litestar.Litestar(
        [
            litestar.get("/numbers")(get),
            litestar.get("/quiet")(silent),
            litestar.post("/total", status_code=200)(post),
            litestar.asgi("/events", is_mount=True, copy_scope=True)(EVENTS),
            litestar.asgi("/streams", copy_scope=True)(STREAMS),
        ],
        logging_config=None,
    )


async def exchange(port: int, head: str, body: bytes = b"") -> tuple[str, bytes]:
    """Send a request, and read the whole answer; give the status and the bodies chunks, without their lengths."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    )
    writer.write(body)
    answer = await reader.read()
    writer.close()
    head_of_answer, _, rest = answer.partition(b"\r\n\r\n")
    status, *headers = head_of_answer.decode().lower().split("\r\n")
    if "transfer-encoding: chunked" in headers:
        rest = unchunked(rest)
    return status.split()[1], rest


def unchunked(rest: bytes) -> bytes:
    body = b""
    while rest:
        length, _, rest = rest.partition(b"\r\n")
        size = int(length, 16)
        body, rest = body + rest[:size], rest[size + 2 :]
    return body


FRAMEWORKS = {"starlette": of_starlette, "fastapi": of_fastapi, "litestar": of_litestar}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_responses_events_bodies_and_websockets_fit_the_framework(framework: str, server: str) -> None:
    upload = b"".join(json.dumps({"n": n}).encode() + b"\n" for n in range(5))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        async with SERVERS[server](FRAMEWORKS[framework](Quiet()), listener), asyncio.timeout(PATIENCE):
            assert ("200", b'{"n": 0}\n{"n": 1}\n') == await exchange(port, "GET /numbers?stop=2")
            assert ("200", b"data: 0\n\ndata: 1\n\ndata: 2\n\n") == await exchange(port, "GET /events/")
            status, told = await exchange(port, "POST /total", upload)
            assert ("200", {"total": 10}) == (status, json.loads(told))
            async with connect(f"ws://127.0.0.1:{port}/streams") as connection:
                assert [0, 1, 2] == await connection.read("numbers", {"stop": 3}).to_list()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_client_that_leaves_a_quiet_body_is_noticed_through_the_framework(framework: str, server: str) -> None:
    quiet = Quiet()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        async with SERVERS[server](FRAMEWORKS[framework](quiet), listener), asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /quiet HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"begun")
            assert not quiet.left.is_set()
            reset(writer)
            await quiet.left.wait()
