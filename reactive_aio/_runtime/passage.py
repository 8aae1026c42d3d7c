"""A combinator that another one reads: ``fetch.timeout(5).retry(2)`` needs no region between the two.

A region between combinators, without a stage, would do no work. It would only pass on demand and signals. So the inner combinator
delivers to the outer one, on the same event loop and in the same turns.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextvars import Context
from threading import get_ident
from typing import Any

from .._core.budgets import Budget
from .._core.guard import FAILURES, as_failure, close_all
from .._core.notes import add_note
from .._plan import Receiver, Region
from ..hooks import discard
from ..schedulers.base import Released
from ..spec import Subscription, add_demand, subtract_demand
from .driver import RegionDriver
from .host import FlowHost
from .lifetime import Lifetime
from .tree import DEEPEST, Place, View
from .turns import Company


class Passage:
    """The subscription to a combinator that is read without a region. To the host of the combinator it is the driver."""

    __slots__ = (
        "_events", "_ident", "_opening", "_outer", "_receiver", "_upstream",
        "abandoned", "behind", "budget", "closed", "company", "context", "delivered", "demand", "host", "loop", "place", "region", "view",
    )  # fmt: skip

    def __init__(
        self, outer: RegionDriver | Passage, region: Region, receiver: Receiver[Any], lifetime: Lifetime
    ) -> None:
        self._outer: RegionDriver | Passage | None = outer
        """The reader of the combinator, until the end: it refers to what it reads."""
        self._receiver: Any = receiver
        """Gets the signals, until the end."""
        self._upstream: Subscription | None = None
        """The combinator, from its opening to its end."""
        self.demand = 0
        """The number of elements that have been requested and not signalled."""
        self._events: list[tuple[Callable[[Any], None], Any]] = []  # bounded by the calls of one opening
        """The events of the opening, which are part of it."""
        self._opening = True
        self._ident = get_ident()
        self.closed = False
        """Whether the end has been signalled, or the receiver has cancelled."""
        self.delivered = 0
        """The number of elements that have been signalled."""
        self.loop: AbstractEventLoop = outer.loop
        self.budget: Budget = outer.budget
        self.company: Company | None = outer.company
        self.abandoned: dict[Callable[[], None], None] = outer.abandoned
        self.context: Context = outer.context.copy()
        self.region = region
        self.host: FlowHost = FlowHost(lifetime, outer.host, reader=self)
        self.view = View(None)
        self.place = Place.within(outer)
        self.behind: tuple[Callable[[], None], ...] = ()
        """The calls after the end, in their order."""

    @staticmethod
    def is_flat_in(outer: RegionDriver | Passage) -> bool:
        """Return whether signals may go through another combinator there. At some depths they wait for a turn, in a region."""
        return (outer.place.depth + 1) % DEEPEST != 0

    def begin(self, open_source: Callable[[], Subscription]) -> None:
        """Pass the receiver its subscription, open the combinator, and do what it can do at once."""
        try:
            self._receiver.on_subscribe(self)
            if not self.closed:
                self._open(open_source())
        except FAILURES as error:
            add_note(error, f"in {self.region.feed}")
            self.on_error(error)
        self._opening = False
        events, self._events = self._events, []
        for handle, value in events:
            handle(value)

    def _open(self, upstream: Subscription) -> None:
        if self.closed:  # by what has been opened: it was empty, or the receiver needs no more
            upstream.cancel()
            return
        self._upstream = upstream
        if self.demand:
            upstream.request(self.demand)

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Call ``handle(value)`` in an event of the region that reads, or of the loop when all is over."""
        if self._opening and get_ident() == self._ident:
            self._events.append((handle, value))
        elif self._outer is not None:
            self._outer.post(handle, value)
        else:
            self.loop.call_soon_threadsafe(handle, value, context=self.context)

    # -- the Subscription of the outer combinator

    def request(self, n: int) -> None:
        """Pass demand on, or keep it until the combinator has been opened."""
        self.demand = add_demand(self.demand, n)
        if self._upstream is not None:
            self._upstream.request(n)

    def cancel(self) -> None:
        """Signal nothing any more. The combinator is cancelled behind the signal that it is in the middle of, or in an event.

        The end waits for the event.
        """
        if not self.closed:
            self.closed = True
            self.host.reader = None
            self.post(self._leave, self.host.lifetime.hold())

    def _leave(self, release: Released) -> None:
        try:
            self._stop()
        finally:
            self._let_go()
            release()

    def _stop(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()

    def abandon(self) -> None:
        """Count the flow as failed, for errors of its cleanup."""
        self.host.failed = True

    # -- the outlet of the inner combinator

    def on_chunk(self, items: list[Any]) -> None:
        """Pass elements on."""
        if self.closed:
            discard(items)
            return
        self.delivered += len(items)
        self.demand = subtract_demand(self.demand, len(items))
        try:
            self._receiver.on_chunk(items)
            if self.closed:  # the receiver needs no more
                self._stop()
        except FAILURES as error:
            self._caught(error)

    def on_complete(self) -> None:
        """Pass the end on."""
        if not self.closed:
            self._end(None)

    def on_error(self, error: BaseException) -> None:
        """Pass the failure on."""
        if not self.closed:
            self.host.hear(error)
            self.host.failed = True
            self._end(as_failure(error))
        elif not self.host.knows(error):
            self.host.dropped(error)

    def _end(self, error: BaseException | None) -> None:
        self.closed = True
        self.host.reader = self._upstream = None
        # The receiver may be at the end of the flow, which waits for the calls behind this one.
        release = self.host.lifetime.hold() if self.behind else None
        try:
            self._tell(error)
            calls, self.behind = self.behind, ()  # they lead back to here
            for failure in close_all(calls):
                self.host.cleanup_failed(failure)
        finally:
            del error  # a traceback leads back to here
            if release is not None:
                release()

    def _tell(self, error: BaseException | None) -> None:
        try:
            if error is None:
                self._receiver.on_complete()
            else:
                self._receiver.on_error(error)
        except FAILURES as another:
            self._caught(another)
        finally:
            self._let_go()
            del error  # a traceback leads back to here

    def inner_cleanup_failed(self, error: BaseException) -> None:
        """Fail with what the cleanup of a flow has raised that is read here; too late, pass it on."""
        if self.closed:
            self.host.cleanup_failed(error)
        else:
            self._fail(error)

    def _caught(self, error: BaseException) -> None:
        """Fail with an exception that left a signal. If the end has been signalled, the region that reads fails instead."""
        if self.closed:
            self.host.fail_reader(as_failure(error))
        else:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._upstream is not None:
            self._upstream.cancel()
        self.on_error(error)

    def _let_go(self) -> None:
        self._outer = self._receiver = self.place.outer = None
