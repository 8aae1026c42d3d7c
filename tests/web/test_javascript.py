"""The client in JavaScript: the vectors, and a service on uvicorn that it reads and publishes to, in Node and in Chromium."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from reactive_aio import Flow
from reactive_aio.web import Connection, StreamError, StreamSocket

from .javascript import HERE, MODULE, browser, node
from .test_servers import on_uvicorn

PATIENCE = 60.0
"""Seconds after which a client counts as lost; a browser on a busy machine takes some to start."""

PAGE = """<!doctype html><title>waiting</title><script type="module">
import * as client from "/static/reactive-streams.js";
import { played } from "/tests/scenario.mjs";
try {
  window.found = JSON.stringify(await played(client, `ws://${location.host}/streams`));
} catch (error) {
  window.found = JSON.stringify(String(error));
}
</script>"""


@define(eq=False)
class Service:
    """The source that the scenario reads, and its state."""

    made: int = field(init=False, default=0)
    cleaned: int = field(init=False, default=0)
    changed: asyncio.Condition = field(init=False, factory=asyncio.Condition)
    connection: Connection = field(init=False)

    async def endless(self) -> AsyncIterator[int]:
        try:
            while True:
                self.made += 1
                yield self.made
        finally:
            async with self.changed:
                self.cleaned += 1
                self.changed.notify_all()

    async def until_cleaned(self, count: int) -> int:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: self.cleaned >= count)
        return self.made

    async def keep(self, connection: Connection) -> None:
        self.connection = connection

    def application(self) -> Starlette:
        def taken(name: str, count: int, prefetch: int) -> Flow[list[Any]]:
            items = self.connection.read(name, {"from": 5}, prefetch=prefetch).take(count)
            shown = items.map(lambda item: list(item) if isinstance(item, bytes) else item)
            return Flow.from_awaitable(shown.to_list)

        offers: dict[str, Any] = {
            "numbers": lambda args: Flow.range(args["stop"]),
            "blob": lambda _: Flow.of(b"\x00\xff"),
            "endless": lambda _: Flow.from_async_iterable(self.endless),
            "made": lambda _: Flow.from_awaitable(lambda: self.until_cleaned(1)),
            "telling": lambda _: Flow.error(StreamError("come back later")),
            "take three orders": lambda _: taken("orders", 3, 2),
            "take blobs": lambda _: taken("blobs", 1, 1),
        }

        async def page(_: Request) -> HTMLResponse:
            return HTMLResponse(PAGE)

        return Starlette(
            routes=[
                Route("/", page),
                WebSocketRoute("/streams", StreamSocket(offers, on_connect=self.keep)),
                Mount("/static", StaticFiles(directory=MODULE.parent)),
                Mount("/tests", StaticFiles(directory=HERE)),
            ]
        )


@asynccontextmanager
async def serving(service: Service) -> AsyncGenerator[str]:
    """Serve, and give the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with on_uvicorn(service.application(), listener):
            yield f"127.0.0.1:{listener.getsockname()[1]}"


async def run_node(script: str, *arguments: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        node(),
        str(HERE / script),
        str(MODULE),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        shown, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(shown)


async def run_browser(address: str) -> Any:
    playwright = pytest.importorskip("playwright.async_api", reason="needs the package playwright")
    command = browser()  # first of all: a test that is skipped leaves no driver behind
    async with playwright.async_playwright() as tools:
        chromium = await tools.chromium.launch(executable_path=command, args=["--no-sandbox"])
        page = await chromium.new_page()
        await page.goto(f"http://{address}/")
        found = await page.wait_for_function("window.found", timeout=PATIENCE * 1000)
        shown: str = await found.json_value()
        await chromium.close()
    return json.loads(shown)


def check(found: dict[str, Any], service: Service) -> None:
    made, made_there = found.pop("made"), found.pop("madeHere")
    assert {
        "inOrder": True,
        "blob": [0, 255],
        "failure": "come back later",
        "taken": [{"order": 5}, {"order": 6}, {"order": 7}],
        "takenBlobs": [[0, 255]],
        "signals": [0, 1, 2, "complete"],
        "afterTheEnd": True,
        "refused": True,
    } == found
    # The client has had 20, and eight were requested ahead; the service three, and two ahead.
    assert 20 <= made <= 28
    assert 3 <= made_there <= 5
    assert 2 == service.cleaned


async def test_the_vectors_fit() -> None:
    assert [] == await run_node("vectors.mjs", str(HERE / "vectors.json"))


@pytest.mark.costly
async def test_node_reads_a_service_and_publishes_to_it() -> None:
    service = Service()
    async with serving(service) as address:
        found = await run_node("client.mjs", f"ws://{address}/streams")
        await service.until_cleaned(2)

    check(found, service)


async def test_a_browser_reads_a_service_and_publishes_to_it() -> None:
    service = Service()
    async with serving(service) as address:
        found = await run_browser(address)
        await service.until_cleaned(2)

    check(found, service)
