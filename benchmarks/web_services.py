"""The services of the chapter on the web, in a process of its own: ``python -m benchmarks.web_services NAME``.

It says its port, answers ``/events`` or ``/body``, begins with the events at ``/begin``, and says at ``/figures`` what it has taken.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import process_time
from typing import Any, Final

import uvicorn
from starlette.responses import StreamingResponse

from reactive_aio import Flow
from reactive_aio.web import Event, EventStream, FlowResponse, Resumable

from . import by_hand_web as by_hand
from .web_clients import allow_many_files

OURS: Final = "reactive_aio"
BY_HAND: Final = "a loop of sends"
STARLETTE: Final = "Starlette's StreamingResponse"

RATE: Final = 10
"""Events a second."""
PAUSE: Final = 0.5
PADDING: Final = "x" * 3_000
"""So that a client that stalls fills what is between before the end."""
CHUNK: Final = b"x" * 65_536
SEND_BUFFER: Final = 16_384
"""Bytes that the system holds for a client that reads events; without it, megabytes."""
PAGE: Final = 4_096


class Service:
    """An application with a shared stream of events, and bodies of its own to each client."""

    def __init__(self, name: str, events: int) -> None:
        self._name = name
        self._events = events
        self._begun = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._answer = self._by_hand() if name == BY_HAND else self._ours()

    def _ours(self) -> by_hand.Application:
        return as_application(EventStream(Resumable(Flow.from_async_iterable(self._ticks), Event, replay=100)))

    def _by_hand(self) -> by_hand.Application:
        log = by_hand.Log()
        self._writing = asyncio.create_task(log.write(self._ticks()))
        return log.serve

    async def _ticks(self) -> AsyncIterator[str]:
        """Yield texts that begin with the time at which they are due, at the rate, from when they are asked to begin.

        A service that is busy with the event before makes the next one late, and that counts: the client does not see why it waits.
        A client learns that it is connected before it listens, so there is a pause before the first one.
        """
        await self._begun.wait()
        loop = asyncio.get_running_loop()
        start = loop.time() + PAUSE
        for number in range(self._events):
            due = start + number / RATE
            await asyncio.sleep(due - loop.time())
            yield f"{int(due * 1e9)} {PADDING}"
        await asyncio.Event().wait()  # the end of a thousand responses is not what is measured

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        path = scope["path"]
        if path == "/events":
            await self._answer(scope, receive, send)
        elif path == "/body":
            await self._body(int(scope["query_string"]), scope, receive, send)
        else:
            if path == "/begin":
                self._begun.set()
            figures = json.dumps({"cpu": process_time(), "memory": resident()})
            await FlowResponse(Flow.of(figures))(scope, receive, send)

    async def _body(self, chunks: int, scope: Any, receive: Any, send: Any) -> None:
        if self._name == OURS:
            await FlowResponse(Flow.from_async_iterable(body(chunks)))(scope, receive, send)
        elif self._name == STARLETTE:
            await StreamingResponse(body(chunks))(scope, receive, send)
        else:
            await by_hand.send_all(body(chunks), send)


def as_application(answer: Any) -> by_hand.Application:
    """Return an application with the types of the one by hand."""
    application: by_hand.Application = answer
    return application


async def body(chunks: int) -> AsyncIterator[bytes]:
    """Yield the chunks of a body."""
    for _ in range(chunks):
        yield CHUNK


def resident() -> int:
    """Return the bytes of memory that the process has, where the system tells."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * PAGE if statm.exists() else 0


async def main(name: str, events: int) -> None:
    """Serve until a signal ends the process."""
    allow_many_files()
    listener = socket.socket()
    if events:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    listener.bind(("127.0.0.1", 0))
    application: Any = Service(name, events)
    config = uvicorn.Config(
        application, log_level="critical", lifespan="off", backlog=4_096, timeout_graceful_shutdown=1
    )
    listener.listen(4_096)  # so that the clients may come as soon as they know the port
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
