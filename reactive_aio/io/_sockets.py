"""Connections: peers to read and write as flows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from os import PathLike
from ssl import SSLContext
from typing import Any, cast

import anyio
from anyio.abc import ByteStream, Listener, SocketAttribute
from anyio.streams.tls import TLSListener
from attrs import define, frozen

from .._bytes import split_lines
from .._core.guard import FAILURES, as_failure, is_cancelled
from .._core.settling import settled
from .._core.tasks import begin_task
from .._flow.flow import Flow
from ..hooks import drop_error
from ..operators._fluent import check_function
from ._streams import from_stream, send_to

CLOSING = 1.0
"""Seconds that TLS may take to close the connection."""
PAUSE = 0.1
"""Seconds after which connections are accepted again, when the system could not give one."""


@frozen
class Peer:
    r"""The other side of a connection. Read its data as a flow, and send it flows.

    ``stream`` is a byte stream of anyio. ``Peer.of(reader, writer)`` takes the streams of asyncio. Reading and sending
    may go on at the same time, in two tasks. The streams stay open until their owner closes them.

    >>> import asyncio
    >>> from reactive_aio import Flow
    >>> from reactive_aio.io import Peer, connect, serve
    >>> async def shout(peer: Peer) -> None:
    ...     await peer.send(peer.lines().map(lambda line: line.upper() + b"\n"))
    >>> async def main():
    ...     async with serve(shout, "127.0.0.1", 0) as server, connect("127.0.0.1", server.port) as peer:
    ...         await peer.send(Flow.of(b"one\n", b"two\n"))
    ...         await peer.send_eof()
    ...         return await peer.lines().to_list()
    >>> asyncio.run(main())
    [b'ONE', b'TWO']
    """

    stream: ByteStream

    @classmethod
    def of(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer:
        """Take the streams of asyncio.

        A reader of asyncio reads ahead without demand, up to twice its ``limit``, which is 64 KiB by default.
        """
        return cls(_AsyncioStream(reader, writer))

    def chunks(self, *, size: int = 65_536) -> Flow[bytes]:
        """Read the data of the peer, in chunks of at most ``size`` bytes, until it ends its side.

        Demand, errors and cancel are those of `from_stream`. Without demand the peer can send only as much as the
        sockets hold. The loop may hold one read more, up to 256 KiB.
        """
        return from_stream(self.stream, size=size)

    def lines(self, *, max_line: int = 1_048_576) -> Flow[bytes]:
        r"""Read the lines of the peer, without the line breaks ``\n`` and ``\r\n``.

        Demand: a chunk is read when the lines of the one before have been emitted; else that of `split_lines`.
        Errors: TooLargeError for a line of more than ``max_line`` bytes, and those of `chunks`.
        """
        return split_lines(self.chunks(), max_line=max_line)

    async def send(self, flow: Flow[bytes], *, max_chunk: int = 65_536, send_timeout: float | None = None) -> None:
        """Send the chunks of a flow. Chunks that are already there go together, up to ``max_chunk`` bytes.

        Each is awaited until the operating system has it. The streams of asyncio also hold up to 64 KiB. Demand, errors
        and cancel are those of `send_to`. The loss of a peer is noticed when the next chunk is sent.
        """
        await send_to(self.stream, flow, max_chunk=max_chunk, send_timeout=send_timeout)

    async def send_eof(self) -> None:
        """End the sending side, and go on reading. TLS has no such end: there it raises NotImplementedError."""
        try:
            await self.stream.send_eof()
        except RuntimeError as error:
            if "the handler is closed" not in str(error):
                raise
            # The peer has gone. Only uvloop says so here; who reads or sends hears of it on each loop.


@define(eq=False)
class _AsyncioStream(ByteStream):
    """The streams of asyncio as one of anyio."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        chunk = await self.reader.read(max_bytes)
        if not chunk:
            raise anyio.EndOfStream
        return chunk

    async def send(self, item: bytes) -> None:
        try:
            self.writer.write(item)
        except RuntimeError as error:
            if not self.writer.is_closing():
                raise
            raise anyio.BrokenResourceError from error  # uvloop has closed it, as the peer has gone
        await self.writer.drain()

    async def send_eof(self) -> None:
        self.writer.write_eof()

    async def aclose(self) -> None:
        self.writer.close()
        with suppress(OSError):  # of a connection that has failed before
            await self.writer.wait_closed()


@asynccontextmanager
async def connect(
    host: str, port: int, *, ssl: SSLContext | None = None, server_hostname: str | None = None
) -> AsyncGenerator[Peer, None]:
    """Connect to a TCP port, by TLS with an ``ssl`` context, and yield the Peer. Leaving closes the connection.

    ``server_hostname`` is the name in the certificate, if it is not ``host``.
    Errors: OSError if the connection fails, ssl.SSLError if the certificate is refused.
    (asyncio: ``open_connection``.)

    An example is at `Peer`.
    """
    if ssl is None:
        stream: ByteStream = await anyio.connect_tcp(host, port)
    else:
        try:
            stream = await anyio.connect_tcp(host, port, ssl_context=ssl, tls_hostname=server_hostname or host)
        except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
            raise ConnectionResetError(f"{host} has closed the connection instead of beginning TLS") from error
    async with _closing(stream) as peer:
        yield peer


