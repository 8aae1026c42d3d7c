"""A reader: one subscription to what several share."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from attrs import Factory, define, field, frozen

from ..._plan import Inlet
from ...hooks import discard
from ...schedulers.base import Released
from .log import Cursor, Log

if TYPE_CHECKING:
    from .broadcast import Broadcast
    from .delivery import Delivery


End = tuple[BaseException | None, TracebackType | None]
"""The end of a log: well, or with a failure and its traceback."""


@define(eq=False)
class Reader:
    """A place in a log, and the Subscription of the region that reads it, which may be on any event loop.

    It takes elements on that loop, in an event of its own: no signal comes from inside a request, nor from inside what others do.
    """

    broadcast: Broadcast
    inlet: Inlet[Any]
    context: Context = field(init=False, default=Factory(lambda self: self.inlet.context, takes_self=True))
    cursor: Cursor = field(init=False, factory=Cursor)
    number: int = field(init=False, default=0)
    """The number of readers that had come, with itself."""
    delivery: Delivery = field(init=False)
    is_due: bool = field(init=False, default=False)
    """Whether an event of this reader is scheduled."""
    over: bool = field(init=False, default=False)
    """Whether it has left, or is about to get the end."""
    cancelled: bool = field(init=False, default=False)
    """Whether it has left on its own."""
    release: Released = field(init=False)
    """Says that nothing is left to clean up for it."""
    _given: Released | None = field(init=False, default=None)
    """Says that it has been given the failure that was taken for it."""
    take_in: Callable[[list[Any]], object] = field(init=False)
    """Receives elements that were taken for it, without an end after them, in its context."""

    def __attrs_post_init__(self) -> None:
        self.release = self.inlet.hold()
        self.take_in = self._taking()

    def let_go(self) -> None:
        """Discard later elements. The function that takes them would keep this object alive."""
        self.take_in = self._in_context(discard)

    def _taking(self) -> Callable[[list[Any]], object]:
        return self._in_context(self.inlet.on_chunk)

    def _in_context(self, call: Callable[[list[Any]], None]) -> Callable[[list[Any]], object]:
        run: Callable[..., object] = self.context.run
        return partial(run, call)  # no call of Python is in between

    @property
    def waits(self) -> bool:
        """Whether it has requested an element and not got it, so that the others do not wait for it."""
        return self.cursor.goal > self.cursor.at

    # -- the Subscription of the region, on its loop

    def request(self, n: int) -> None:
        """Request elements. Those that are there come in an event."""
        self.broadcast.want(self, n)

    def cancel(self) -> None:
        """Leave; what only this reader has kept is let go of."""
        self.cancelled = True
        self.broadcast.leave(self)

    # -- events on its loop

    def fail(self, error: BaseException) -> None:
        """Pass the region the failure of this reader alone, which has been removed."""
        if not self.cancelled:
            self.inlet.on_error(error)

    def keep_open(self) -> None:
        """Keep the subscription open until the failure that was taken is given: another reader may fail it before."""
        self._given = self.inlet.hold()

    def give(self, items: list[Any], end: End | None) -> None:
        """Pass the region its elements, and then the end, in its context."""
        try:
            if items:
                self.inlet.on_chunk(items)
            if end is not None:
                error = failure(end)
                if error is None:
                    self.inlet.on_complete()
                else:
                    self.inlet.on_error(error)
        finally:
            given, self._given = self._given, None
            if given is not None:
                given()


ReaderChunk = tuple[Reader, list[Any], End | None]
"""A reader, and what was taken for it: elements, and the end if that is next."""


def failure(end: End) -> BaseException | None:
    """Return the failure of an end with its first traceback: each raise adds to it."""
    error, traceback = end
    return None if error is None else BaseException.with_traceback(error, traceback)


@frozen(eq=False)
class Distance:
    """How far a reader is behind the made elements, for snapshots (a Gauge)."""

    log: Log
    cursor: Cursor
    size: int
    """The most elements that are kept for it."""

    @property
    def dropped(self) -> int:
        """None: a slow reader slows the others."""
        return 0

    @property
    def buffered(self) -> int:
        """The elements that are kept for it now."""
        return self.log.made - self.cursor.at if self.cursor.node is not None else 0
