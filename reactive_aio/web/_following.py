"""Server-Sent Events of a service, followed over lost connections."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from ssl import SSLCertVerificationError
from typing import Any, Final

from attrs import define, field

from .._bytes import made_by_chunk
from .._connector import deferred
from .._flow.flow import Flow
from .._fusion import label
from ..operators._fluent import check_count, check_function
from ..operators.recovering.backoff import Backoff
from ._bodies import response_body
from ._delivery import DisconnectedError
from ._events import BREAK, Event
from ._reading_events import Position, SplitEvents

TYPE: Final = "text/event-stream"
NO_CONTENT: Final = 204
TOO_MANY_REQUESTS: Final = 429
HTTPX_LOST: Final = ("TimeoutException", "NetworkError", "ProxyError", "RemoteProtocolError")
CONNECTION_ERRORS: Final = {
    "httpx": HTTPX_LOST,
    "httpx2": HTTPX_LOST,
    "aiohttp": ("ClientConnectionError", "ClientPayloadError"),
}
"""The errors that each library raises when a connection is lost. A wrong URL or header is wrong each time."""
STATUS_ERRORS: Final = {"aiohttp": ("ClientResponseError",)}
"""The errors that have the status of a response, which `raise_for_status` and redirects raise."""


class UnexpectedResponseError(Exception):
    """A service has answered with an unexpected status or content type. ``status`` is the status of its response."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status), self.__dict__  # which has the notes


def follow_events(
    open: Callable[[dict[str, str]], AbstractAsyncContextManager[Any]],
    *,
    last_id: str | None = None,
    backoff: Backoff | None = None,
    max_event: int = 1_048_576,
) -> Flow[Event]:
    """Read the Server-Sent Events of a service. After a lost connection, connect again and go on after the last event.

    ``open(headers)`` returns the async context manager of a response of httpx, httpx2 or aiohttp. It is entered for
    each connection. Its request must have these headers. They have the id of the last event as ``Last-Event-ID``, and
    ``last_id`` before the first event. A service with `Resumable` loses and repeats no event then, or sends an event of
    the type "reset". The flow ends when the service answers with the status 204. A body that ends is a lost connection.
    Before it connects again it waits for the ``retry`` that the service has asked for, up to ``backoff.max_delay``, and
    then for the time of ``backoff``. The default is `Backoff(1.0)`.
    Demand: a chunk is read when the events of the one before have been emitted; else that of `response_body`.
    Errors: UnexpectedResponseError for another status or content type; 429 and the statuses from 500 on are retried.
    So are the errors by which the library says the same. Its errors for a wrong URL, a wrong header or a certificate
    that is not trusted are not.
    TooLargeError for an event of more than ``max_event`` bytes. A ``last_id`` with a line break or a NUL is refused
    with ValueError. When ``backoff`` gives up, the error of the connection,
    or DisconnectedError for a body that ended. A silent connection is lost when a read of the library exceeds its
    timeout. Any other error of ``open`` is not retried.
    Cancel: the connection is closed, and a wait ends at once.
    (HTML: ``EventSource``; httpx-sse: ``aiter_sse``, without going on.)

    >>> from reactive_aio.web import follow_events
    >>> def prices(client, url):
    ...     return follow_events(lambda headers: client.stream("GET", url, headers=headers))
    """
    check_function("follow_events", open, "return an async context manager, such as that of client.stream()")
    check_count("follow_events", "max_event", max_event, 1)
    check_id(last_id)
    policy = Backoff(1.0) if backoff is None else backoff

    def begin() -> Flow[Event]:
        following = Following(open, policy, max_event, Position(last_id or None))
        return Flow.defer(following.connect).retry_when(following.again)

    return deferred("follow_events", open, begin)


def check_id(last_id: object) -> None:
    """Raise unless it is None or an id that an event may have. Later it would be a header that no client sends."""
    if last_id is not None and not isinstance(last_id, str):
        raise TypeError(f"follow_events(last_id=...) takes a str, not {type(last_id).__name__}")
    if last_id and (BREAK.search(last_id) or "\0" in last_id):
        raise ValueError(f"follow_events(last_id={label(last_id)}): it must not have a line break or a NUL")


@define(eq=False, repr=False)
class Following:
    """One subscription, over all its connections."""

    open: Callable[[dict[str, str]], AbstractAsyncContextManager[Any]]
    backoff: Backoff
    max_event: int
    position: Position
    failures: int = field(init=False, default=0)
    """The number of lost connections, since the last event if the backoff is reset by an event."""
    delay: float = field(init=False, default=0.0)
    """The wait of the backoff after the failure before."""

    def connect(self) -> Flow[Event]:
        """Return the events of the next connection."""
        headers = {"Accept": TYPE, "Cache-Control": "no-store"}
        if self.position.last_id is not None:
            headers["Last-Event-ID"] = HeaderText(self.position.last_id.strip(" \t"))  # as browsers do
        return Flow.using(lambda: self.open(headers), self.read)

    def read(self, response: Any) -> Flow[Event]:
        """Return the events of a response, if it has some."""
        status: int = response.status_code if hasattr(response, "status_code") else response.status
        if status == NO_CONTENT:
            return Flow[Event].empty()
        found: str = response.headers.get("content-type", "")
        if status != 200:
            raise UnexpectedResponseError(f"the service answered the request for events with status {status}", status)
        if found.partition(";")[0].strip().lower() != TYPE:
            raise UnexpectedResponseError(
                f"the service answered the request for events with the type {found!r}, not {TYPE}", status
            )
        ended = DisconnectedError("the service has ended the response")
        events = made_by_chunk(response_body(response), SplitEvents(self.max_event, self.position))
        return events.concat(Flow[Event].error(ended))

    async def again(self, error: Exception, _: int) -> bool:
        """Wait, and return whether to connect once more."""
        policy = self.backoff
        if self.position.moved and policy.reset:
            self.failures = 0
        if not lost(error) or (policy.max_retries is not None and self.failures >= policy.max_retries):
            return False
        self.delay = policy.after(self.delay) if self.failures else policy.first
        self.failures, self.position.moved = self.failures + 1, False
        await asyncio.sleep(min(self.position.retry / 1000, policy.max_delay) + policy.spread(self.delay))
        return True


class HeaderText(str):
    """The value of a header that is sent as UTF-8, as the standard says. httpx encodes a text as ASCII, or fails."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Return the bytes, in UTF-8 whatever is asked for."""
        return super().encode("utf-8", errors)


def lost(error: Exception) -> bool:
    """Return whether another connection may succeed."""
    if isinstance(error, (UnexpectedResponseError, *loaded(STATUS_ERRORS))):
        status: int = getattr(error, "status", 0)
        return status == TOO_MANY_REQUESTS or status >= 500
    return isinstance(error, (OSError, *loaded(CONNECTION_ERRORS))) and not distrusted(error)


def distrusted(error: BaseException | None) -> bool:
    """Return whether it comes of a certificate that is not trusted, which it will not be the next time either."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, SSLCertVerificationError):
            return True
        seen.add(id(error))
        error = error.__context__ if error.__cause__ is None else error.__cause__
    return False


def loaded(errors: Mapping[str, Sequence[str]]) -> list[type]:
    """Return those of the modules that are loaded. Of the others, nothing has been raised."""
    found = [getattr(sys.modules.get(module), name, None) for module, names in errors.items() for name in names]
    return [kind for kind in found if isinstance(kind, type)]
