"""Server-Sent Events, as a client reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import define, field, frozen

from .._bytes import ByChunk, Maker, TooLargeError, made_by_chunk
from .._core.containers import new_list
from .._core.missing import NOTHING
from .._flow.flow import Flow
from .._fusion import Stage, Transform
from ..operators._fluent import check_count, check_flow
from ._events import Event

BREAK: Final = re.compile(b"\r\n|\r|\n")
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
LINES: Final = 64
"""The lines between two turns of the event loop at most, where they make no event."""
PIECE: Final = 8_192
"""The bytes that are split into lines at a time."""
MOST_DIGITS: Final = 12
"""The most digits of a number of milliseconds. A longer number is not a time to wait."""


def split_events(body: Flow[bytes], *, max_event: int = 1_048_576) -> Flow[Event]:
    r"""Read the events of a body that is a ``text/event-stream``, as a browser does.

    The ``id`` of an event is the last id that the stream has set so far. An event without data is ignored, and an event
    that the body cuts off is dropped. `follow_events` also connects again. This is for a body that is read once, such
    as the answer to a POST.
    Demand: one chunk is requested when the events of the one before have been emitted. One chunk and the beginning of
    an event are kept.
    Errors: TooLargeError for a line of more than ``max_event`` bytes, and for an event whose lines of data, with any
    line after them, have more.
    (HTML: Server-sent events, "interpreting an event stream".)

    >>> from reactive_aio import Flow
    >>> from reactive_aio.web import split_events
    >>> [(event.id, event.data) for event in split_events(Flow.of(b"id: 7\ndata: a\nda", b"ta: b\n\n")).run_sync()]
    [('7', 'a\nb')]
    """
    check_flow("split_events", body)
    check_count("split_events", "max_event", max_event, 1)
    return made_by_chunk(body, SplitEvents(max_event))


@define(eq=False, repr=False)
class Position:
    """The position of a client in a stream of events, over all its connections. Notes show only its type."""

    last_id: str | None = None
    retry: int = 0
    """The milliseconds after which the server wants the client to connect again."""
    moved: bool = False
    """Whether there has been an event since the last look."""


@frozen
class SplitEvents(Stage[bytes, list[Event]]):
    """Stage of `split_events`."""

    max_event: int
    position: Position | None = None
    """The state that outlasts one body, or None."""

    needs_whole_stream = True

    def transform(self) -> Transform[bytes, list[Event]]:
        """Begin with no event."""
        return ByChunk(EventSplitting(self.max_event, self.position or Position()))


@define
class EventSplitting(Maker[Event]):
    """Turns chunks into events. It keeps an unfinished event."""

    max_event: int
    position: Position
    parts: list[bytes] = field(init=False, factory=new_list)
    """The beginning of a line."""
    held: int = field(init=False, default=0)
    """The number of bytes in `parts`."""
    first: bool = field(init=False, default=True)
    """Whether the line is the first, which may begin with a byte order mark."""
    after_return: bool = field(init=False, default=False)
    """Whether a line feed that comes next belongs to the last line break."""
    data: list[str] = field(init=False, factory=new_list)
    size: int = field(init=False, default=0)
    """The number of bytes in the lines of `data`."""
    event: str | None = field(init=False, default=None)
    id: str | None = field(init=False, default=None)
    retry: int | None = field(init=False, default=None)

    def of(self, chunk: bytes) -> Iterator[Event]:
        """Yield each event that ends in a chunk."""
        data = bytes(chunk)
        for begin in range(0, len(data), PIECE):
            for number, line in enumerate(self._lines(data[begin : begin + PIECE]), 1):
                if line:
                    self._field(line)
                elif (event := self._dispatched()) is not None:
                    yield event
                if not number % LINES:
                    yield NOTHING
            yield NOTHING

    def last(self) -> tuple[()]:
        """Drop an unfinished event, as the standard says."""
        return ()

    @property
    def amid(self) -> bool:
        """False: nothing comes after the last chunk."""
        return False

    def _lines(self, data: bytes) -> Iterator[bytes]:
        if self.after_return:
            data = data.removeprefix(b"\n")
        # A return ends its line at once: the line feed may be long in coming.
        self.after_return = data.endswith(b"\r")
        *ended, rest = BREAK.split(data)
        for part in ended:
            self._hold(part)
            line = b"".join(self.parts)
            self.parts, self.held = [], 0
            if self.first:
                self.first, line = False, line.removeprefix(BYTE_ORDER_MARK)
            yield line
        self._hold(rest)

    def _hold(self, part: bytes) -> None:
        self.held += len(part)
        if self.held + self.size > self.max_event:
            raise TooLargeError(f"an event has more than the {self.max_event} bytes that are allowed")
        if part:
            self.parts.append(part)

    def _field(self, line: bytes) -> None:
        name, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self.data.append(value)
                self.size += len(line)
            case "event":
                self.event = value
            case "id" if "\0" not in value:
                self.id = value
            case "retry" if value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS:
                self.retry = self.position.retry = int(value)
            case _:
                pass  # a comment, or what another version of the standard may know

    def _dispatched(self) -> Event | None:
        """Return the event that an empty line ends, if there is one."""
        if self.id is not None:
            self.position.last_id = self.id or None
        data, event, retry = self.data, self.event, self.retry
        self.data, self.size, self.event, self.retry = [], 0, None, None
        if not data:
            return None
        self.position.moved = True
        return Event("\n".join(data), event=event or None, id=self.position.last_id, retry=retry)
