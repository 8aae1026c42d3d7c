"""WebSockets that are killed at random leave no source, no task and no socket behind."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from reactive_aio.web import StreamSocket

from .raw import Raw
from .test_servers import PATIENCE, Sources, on_hypercorn, on_uvicorn

UNBOUNDED = 2**53 - 1
FATES = ("resets", "ends", "closes", "cancels and resets", "falls silent", "reads nothing")
STAY = {"falls silent", "reads nothing"}
"""Those whose socket stays, so that the server has to find out."""


async def killed(port: int, fate: str) -> Raw:
    # Who falls silent wants a few elements; who reads nothing wants all.
    few = fate == "falls silent"
    client = await Raw.open(port, "numbers", 8 if few else UNBOUNDED, b'"item":7' if few else b'"item":')
    match fate:
        case "resets":
            client.reset()
        case "ends":
            client.end()
        case "closes":
            client.close()
        case "cancels and resets":
            client.say(type="cancel", id=1)
            client.reset()
        case _:
            client.silent()
    return client


def sockets() -> int:
    return len(os.listdir("/dev/fd"))


SERVERS: dict[str, Callable[..., AbstractAsyncContextManager[None]]] = {
    "uvicorn": partial(on_uvicorn, ws_ping_interval=0.5, ws_ping_timeout=0.5, ws_per_message_deflate=False),
    "hypercorn": on_hypercorn,
}
UNNOTICED = {"hypercorn": {"falls silent"}}
"""Clients that a server does not notice: hypercorn can send pings, and waits for no answer."""


@pytest.mark.costly
@pytest.mark.parametrize(("server", "count"), [("uvicorn", 200), ("hypercorn", 50)])
async def test_clients_that_are_killed_leave_nothing(server: str, count: int) -> None:
    possible = [fate for fate in FATES if fate not in UNNOTICED.get(server, ())]
    fates = random.Random(1).choices(possible, k=count)
    assert set(possible) == set(Counter(fates))
    sources = Sources()
    app = StreamSocket(
        {"numbers": lambda _: sources.flow.map(lambda n: [n, "x" * 2000] if n > 8 else n)}, send_timeout=0.5
    )
    tasks = asyncio.all_tasks()
    with socket.create_server(("127.0.0.1", 0), backlog=count) as listener:
        port: int = listener.getsockname()[1]
        async with SERVERS[server](app, listener):
            await (await killed(port, "closes")).gone()  # the event loop opens what it needs for all of them
            await sources.all_ended()
            before = sockets()
            clients = await asyncio.gather(*(killed(port, fate) for fate in fates))
            await sources.all_ended()
            for client in clients:
                await client.gone()

    assert (count + 1, count + 1) == (sources.begun, sources.ended)
    assert tasks == asyncio.all_tasks()
    async with asyncio.timeout(PATIENCE):
        while sockets() >= before:  # the socket that listened is gone, too
            await asyncio.sleep(0)
