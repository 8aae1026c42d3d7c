"""The client's side of ``reactive-streams.v1``, over the library websockets (the extra ``websockets``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from .._core.redacting import redacted
from .._core.tasks import begin_task
from .._flow.flow import Flow
from ..operators._fluent import check_count
from ._connection import Connection
from ._delivery import DisconnectedError
from ._frames import LARGEST, PROTOCOL, FrameError, Message
from ._sockets import check_offers, limits

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

REFUSED: Final = "the service has refused the connection"


@asynccontextmanager
async def connect(
    url: str,
    offers: Mapping[str, Callable[[Any], Flow[Any]]] | None = None,
    *,
    max_frame: int = 1_048_576,
    max_streams: int = 100,
    max_credit: int = LARGEST,
    **options: Any,
) -> AsyncGenerator[Connection]:
    """Connect to a service that speaks ``reactive-streams.v1``. Read its streams, and offer streams to it.

    ``connection.read(name, args)`` returns a flow of a stream of the service. ``offers`` has a function for each stream
    that the service may read. The offers and the limits are as in `StreamSocket`. All other ``options`` are those of
    ``websockets.connect``: ``ssl``, ``additional_headers``, ``origin``, ``ping_interval`` and so on.
    ``connection.wait_closed()`` waits until the service has gone.
    Demand: as in `StreamSocket`, in both directions.
    Cancel: the end of the block cancels all streams that the service reads, and waits for their cleanup.
    Errors: OSError or TimeoutError if the connection fails. DisconnectedError (a ConnectionError, and so an OSError) if
    the service refuses it. Flows raise the errors of `Connection.read`. ValueError for a text that is not the URL of a
    WebSocket. ImportError without the extra ``websockets``. No error shows the user, the password or the query of a
    URL.

    >>> from reactive_aio.web import connect
    >>> async def total(url):
    ...     async with connect(url) as connection:
    ...         return await connection.read("numbers", {"stop": 10}).sum()
    """
    import websockets

    if not isinstance(cast("object", url), str):
        raise TypeError(f"connect() takes a URL as text, not {type(url).__name__}")
    check_offers("connect", offers or {})
    check_count("connect", "max_streams", max_streams, 1)
    takes = limits("connect", max_frame, max_credit)
    spoken = [websockets.Subprotocol(PROTOCOL)]
    socket = await opened(url, subprotocols=spoken, max_size=takes.frame, **options)
    try:
        if socket.subprotocol != PROTOCOL:
            raise DisconnectedError(f"{REFUSED}: it does not speak {PROTOCOL}")

        async def put(message: Message) -> None:
            try:
                await socket.send(message)
            except websockets.ConnectionClosed as error:
                raise DisconnectedError("the service has gone") from error

        connection = Connection(put, offers or {}, max_streams, takes)
        hearing = begin_task(heard(connection, socket))
        try:
            yield connection
        finally:
            hearing.cancel()
            await connection.settle(hearing)
    finally:
        try:
            await socket.close()
        except asyncio.CancelledError:
            socket.transport.abort()  # else it is open until the service answers
            with suppress(asyncio.CancelledError):
                await socket.wait_closed()
            raise


async def opened(url: str, **options: Any) -> ClientConnection:
    """Open the connection.

    No error has the user, the password or the query of a URL, neither of the service nor of a proxy.
    """
    import websockets

    for given in (url, options.get("proxy")):
        check_url(given)
    try:
        return await websockets.connect(url, **options)
    except (websockets.InvalidURI, websockets.InvalidProxy) as error:
        raise ValueError(f"connect(): {redacted(str(error))}") from None
    except websockets.InvalidHandshake as error:
        said = str(error)
        told = redacted(said)
        # The cause has the response, but may have the URL of a redirect too.
        raise DisconnectedError(f"{REFUSED}: {told}") from (error if told == said else None)


def check_url(url: object) -> None:
    """Raise unless Python can split the URL. Its own error would show the invalid part, which may be of a password."""
    try:
        _ = urlsplit(url).port if isinstance(url, str) else None
    except ValueError:
        raise ValueError(f"connect({redacted(str(url))!r}): the host or the port of the URL can't be read") from None


async def heard(connection: Connection, messages: ClientConnection) -> None:
    """Receive the frames of a service until it has gone."""
    import websockets

    try:
        await connection.greet()
        async for message in messages:
            connection.hear(message)
    except FrameError as error:
        await messages.close(error.code, str(error)[:120])
    except (DisconnectedError, websockets.ConnectionClosed):
        pass
    finally:
        connection.close()
