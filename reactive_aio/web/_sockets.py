"""WebSockets that carry demand: an ASGI application that speaks ``reactive-streams.v1``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from .._core.guard import as_failure, is_cancelled
from .._core.tasks import begin_task
from .._flow.flow import Flow
from .._fusion import label
from ..operators._fluent import check_count, check_function, check_seconds
from ._connection import Connection, Limits
from ._delivery import ClientDisconnectedError, DisconnectedError, Receive, Scope, Send
from ._frames import LARGEST, PROTOCOL, SHORTEST, FrameError, Message

T = TypeVar("T")

POLICY = 1008


class StreamSocket:
    """Offer streams on a WebSocket, with demand, and read those that the client offers.

    ``offers`` has a function for each name of a stream. It is called for each subscription with the ``args`` of the
    client, a JSON value. It returns a flow of JSON values or bytes. ``on_connect(connection)`` runs beside, as long as
    the client is there. ``connection.read(name, args)`` returns a flow of a stream that the client offers. The protocol
    is on the page "The WebSocket protocol".
    Demand: an element is requested when the client has requested it, and then sent. A client that requests and does not
    read stops the source too. It may request ``max_credit`` elements of a stream at a time.
    Cancel: when the client cancels or the connection ends, the flow is closed, and all cleanup has ended when the call returns. A client that
    takes longer than ``send_timeout`` seconds for a frame has stalled, which ends the connection.
    Errors: a client learns that a stream has failed, and not why, unless the flow fails with StreamError. The failure
    goes to ``hooks.on_error_dropped``. Invalid frames, and frames of more than ``max_frame`` bytes, end the connection.
    More than ``max_streams`` subscriptions at a time are refused. An exception that ``on_connect`` raises ends the
    connection, and is raised.
    Security: a browser with an Origin may connect from the same host, and from ``origins``, such as
    "https://example.org". "*" allows all.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import StreamSocket
    >>> app = StreamSocket({"numbers": lambda args: Flow.range(args["stop"])}, origins=["https://example.org"])
    """

    def __init__(
        self,
        offers: Mapping[str, Callable[[Any], Flow[T]]],
        *,
        on_connect: Callable[[Connection], Awaitable[object]] | None = None,
        origins: Iterable[str] = (),
        max_frame: int = 1_048_576,
        max_streams: int = 100,
        max_credit: int = LARGEST,
        send_timeout: float | None = 30.0,
    ) -> None:
        check_offers("StreamSocket", offers)
        if isinstance(origins, str):
            raise TypeError(f"StreamSocket(origins={label(origins)}): origins must be a list of strings")
        self._takes = limits("StreamSocket", max_frame, max_credit)
        check_count("StreamSocket", "max_streams", max_streams, 1)
        if send_timeout is not None:
            check_seconds("StreamSocket", "send_timeout", send_timeout, above=True)
        self._offers = dict(offers)
        self._on_connect = on_connect
        self._origins = frozenset(origins)
        self._max_streams = max_streams
        self._send_timeout = send_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection (an ASGI application)."""
        if scope["type"] != "websocket":
            raise TypeError(f"StreamSocket answers WebSockets, not a scope of type {scope['type']!r}")
        await receive()  # what asks to be let in
        protocols: Any = scope.get("subprotocols") or ()
        if not self._lets_in(scope) or PROTOCOL not in protocols:
            await send({"type": "websocket.close", "code": POLICY, "reason": ""})
            return
        await send({"type": "websocket.accept", "subprotocol": PROTOCOL})

        code, reason = await self._served(receive, send)
        if code:
            with suppress(OSError):
                async with asyncio.timeout(self._send_timeout):
                    await send({"type": "websocket.close", "code": code, "reason": reason})

    def _lets_in(self, scope: Scope) -> bool:
        """Return whether the page of a browser may connect. A client without an origin is not a browser."""
        headers: Any = scope["headers"]
        named = {name.lower(): bytes(value).decode("latin-1") for name, value in headers}
        origin = named.get(b"origin")
        if origin is None or "*" in self._origins or origin in self._origins:
            return True
        scheme, _, host = origin.partition("://")
        # Behind a proxy that ends TLS, a page of https connects by ws. The other way round a page was not protected.
        weaker = scope.get("scheme") == "wss" and scheme != "https"
        return host == named.get(b"host") != "" and not weaker

    async def _served(self, receive: Receive, send: Send) -> tuple[int, str]:
        """Serve until the end. Return the code and the reason to close the connection with, or 0 if it is closed."""

        async def put(message: Message) -> None:
            kind = "text" if isinstance(message, str) else "bytes"
            try:
                async with asyncio.timeout(self._send_timeout):
                    await send({"type": "websocket.send", kind: message})
            except Exception as error:  # it has stalled, or gone: servers say so by OSError, or by RuntimeError
                raise ClientDisconnectedError("the client has gone") from error

        connection = Connection(put, self._offers, self._max_streams, self._takes)
        hearing = begin_task(heard(connection, receive))
        beside = begin_task(self._beside(connection))
        closed = begin_task(connection.wait_closed())
        tasks = (hearing, beside, closed)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await connection.settle(*tasks)
        if not beside.cancelled() and (error := beside.exception()) is not None:
            raise error
        return (0, "") if hearing.cancelled() else hearing.result()

    async def _beside(self, connection: Connection) -> None:
        if self._on_connect is not None:
            try:
                await self._on_connect(connection)
            except asyncio.CancelledError as error:
                if is_cancelled():
                    raise
                raise as_failure(error) from error
        await connection.wait_closed()


async def heard(connection: Connection, receive: Receive) -> tuple[int, str]:
    """Receive the frames of a client until the end. Return how to close the connection, as above."""
    try:
        await connection.greet()
        while True:
            message: Any = await receive()
            if message["type"] == "websocket.disconnect":
                return 0, ""
            text: str | None = message.get("text")
            connection.hear(bytes(message["bytes"]) if text is None else text)
    except FrameError as error:
        return error.code, str(error)[:120]
    except DisconnectedError:
        return 0, ""


def check_offers(who: str, offers: Mapping[str, Callable[[Any], Flow[Any]]]) -> None:
    """Raise unless the offers are functions."""
    for name, offer in offers.items():
        check_function(f"{who}({name!r})", offer, "return a flow")


def limits(who: str, max_frame: int, max_credit: int) -> Limits:
    """Return the limits of a side, from its arguments."""
    check_count(who, "max_frame", max_frame, SHORTEST)
    check_count(who, "max_credit", max_credit, 1)
    return Limits(min(max_frame, LARGEST), min(max_credit, LARGEST))
