"""Server-Sent Events."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from attrs import field, frozen

from .._flow.flow import Flow
from .._fusion import label
from ..operators._fluent import check_flow, check_function, check_seconds
from ._delivery import Body, Delivery, Receive, Scope, Send, check_http, headers_of

BREAK: Final = re.compile("\r\n|\r|\n")
"""The ends of a line of an event stream."""
COMMENT: Final = b":\n\n"


@frozen
class Event:
    r"""An event of an event stream.

    ``data`` may have several lines. ``event`` is its type, by default "message". The client sends ``id`` back as
    ``Last-Event-ID`` when it connects again. ``retry`` is the number of milliseconds after which it connects again.
    Errors: a line break in ``event`` or ``id`` is refused with ValueError, because it would begin another field. So is
    a NUL in ``id``, which clients ignore, and a negative ``retry``. (HTML: Server-sent events.)

    >>> from reactive_aio.web import Event
    >>> Event("hello\nworld", id="7").encode()
    b'id: 7\ndata: hello\ndata: world\n\n'
    """

    data: str = ""
    event: str | None = field(default=None, kw_only=True)
    id: str | None = field(default=None, kw_only=True)
    retry: int | None = field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        for name, value in (("data", self.data), ("event", self.event or ""), ("id", self.id or "")):
            if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
                raise TypeError(f"Event({name}=...) takes a str, not {type(value).__name__}")
            if name != "data" and (BREAK.search(value) or (name == "id" and "\0" in value)):
                raise ValueError(f"Event({name}={label(value)}): it must not have a line break, nor a NUL in the id")
        if self.retry is not None and self.retry < 0:
            raise ValueError(f"Event(retry={self.retry}): retry must be at least 0 milliseconds")

    def encode(self) -> bytes:
        """Return the bytes of the event."""
        return self._encoded

    @cached_property
    def _encoded(self) -> bytes:  # once, as one event may be for many clients
        lines = [] if self.event is None else [f"event: {self.event}"]
        if self.id is not None:
            lines.append(f"id: {self.id}")
        if self.retry is not None:
            lines.append(f"retry: {self.retry}")
        data = self.data
        if "\r" in data:  # which is seldom, and a pattern takes long
            data = BREAK.sub("\n", data)
        lines += [f"data: {line}" for line in data.split("\n")]
        return ("\n".join(lines) + "\n\n").encode()


class EventStream:
    """Answer a request with Server-Sent Events, and go on where a client left off.

    ``open(last_id)`` is called for each request and returns the flow of its events. ``last_id`` is the
    ``Last-Event-ID`` of the client, None at its first visit. `Resumable` is such a function for a stream with several
    readers.
    Demand: one event is requested when the one before has been sent. After ``heartbeat`` seconds without an event the
    client gets an empty comment, so that no proxy closes the connection.
    Cancel: when the client disconnects, when it takes longer than ``send_timeout`` seconds for an event, and when the server cancels the
    request. The flow has been closed, and its cleanup has ended, when the call returns.
    Errors: exceptions of ``open``, before anything is sent. A failure of the flow is raised too: the server closes the
    connection, and the client connects again. TypeError for an element that is not an Event. (Starlette has none;
    sse-starlette: ``EventSourceResponse``.)

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import Event, EventStream
    >>> events = Flow.interval(1.0).on_backpressure_latest().map(lambda n: Event(str(n)))
    >>> stream = EventStream(lambda last_id: events)
    """

    def __init__(
        self,
        open: Callable[[str | None], Flow[Event]],
        *,
        heartbeat: float | None = 15.0,
        send_timeout: float | None = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        check_function("EventStream", open, "return a flow, such as Flow.defer() of a coroutine function")
        for name, seconds in (("heartbeat", heartbeat), ("send_timeout", send_timeout)):
            if seconds is not None:
                check_seconds("EventStream", name, seconds, above=True)
        self._open = open
        self._heartbeat = heartbeat
        self._send_timeout = send_timeout
        fixed = {"cache-control": "no-store", "x-accel-buffering": "no"}
        self._headers = headers_of("text/event-stream", {**fixed, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (an ASGI application)."""
        check_http(scope, "EventStream")
        body = self._body(scope)
        delivery = Delivery(send, 200, self._headers, self._send_timeout, self._heartbeat, COMMENT, at_once=True)
        await delivery.run(body, receive)

    def _body(self, scope: Scope) -> Body:
        last_id = last_event_id(scope)
        opens: object = self._open
        if isinstance(opens, Openable) and scope["method"] != "HEAD":
            return opens.opened(last_id)
        flow = self._open(last_id)
        check_flow("EventStream(open)", flow)
        if scope["method"] == "HEAD":
            flow = Flow[Event].empty()
        return flow.map(encoded).open()


class Openable(ABC):
    """A function for `EventStream` that opens the encoded events of a client. A flow of them would cost more."""

    @abstractmethod
    def opened(self, last_id: str | None) -> Body:
        """Open them for the task that sends them."""


def encoded(event: object) -> bytes:
    """Return the bytes of an event."""
    if not isinstance(event, Event):
        raise TypeError(f"an EventStream sends Events, not {type(event).__name__}")
    return event.encode()


def last_event_id(scope: Scope) -> str | None:
    """Return the id of the last event, as the client reports it."""
    headers: Any = scope["headers"]
    found = [bytes(value) for name, value in headers if name.lower() == b"last-event-id"]
    return (found[0].decode(errors="replace") or None) if found else None
