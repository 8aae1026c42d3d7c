"""Responses whose bodies are flows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .._flow.flow import Flow
from ..operators._fluent import check_flow, check_function, check_seconds
from ._delivery import Delivery, Receive, Scope, Send, as_bytes, check_http, headers_of

T = TypeVar("T")


class FlowResponse:
    r"""Answer a request with the elements of a flow, chunk by chunk.

    ``flow`` emits bytes, or text, which is sent as UTF-8. Each request subscribes to it anew.
    Demand: one chunk is requested when the one before has been sent. If the client does not read, nothing is made.
    Cancel: when the client disconnects, when it takes longer than ``send_timeout`` seconds for a chunk, and when the server cancels the
    request. The flow has been closed, and its cleanup has ended, when the call returns.
    Errors: a failure before the first chunk is raised before anything is sent, so that the server answers with a 500. A
    later failure is raised too: the server closes the connection, so that the client sees a cut-off body.
    ``status`` and ``headers`` are those of the response. (Starlette: ``StreamingResponse``.)

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import FlowResponse
    >>> async def endpoint(request):
    ...     return FlowResponse(Flow.range(3).map(lambda n: f"line {n}\n"), media_type="text/plain; charset=utf-8")
    """

    def __init__(
        self,
        flow: Flow[bytes] | Flow[str],
        *,
        media_type: str = "application/octet-stream",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        send_timeout: float | None = 30.0,
    ) -> None:
        check_flow(type(self).__name__, flow)
        if send_timeout is not None:
            check_seconds(type(self).__name__, "send_timeout", send_timeout, above=True)
        self._flow: Flow[bytes] | Flow[str] = flow
        self._status = status
        self._headers = headers_of(media_type, headers or {})
        self._send_timeout = send_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (an ASGI application)."""
        check_http(scope, type(self).__name__)
        flow = self._flow if scope["method"] != "HEAD" else Flow[bytes].empty()
        delivery = Delivery(send, self._status, self._headers, self._send_timeout)
        await delivery.run(flow.open(), receive)


class JSONLinesResponse(FlowResponse):
    """Answer a request with the elements of a flow as JSON, one on each line (NDJSON).

    ``encode`` returns the text of an element, without line breaks, as `json.dumps` does. Demand, cancel and errors are
    those of `FlowResponse`. An exception of ``encode`` is a failure of the flow.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import JSONLinesResponse
    >>> async def endpoint(request):
    ...     return JSONLinesResponse(Flow.range(3).map(lambda n: {"n": n}))
    """

    def __init__(
        self,
        flow: Flow[T],
        *,
        encode: Callable[[T], str] = json.dumps,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        send_timeout: float | None = 30.0,
    ) -> None:
        check_flow(type(self).__name__, flow)
        check_function(type(self).__name__, encode)
        super().__init__(
            flow.map(encode).map(as_line),
            media_type="application/x-ndjson",
            status=status,
            headers=headers,
            send_timeout=send_timeout,
        )


def as_line(text: Any) -> bytes:
    """Return a line. Raise ValueError for a text with a line break."""
    line = as_bytes(text)
    if b"\n" in line or b"\r" in line:
        raise ValueError("a line of JSON must not contain a line break. Encode without indent")
    return line + b"\n"
