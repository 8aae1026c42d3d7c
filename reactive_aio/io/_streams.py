"""The streams of anyio as flows, and flows into them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar, cast, overload

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, ObjectReceiveStream, ObjectSendStream
from attrs import define

from .._connector import polled
from .._flow.flow import Flow
from .._flow.rows import for_each_row
from ..operators._fluent import check_count, check_flow, check_seconds

T = TypeVar("T")


@overload
def from_stream(stream: ByteReceiveStream, *, size: int = 65_536) -> Flow[bytes]: ...
@overload
def from_stream(stream: ObjectReceiveStream[T]) -> Flow[T]: ...
def from_stream(stream: Any, *, size: int = 65_536) -> Flow[Any]:
    """Read a stream of anyio as a flow of chunks of at most ``size`` bytes, or of the objects of an object stream.

    The stream stays yours: close it by ``async with``. A second subscription goes on where the first has stopped.
    Demand: ``receive()`` is called once for each requested element, and never ahead.
    Errors: those of the stream: BrokenResourceError if the other side resets it, ClosedResourceError if this side has
    closed it. Any other object is refused with TypeError.
    Cancel: ``receive()`` is cancelled. The streams of anyio lose nothing then.
    (anyio: ``async for item in stream``.)

    >>> import anyio
    >>> from reactive_aio.io import from_stream
    >>> async def main():
    ...     send, receive = anyio.create_memory_object_stream[int](2)
    ...     async with receive:
    ...         async with send:
    ...             await send.send(1)
    ...             await send.send(2)
    ...         return await from_stream(receive).sum()
    >>> anyio.run(main)
    3
    """
    check_count("from_stream", "size", size, 1)
    given: Any = stream
    if isinstance(stream, ByteReceiveStream):
        return _received(given, lambda: stream.receive(size))
    if isinstance(stream, ObjectReceiveStream):
        return _received(given, given.receive)
    raise TypeError(
        f"from_stream() reads a stream of anyio, not {type(stream).__name__}. Use Peer for the streams of asyncio"
    )


@define(eq=False)
class _Receiving:
    """The Poll of a stream."""

    receive: Callable[[], Awaitable[Any]]

    async def fetch(self, _: int) -> Sequence[Any]:
        """Receive one element."""
        try:
            return [await self.receive()]
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def idle(self) -> None:
        """Nothing: a stream needs no heartbeat."""

    async def close(self) -> None:
        """Nothing: the stream is the user's."""


def _received(stream: object, receive: Callable[[], Awaitable[Any]]) -> Flow[Any]:
    # Not the stream itself, whose repr may hold all that it has buffered.
    return polled("from_stream", type(stream), lambda: nullcontext(_Receiving(receive)))


@overload
async def send_to(
    stream: ByteSendStream, flow: Flow[bytes], *, max_chunk: int = 65_536, send_timeout: float | None = None
) -> None: ...
@overload
async def send_to(stream: ObjectSendStream[T], flow: Flow[T], *, send_timeout: float | None = None) -> None: ...
async def send_to(stream: Any, flow: Flow[Any], *, max_chunk: int = 65_536, send_timeout: float | None = None) -> None:
    """Send the elements of a flow to a stream of anyio, one after another.

    The stream stays yours: close it, or call ``send_eof()``, after this.
    Demand: one element is requested when the stream has taken the one before, so a slow reader stops the source. Chunks
    for a stream of bytes go together if they are already there, up to ``max_chunk`` bytes. These are the lines of one
    chunk, or the elements that an iterator yields within a millisecond.
    Errors: those of the stream, and those of the flow. Both close the flow. TimeoutError when the stream takes longer
    than ``send_timeout`` seconds for an element. A ``send_timeout`` that is not above 0 and a ``max_chunk`` below 1 are
    refused with ValueError, and an argument that is not such a stream with TypeError. TypeError for an element that is
    not bytes, if the stream takes bytes.
    Cancel: ``send()`` is cancelled and the flow is closed. A part of the element may have been sent.
    (anyio: ``await stream.send(item)``.)

    >>> import anyio
    >>> from reactive_aio import Flow
    >>> from reactive_aio.io import send_to
    >>> async def main():
    ...     send, receive = anyio.create_memory_object_stream[int](3)
    ...     async with send, receive:
    ...         await send_to(send, Flow.range(3))
    ...         return [await receive.receive() for _ in range(3)]
    >>> anyio.run(main)
    [0, 1, 2]
    """
    check_flow("send_to", flow)
    if not isinstance(stream, ByteSendStream | ObjectSendStream):
        raise TypeError(
            f"send_to() writes to a stream of anyio, not {type(stream).__name__}. Use Peer for the streams of asyncio"
        )
    check_count("send_to", "max_chunk", max_chunk, 1)
    if send_timeout is not None:
        check_seconds("send_to", "send_timeout", send_timeout, above=True)
    send: Callable[[Any], Awaitable[None]] = cast("Any", stream).send

    async def send_in_time(item: Any) -> None:
        async with asyncio.timeout(send_timeout):
            await send(item)

    put = send if send_timeout is None else send_in_time
    if isinstance(stream, ByteSendStream):
        await send_rows(flow, put, max_chunk)
    else:
        await flow.for_each(put)


async def send_rows(flow: Flow[bytes], send: Callable[[bytes], Awaitable[object]], max_chunk: int) -> None:
    """Send chunks of bytes, together if they are already there."""

    async def send_row(row: list[bytes]) -> None:
        await send(row[0] if len(row) == 1 else b"".join(row))

    await for_each_row(flow.map(checked), send_row, len, max_chunk, send)


def checked(chunk: object) -> bytes:
    """Return a chunk. Raise TypeError if the element is not bytes."""
    if type(chunk) is bytes:  # the common case first: a line is short, and so the call counts
        return chunk
    if not isinstance(chunk, (bytes, bytearray, memoryview)):
        raise TypeError(f"a stream of bytes is sent bytes, not {type(chunk).__name__}")
    return cast("bytes", chunk)
