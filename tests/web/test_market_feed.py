"""One feed of prices to 200 WebSockets on a real server: 20 of them want nothing more, 20 vanish, and the others get everything in order."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from reactive_aio import Hub
from reactive_aio.web import StreamSocket, connect

from .raw import Raw
from .test_servers import PATIENCE, on_uvicorn

CLIENTS, DEAF, VANISHING = 160, 20, 20
PRICES = 200
LAG = 32


async def reads(url: str) -> list[int]:
    """Take all prices."""
    async with connect(url) as connection:
        numbers: list[int] = await connection.read("prices", prefetch=16).map(lambda price: price["n"]).to_list()
    return numbers


async def begun(port: int, more: int) -> Raw:
    """Be in the middle of the feed, want some more prices, and read no more."""
    client = await Raw.open(port, "prices", 1, b'"item"')
    client.say(type="request", id=1, n=more)
    client.silent()
    return client


@pytest.mark.costly
async def test_a_feed_serves_those_who_read_whatever_the_others_do() -> None:
    hub: Hub[dict[str, Any]] = Hub(idle="wait", lag=LAG, evict_after=0.3)
    app = StreamSocket({"prices": lambda _: hub.flow}, send_timeout=0.3)
    kept: list[int] = []

    async def feed() -> None:
        for n in range(PRICES):
            await hub.emit({"n": n, "text": "x" * 2_048})
            kept.append(hub.snapshot().kept)

    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        port: int = listener.getsockname()[1]
        async with on_uvicorn(app, listener, ws_per_message_deflate=False):
            deaf = [asyncio.create_task(begun(port, more=3)) for _ in range(DEAF)]
            vanishing = [asyncio.create_task(begun(port, more=1_000_000)) for _ in range(VANISHING)]
            reading = [asyncio.create_task(reads(f"ws://127.0.0.1:{port}")) for _ in range(CLIENTS)]
            async with asyncio.timeout(PATIENCE):
                while hub.subscribers < CLIENTS + DEAF + VANISHING:
                    await asyncio.sleep(0.01)
            feeding = asyncio.create_task(feed())
            raws = await asyncio.gather(*deaf, *vanishing)
            for n, client in enumerate(raws[DEAF:]):
                (client.reset, client.end, client.close)[n % 3]()
            async with asyncio.timeout(PATIENCE):
                await feeding
                hub.complete()
                taken = await asyncio.gather(*reading)
            assert 0 == hub.subscribers
            for client in raws:
                await client.gone()

    assert [list(range(PRICES))] * CLIENTS == taken
    assert max(kept) <= LAG, "more than one log is kept"