@asynccontextmanager
async def connect_unix(path: str | PathLike[str]) -> AsyncGenerator[Peer, None]:
    """Connect to a Unix socket, and yield the Peer. Leaving closes the connection.

    Errors: OSError if the connection fails.
    (asyncio: ``open_unix_connection``.)
    """
    async with _closing(await anyio.connect_unix(path)) as peer:
        yield peer


@frozen
class Server:
    """A listening socket. ``port`` is the TCP port, which the system chooses for 0. It is None for a Unix socket."""

    port: Any


@asynccontextmanager
async def serve(
    handler: Callable[[Peer], Awaitable[object]], host: str, port: int, *, ssl: SSLContext | None = None
) -> AsyncGenerator[Server, None]:
    """Listen on a TCP port, by TLS with an ``ssl`` context, and call ``handler(peer)`` for each connection, in a task of its own.

    A connection is closed when its handler returns, or its task is cancelled. Leaving the context stops listening, cancels the handlers, and
    waits for them. Then every flow that they run has been cleaned up.
    Errors: OSError if the port is not available. An exception of a handler ends its connection and goes to
    ``hooks.on_error_dropped``. An error of the connection, such as a reset by the peer, ends it and is not reported. A
    TLS handshake that fails is logged by anyio.
    When the system can't accept a connection, as without a free file descriptor, that goes to the same hook. The server
    tries again, and its connections go on.
    (asyncio: ``start_server``.)

    An example is at `Peer`.
    """
    check_function("serve", handler)
    listener: Listener[Any] = await anyio.create_tcp_listener(local_host=host, local_port=port)
    chosen = listener.extra(SocketAttribute.local_port)
    if ssl is not None:
        listener = TLSListener(listener, ssl)
    async with _serving(listener, handler):
        yield Server(chosen)


@asynccontextmanager
async def serve_unix(
    handler: Callable[[Peer], Awaitable[object]], path: str | PathLike[str]
) -> AsyncGenerator[Server, None]:
    """Make a Unix socket, listen on it, and call ``handler(peer)`` for each connection; else as `serve`.

    (asyncio: ``start_unix_server``.)
    """
    check_function("serve_unix", handler)
    async with _serving(await anyio.create_unix_listener(path), handler):
        yield Server(None)


@asynccontextmanager
async def _serving(listener: Listener[Any], handler: Callable[[Peer], Awaitable[object]]) -> AsyncGenerator[None, None]:
    """Serve until the context is left."""

    async def handle(stream: ByteStream) -> None:
        _hold(stream)
        try:
            async with _closing(stream) as peer:
                await handler(peer)
        except (anyio.BrokenResourceError, anyio.EndOfStream):
            pass  # the peer has gone
        except asyncio.CancelledError as error:
            # It ends here in any case: a task group of anyio ends with a task that is cancelled, and so would the server.
            if not is_cancelled():
                drop_error(as_failure(error))
        except FAILURES as error:
            drop_error(error)

    serving = begin_task(_accepting(listener, handle))
    try:
        yield
    finally:
        serving.cancel()
        try:
            await ended(serving)
        finally:
            await listener.aclose()


async def _accepting(listener: Listener[Any], handle: Callable[[ByteStream], Awaitable[None]]) -> None:
    """Accept connections, for ever. The handlers do not end when accepting fails, as without a free file descriptor."""
    async with anyio.create_task_group() as handlers:
        while True:
            try:
                await listener.serve(handle, handlers)
            except* (OSError, anyio.BrokenResourceError) as failed:  # of TCP, and of Unix sockets
                for error in _each(failed):
                    drop_error(error)
            await anyio.sleep(PAUSE)


def _each(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group, which a task group of the listener has put around them."""
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _each(one)
    else:
        yield error


def _hold(stream: ByteStream) -> None:
    """Pause reading until there is demand. anyio pauses the connections that it makes, but not those that it accepts."""
    pause: Callable[[], None] | None = getattr(getattr(stream, "_transport", None), "pause_reading", None)
    if pause is not None:
        pause()


async def ended(task: asyncio.Task[Any]) -> None:
    """Wait for the end of a cancelled task. A cancel is delayed until then."""
    await settled(task)
    with suppress(asyncio.CancelledError):
        task.result()


@asynccontextmanager
async def _closing(stream: ByteStream) -> AsyncGenerator[Peer, None]:
    """Yield a stream as a peer, and close it. A stream that does not close in time is aborted."""
    try:
        yield Peer(stream)
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise
    with anyio.move_on_after(CLOSING), suppress(anyio.BrokenResourceError, OSError):
        await stream.aclose()
