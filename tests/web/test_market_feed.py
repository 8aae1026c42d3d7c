"""One feed of prices to 200 WebSockets on a real server: 20 of them want nothing more, 20 vanish, and the others get everything in order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Hub
from reactive_aio.operators.sharing import broadcast
from reactive_aio.operators.sharing.patience import PARTS, Patience, Watch
from reactive_aio.web import StreamSocket, connect

from .raw import Raw
from .test_servers import on_uvicorn

CLIENTS, DEAF, VANISHING = 160, 20, 20
PRICES = 200
LAG = 32
NEVER = 1e6
"""Seconds that no test takes: time passes when the test says so, however busy the machine is."""


@define(eq=False)
class ByHand(Patience):
    """Evicts those who are too slow when the test says that the time is up."""

    _watched: Watch | None = field(init=False, default=None)

    def _wait(self, watch: Watch) -> None:
        super()._wait(watch)
        self._watched = watch

    async def let_pass(self) -> None:
        """Have the time pass, part by part. The event loops of the readers have a turn in each."""
        for _ in range(PARTS):
            watch = self._watched
            assert watch is not None
            while watch.asked:
                await asyncio.sleep(0)
            self._stop()
            self._look(watch)


async def until(found: Callable[[], bool], tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for something, or for the failure of a task that it needs."""
    while not found():
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(0)


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
async def test_a_feed_serves_those_who_read_whatever_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "Patience", ByHand)
    hub: Hub[dict[str, Any]] = Hub(idle="wait", lag=LAG, evict_after=NEVER)
    app = StreamSocket({"prices": lambda _: hub.flow}, send_timeout=NEVER)
    kept: list[int] = []

    async def feed() -> None:
        for n in range(PRICES):
            await hub.emit({"n": n, "text": "x" * 2_048})
            kept.append(hub.snapshot().kept)

    def only_the_deaf_are_behind() -> bool:
        behind = [each.behind for each in hub.snapshot().subscribers]
        return len(behind) == CLIENTS + DEAF and behind.count(0) == CLIENTS and LAG in behind

    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        port: int = listener.getsockname()[1]
        async with on_uvicorn(app, listener, ws_per_message_deflate=False):
            deaf = [asyncio.create_task(begun(port, more=3)) for _ in range(DEAF)]
            vanishing = [asyncio.create_task(begun(port, more=1_000_000)) for _ in range(VANISHING)]
            reading = [asyncio.create_task(reads(f"ws://127.0.0.1:{port}")) for _ in range(CLIENTS)]
            everybody = [*deaf, *vanishing, *reading]
            await until(lambda: hub.subscribers == len(everybody), everybody)
            feeding = asyncio.create_task(feed())
            raws = await asyncio.gather(*deaf, *vanishing)
            for n, client in enumerate(raws[DEAF:]):
                (client.reset, client.end, client.close)[n % 3]()
            try:
                await until(only_the_deaf_are_behind, reading)
                held_up = hub.snapshot().made
                await patience_of(hub).let_pass()
                assert CLIENTS == hub.subscribers
                await feeding
                hub.complete()
                taken = await asyncio.gather(*reading)
                assert 0 == hub.subscribers
            finally:  # a server waits for its clients
                for client in raws:
                    await client.gone()
                for task in (feeding, *reading):
                    task.cancel()

    assert PRICES > held_up, "the feed waits for those who want nothing more, until their time is up"
    assert [list(range(PRICES))] * CLIENTS == taken
    assert max(kept) <= LAG, "more than one log is kept"


def patience_of(hub: Hub[Any]) -> ByHand:
    """Return what the hub has for those who hold up the others."""
    patience: Any = hub._emission.patience
    assert isinstance(patience, ByHand)
    return patience
