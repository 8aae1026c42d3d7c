"""The driver of a region: runs its fused function under demand, on one event loop.

All state is confined to the loop of the region (see `turns`). What comes from the loop's own thread is noted at once
and acted upon in a scheduled callback; so a signal never runs inside ``request``, and the stack stays flat.

A turn works until demand or input is used up, or for ``BUDGET`` seconds; then the loop has its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from itertools import islice
from threading import get_ident
from time import perf_counter
from typing import Any, Final

from ..errors import SourceCancelledError
from ..hooks import discard, drop_error
from ..segments import Elsewhere, Pulled, Receiver, Region, RegionRun
from ..spec import UNBOUNDED, Subscription, add_demand, demand_error
from .inputs import PulledInput, PushedInput
from .turns import Turns

BUDGET: Final = 1e-3
NOTHING: Final = object()
DEEPEST: Final = 16
"""Levels of nested combinators that a signal passes on one stack."""

# A cancellation that user code raises is a failure of the stream: no task of ours is there to be cancelled by it.
FAILURES: Final = (Exception, asyncio.CancelledError)


def _as_failure(cancelled: asyncio.CancelledError) -> SourceCancelledError:
    error = SourceCancelledError("a function or source of the flow raised CancelledError")
    error.__cause__ = cancelled
    for note in getattr(cancelled, "__notes__", ()):
        error.add_note(note)
    return error


class RegionDriver(Turns):
    """One region of one subscription; to its downstream the Subscription, to its upstream the Receiver."""

    __slots__ = (
        "__weakref__",
        "_demand",
        "_draining",
        "_finishing",
        "_input",
        "_open",
        "_pass",
        "_receiver",
        "_release",
        "abandoned",
        "before",
        "cancelled",
        "closed",
        "delivered",
        "depth",
        "each",
        "elsewhere",
        "hops",
        "inner",
        "region",
        "requested",
        "run",
    )  # fmt: skip

    def __init__(
        self,
        run: RegionRun,
        region: Region,
        source: Pulled[Any] | None,
        prefetch: int | None,
        loop: asyncio.AbstractEventLoop,
        context: Context,
        receiver: Receiver[Any],
        release: Callable[[], None],
    ) -> None:
        self.region = region
        super().__init__(loop, context)
        self.run = run
        self._input: PulledInput | PushedInput
        self._input = PushedInput(prefetch, run) if source is None else PulledInput(source, run)
        self._receiver: Receiver[Any] | None = receiver
        self._release: Callable[[], None] | None = release
        self._open: Callable[[], None] | None = None
        self._demand = 0
        self._draining = False
        self._finishing = False
        self._pass: Iterator[Any] | None = None
        self.each = False
        self.depth = 0
        self.hops = False
        self.cancelled = False
        self.closed = False
        self.requested = 0
        self.delivered = 0
        # For snapshots: the region that feeds this one, or the last region of the flow that a combinator reads now,
        # or the place where the elements are made.
        self.before: RegionDriver | None = None
        self.inner: RegionDriver | None = None
        self.elsewhere: Elsewhere | None = None
        # What to let go of if the loop ends before it could be cleaned up there.
        self.abandoned: list[Callable[[], None]] = []

    # -- the Subscription of downstream, from any thread

    def request(self, n: int) -> None:
        """Add to the demand, and see to it in a scheduled callback."""
        if get_ident() == self._ident and type(n) is int and n > 0:
            self._add_demand(n)
            self._wake()
        else:
            self.post(self._check_demand, n)

    def cancel(self) -> None:
        """Stop; cleaning up is a scheduled callback."""
        self.cancelled = True
        if not self.closed:
            self.post(self._note, None)

    # -- the Receiver of upstream, on the region's loop

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the subscription of an upstream that is subscribed to by the contract."""
        self.upstream.upstream = subscription

    def on_chunk(self, items: list[Any]) -> None:
        """Take elements and pass on what comes of them."""
        self.take_chunk(items)
        self.advance()

    def on_error(self, error: BaseException) -> None:
        """Take the failure of upstream; it stays behind the elements."""
        self.take_end(error)
        self.advance()

    def on_complete(self) -> None:
        """Take the end of upstream; it stays behind the elements."""
        self.take_end(None)
        self.advance()

    def take_chunk(self, items: list[Any]) -> None:
        """Take elements, to be worked on in the turn that this is part of."""
        if self.closed:
            discard(items)
        else:
            self.upstream.add(items)

    def take_end(self, error: BaseException | None) -> None:
        """Take the end of upstream, to be seen to in the turn that this is part of."""
        if not self.closed:
            self.upstream.end(error)
        elif error is not None:
            drop_error(error)

    @property
    def fed(self) -> PushedInput | None:
        """The input, if it is fed from upstream."""
        return self._input if isinstance(self._input, PushedInput) else None

    @property
    def upstream(self) -> PushedInput:
        """The input, where it is fed from upstream."""
        assert isinstance(self._input, PushedInput)
        return self._input

    # -- life

    def begin(
        self, receiver: Receiver[Any] | None, open_source: Callable[[], Subscription] | None, *, called: bool
    ) -> None:
        """Have the region start on its loop: at once if that is the running one, else as the next event.

        The receiver of the last region hears on_subscribe first, before anything is opened. With ``called`` no turn
        is scheduled: whoever calls, on this loop, is to take it.
        """
        if self._running_here():
            self._awake = called
            self._start(receiver, open_source)
        else:
            self.post(lambda _: self._start(receiver, open_source), None)

    def _running_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def _start(self, receiver: Receiver[Any] | None, open_source: Callable[[], Subscription] | None) -> None:
        self._ident = get_ident()
        self._open = partial(self._opened, open_source)
        if receiver is not None:
            receiver.on_subscribe(self)
        self._wake()

    def _opened(self, open_source: Callable[[], Subscription] | None) -> None:
        """Open the input, unless a stage says already that it needs none."""
        self._open = None
        if not self.run.done:
            try:
                if open_source is not None:
                    self.upstream.upstream = open_source()
                self._input.start()
            except FAILURES as error:
                self._fail(error, locate=True)

    def lost(self, error: BaseException) -> None:
        """Give up because the region's loop has ended, or is about to; called on it while it still runs."""
        # First the regions that nobody else tells, because they run on this loop for being read from it: there may be
        # no turn any more in which they could see that they have been cancelled.
        for driver in reversed(self._dependent()):
            driver.leave()
        if not self.closed:
            self.cancelled = True
            self._fail(error)
        self._abandon()

    def _dependent(self) -> list[RegionDriver]:
        """Give the drivers of the flow that a combinator here reads, as far as they are on the same loop."""
        found: list[RegionDriver] = []
        todo = [self.inner]
        while todo:
            driver = todo.pop()
            if driver is not None:
                found += [driver] if driver.loop is self.loop else []
                todo += [driver.before, driver.inner]
        return found

    def leave(self) -> None:
        """Close without waiting for a turn."""
        if not self.closed:
            self.cancelled = True
            self._close()
        self._abandon()

    def _abandon(self) -> None:
        for release in self.abandoned:
            release()

    def _note(self, _: None) -> None:
        """An event that only wakes."""

    def _check_demand(self, n: int) -> None:
        wrong = demand_error(n)
        if wrong is None:
            self._add_demand(n)
        elif not self.closed and not self.cancelled:
            self._fail(wrong)

    def _add_demand(self, n: int) -> None:
        if not self.closed and not self.cancelled:
            self._demand = add_demand(self._demand, n)
            self.requested += n

    def nest(self, outer: RegionDriver) -> None:
        """Take a place inside the region that reads this one: every so many levels, a signal waits for a turn.

        Else a flow that is defined by itself, or by a long row of combinators, would end in a RecursionError.
        """
        self.depth = outer.depth + 1
        self.hops = self.depth % DEEPEST == 0

    def advance(self) -> None:
        """Work at once on what is there, called on the loop; the rest of it later, if time runs out."""
        if not self._draining and (self.hops or self._work()):
            self._wake()

    # -- work

    def _work(self) -> bool:
        """Pass on what demand and input allow; True if the time is up before they are."""
        if self._draining or self.closed or not self._ident:
            return False
        if self.cancelled:
            self._close()
            return False
        self._draining = True
        until = perf_counter() + BUDGET
        try:
            if self._open is not None:
                self._open()
            while self._demand and self._step(until):
                if perf_counter() >= until:
                    return True
            if self._going:
                if not self._at_end():
                    self._input.replenish(self._demand)
                else:
                    self._finish()
        finally:
            self._draining = False
        if self.cancelled:
            self._close()
        return False

    def _finish(self) -> None:
        error = self._input.error
        if error is None:
            self._complete()
        else:
            self._fail(error)

    @property
    def _going(self) -> bool:
        return not self.closed and not self.cancelled

    def _at_end(self) -> bool:
        """Tell whether the stream can end without any further demand."""
        if self._input.error is not None:
            return self._input.at_end and (self._pass is None or not self.run.pending)
        return (self.run.done or self._finishing or self._input.at_end) and not self.run.pending

    def _step(self, until: float) -> bool:
        """Emit what one pass gives; False if there is nothing to be had for now."""
        if self.cancelled:
            return False
        items = self._pass
        if items is None:
            if not self.each and (chunk := self._input.whole_chunk(self._demand)) is not None:
                self._deliver(chunk)
                return not self.closed and not self._input.idle
            items = self._pass = self._begin_pass(until)
            if items is None:
                return False
        else:
            self.run.pace.deadline = until
        ended = self._emit_each(items) if self.each else self._emit_chunk(items)
        if ended and not self.closed:
            self._pass = None
            if self._finishing:
                self._complete()
            elif self.run.pace.ended:
                self._input.used_up()
        return not self.closed and not (self._pass is None and self._input.idle and not self.run.done)

    def _begin_pass(self, until: float) -> Iterator[Any] | None:
        if self._finishing:
            return None
        if not self.run.done:
            try:
                stretch = self._input.stretch()
            except FAILURES as error:
                self._fail(error, locate=True)
                return None
            if stretch is not None:
                return self.run.over(stretch, until)
            if not self._input.ended or self._input.error is not None:
                return None
        self._finishing = True
        return self.run.finishing()

    def _emit_chunk(self, items: Iterator[Any]) -> bool:
        """Emit a list of what the pass gives; True when the pass has ended."""
        demand = self._demand
        out: list[Any] = []
        try:
            out.extend(islice(items, demand))
        except FAILURES as error:
            # What came before the failure is in `out`, and goes first.
            if out:
                self._deliver(out)
            self._fail(error, locate=True)
            return True
        ended = len(out) < demand
        if out:
            self._deliver(out)
        return ended

    def _deliver(self, out: list[Any]) -> None:
        self.delivered += len(out)
        if self._demand != UNBOUNDED:
            self._demand -= len(out)
        if self._receiver is not None:
            self._receiver.on_chunk(out)

    def _emit_each(self, items: Iterator[Any]) -> bool:
        """Emit one by one, each before the next is made; True when the pass has ended."""
        while self._demand and not self.cancelled and self._receiver is not None:
            try:
                item = next(items, NOTHING)
            except FAILURES as error:
                self._fail(error, locate=True)
                return True
            if item is NOTHING:
                return True
            self.delivered += 1
            if self._demand != UNBOUNDED:
                self._demand -= 1
            self._receiver.on_chunk([item])
        return False

    def poll(self) -> Any:
        """Give the next element of the current pass, or NOTHING: demand for one, met without a detour.

        For a consumer on the same loop that takes one element at a time.
        """
        items = self._pass
        if items is None or self._draining or self.cancelled:
            return NOTHING
        try:
            item = self.context.run(next, items, NOTHING)
        except FAILURES as error:
            self._fail(error, locate=True)
            return NOTHING
        if item is NOTHING:
            self._pass = None
            if self.run.pace.ended and not self._finishing:
                self._input.used_up()
            return NOTHING
        self.delivered += 1
        self.requested += 1
        self._input.replenish(0)
        return item

    # -- the end

    def _complete(self) -> None:
        receiver = self._receiver
        try:
            self._end()
        except Exception as error:
            if receiver is not None:
                receiver.on_error(error)
        else:
            if receiver is not None:
                receiver.on_complete()
        self._done()

    def _fail(self, error: BaseException, *, locate: bool = False) -> None:
        if locate:
            self.run.locate(error)
        if isinstance(error, asyncio.CancelledError):
            error = _as_failure(error)
        receiver = self._receiver
        self._end_quietly()
        if receiver is not None:
            receiver.on_error(error)
        self._done()

    def _close(self) -> None:
        self._end_quietly()
        self._done()

    def _end_quietly(self) -> None:
        try:
            self._end()
        except Exception as error:
            drop_error(error)

    def _end(self) -> None:
        """Stop upstream and forget downstream; raises what the cleanup of the source raises."""
        self.closed = True
        self._receiver = None
        self._demand = 0
        items, self._pass = self._pass, None
        close = getattr(items, "close", None)
        try:
            if close is not None:
                close()
        finally:
            try:
                self.run.close()
            finally:
                self._input.close()

    def _done(self) -> None:
        """Tell the lifetime, once the downstream has heard of the end."""
        release, self._release = self._release, None
        if release is not None:
            release()
