"""The bodies of requests as flows, with limits on what a client may send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from .._bytes import TooLargeError
from .._flow.flow import Flow
from ..operators._fluent import check_count
from ._delivery import ClientDisconnectedError, Receive, Scope, check_http


def request_body(scope: Scope, receive: Receive, *, max_bytes: int) -> Flow[bytes]:
    """Read the body of a request, chunk by chunk, as the server gets them.

    It can be read once. In Starlette: ``request_body(request.scope, request.receive, max_bytes=...)``.
    Demand: one chunk is received for each that is requested, and none ahead. Without demand the server stops the
    client.
    Errors: TooLargeError for a body of more than ``max_bytes`` bytes. It comes before anything is read if
    Content-Length says so. ClientDisconnectedError if the body is cut short. A scope that is not an HTTP request is
    refused with TypeError.
    (Starlette: ``request.stream()``.)

    >>> import asyncio
    >>> from reactive_aio.web import request_body
    >>> async def receive():
    ...     return {"type": "http.request", "body": b"hello", "more_body": False}
    >>> asyncio.run(request_body({"type": "http", "headers": []}, receive, max_bytes=1000).to_list())
    [b'hello']
    """
    check_http(scope, "request_body()")
    check_count("request_body", "max_bytes", max_bytes, 1)
    return Flow.from_async_iterable(_chunks(scope, receive, max_bytes))


async def _chunks(scope: Scope, receive: Receive, max_bytes: int) -> AsyncIterator[bytes]:
    said = declared_length(scope)
    if said is not None and said > max_bytes:
        raise TooLargeError(f"the body of the request has {said} bytes, but at most {max_bytes} are allowed")
    received = 0
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError(f"the client closed the connection after {received} bytes of its request")
        chunk: bytes = message.get("body", b"")
        received += len(chunk)
        if received > max_bytes:
            raise TooLargeError(f"the body of the request has more than the {max_bytes} bytes that are allowed")
        if chunk:
            yield chunk
        if not message.get("more_body", False):
            return


def declared_length(scope: Scope) -> int | None:
    """Return the Content-Length of a request, if it is a number."""
    headers: Any = scope["headers"]
    found = [bytes(value) for name, value in headers if name.lower() == b"content-length"]
    return int(found[0]) if found and found[0].isdigit() and len(found[0]) < 20 else None
