"""The bodies of responses that a client reads as flows, over httpx and aiohttp. Neither is imported."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from .._bytes import TooLargeError
from .._flow.flow import Flow
from ..operators._fluent import check_count


def response_body(response: object, *, max_bytes: int | None = None) -> Flow[bytes]:
    """Read the body of a response of httpx, httpx2 or aiohttp, chunk by chunk, decompressed by that library.

    It can be read once. Open the response without reading it: ``client.stream("GET", url)`` of httpx,
    ``session.get(url)`` of aiohttp. With ``Flow.using(lambda: client.stream("GET", url), response_body)`` each
    subscription opens its own response.
    Demand: one chunk is read for each that is requested, and none ahead. The library aiohttp itself holds some hundred
    KiB, httpx one chunk of the socket. A server that is not read can't write more than the sockets hold.
    Errors: those of the library when the connection is lost or a read takes longer than its timeout. TooLargeError for
    more than ``max_bytes`` bytes, decompressed. An argument that is not such a response is refused with TypeError. The
    status is not checked.
    Cancel: the connection is closed. The response is closed at every end.
    (httpx: ``response.aiter_bytes()``; aiohttp: ``response.content.iter_any()``.)

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import response_body, split_lines
    >>> def lines(client, url):
    ...     return split_lines(Flow.using(lambda: client.stream("GET", url), response_body))
    """
    if max_bytes is not None:
        check_count("response_body", "max_bytes", max_bytes, 1)
    given: Any = response
    if hasattr(response, "aiter_bytes"):
        chunks = _limited(given.aiter_bytes(), max_bytes)
    elif hasattr(getattr(response, "content", None), "readany"):
        chunks = _limited(_read(given), max_bytes)
    else:
        raise TypeError(f"response_body() reads a response of httpx or aiohttp, not {type(response).__name__}")
    once = Flow.from_async_iterable(chunks)
    return Flow.using(lambda: _closing(given), lambda _: once)


@asynccontextmanager
async def _closing(response: Any) -> AsyncGenerator[None]:
    """Close a response after its body, whether or not anything was read."""
    try:
        yield
    finally:
        if hasattr(response, "aclose"):
            await response.aclose()
        else:
            response.close()


async def _read(response: Any) -> AsyncGenerator[bytes]:
    while chunk := await response.content.readany():
        yield chunk


async def _limited(chunks: AsyncGenerator[bytes], max_bytes: int | None) -> AsyncIterator[bytes]:
    received = 0
    async with aclosing(chunks):
        async for chunk in chunks:
            received += len(chunk)
            if max_bytes is not None and received > max_bytes:
                raise TooLargeError(f"the body of the response has more than the {max_bytes} bytes that are allowed")
            if chunk:
                yield chunk
