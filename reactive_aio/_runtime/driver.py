"""The driver of a region: the two ends of its signals, and its life on one event loop.

All state is confined to the loop of the region (see `turns`). A call from the loop's own thread is noted at once and
acted upon in a scheduled callback. So a signal never runs inside ``request``, and the stack stays flat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .._core import budgets
from .._core.guard import FAILURES, PLACE_ENDED, as_failure, as_of_a_generator, close_all
from .._fusion import STARTING, RegionRun
from .._plan import Receiver, Region
from ..hooks import also_failed, drop_error
from ..spec import MOST_AT_ONCE, UNBOUNDED, Subscription, demand_error
from .emission import Emission
from .handover import Handover
from .host import FlowHost, begun
from .inputs import Input, PushedInput
from .life import BEGUN, CLOSED, MADE, OPEN
from .lifetime import Lifetime
from .tree import Place, View

if TYPE_CHECKING:
    from .passage import Passage


class RegionDriver(Emission):
    """One region of one subscription; to its downstream the Subscription, to its upstream what takes the signals."""

    __slots__ = (
        "__weakref__", "_open_source", "_release", "abandoned", "behind", "host", "lifetime", "place", "region", "view",
    )  # fmt: skip

    def __init__(
        self,
        run: RegionRun,
        region: Region,
        source: Input,
        loop: asyncio.AbstractEventLoop,
        context: Context,
        receiver: Receiver[Any],
        host: FlowHost,
        release: Callable[[], None],
    ) -> None:
        super().__init__(run, source, loop, context, receiver)
        self.host = host
        self.region = region
        self._release: Callable[[], None] | None = release
        self._open_source: Callable[[], Subscription] | None = None
        self.lifetime: Lifetime | None = None
        """The parts that take turns here till it ends: the region that feeds this one, or the tasks and inner flows of a pushed
        source."""
        self.behind: tuple[Callable[[], None], ...] = ()
        self.place = Place()
        self.view: View | None = None
        """The figures for snapshots, where a pushed source feeds the region."""
        # To be let go of if the loop ends before it could be cleaned up there.
        self.abandoned: dict[Callable[[], None], None] = {}  # an empty one is smaller than a set

    # -- the Subscription of downstream, from any thread

    def request(self, n: int) -> None:
        """Add to the demand, and see to it in a scheduled callback."""
        if type(n) is not int or n <= 0:
            self.post(self._check_demand, n)
        elif get_ident() == self._ident:
            self._demand = min(self._demand + n, UNBOUNDED)
            if not self._awake:
                self._awake = True
                self._wake_here()
        else:
            self.post(self._add_demand, n)

    def _add_demand(self, n: int) -> None:
        self._demand = min(self._demand + n, UNBOUNDED)

    def cancel(self) -> None:
        """Stop. Cleaning up is a scheduled callback."""
        self.cancelled = True
        if not self.closed:
            self.post(self._note, None)
            if self._gone is None and self.loop.is_closed():
                # A turn was due when the loop was closed, and will not come. So the post has woken nobody.
                self.strand(RuntimeError("Event loop is closed"))

    def abandon(self) -> None:
        """Count the flow as failed, for errors of its cleanup."""
        self.host.failed = True

    # -- the signals of upstream, on the region's loop

    def on_chunk(self, items: list[Any]) -> None:
        """Take elements and pass on the results. An error here is not a failure of the caller."""
        fed: Any = self._input
        try:
            waits = self._draining or self.place.hops
            straight = self._straight
            if straight is None or waits or (stretch := fed.straight(items)) is None:
                if self._passes and not waits and self._passed_on(items):
                    return
                fed.add(items)
                # As `advance`, without a call: every list of a combinator comes by here.
                if not self._draining and (waits or self._work()) and not self._awake:
                    self._wake()
                return
            # As `_work`, without its checks and without a call.
            budget, pace = self.budget, self.run.pace
            outer = budget.until
            pace.ended = False
            if not outer:
                budget.until = budgets.clock() + budget.part
            pace.deadline = budget.until
            self._draining = True
            try:
                straight(stretch, pace, [], MOST_AT_ONCE)
            except FAILURES as error:
                fed.keep(stretch)
                self._fail(as_of_a_generator(error), locate=True)
            else:
                if not pace.ended:
                    fed.keep(stretch)
                    if not self._awake:
                        self._wake()
            finally:
                self._draining = False
                budget.until = outer
            if self.cancelled and self.life is OPEN:
                self._close()
        except FAILURES as error:
            self.caught(error)

    def _passed_on(self, items: list[Any]) -> bool:
        """Pass a list on as it came if all of it is wanted, since no stage is between. Return whether that went."""
        fed: Any = self._input
        demand = self._demand
        wanted = len(items) <= demand and (not self.each or demand == 1)
        if not wanted or self.cancelled or self.life is not OPEN or not fed.passed(len(items)):
            return False
        # As `_work`, for one step.
        budget = self.budget
        outer = budget.until
        if not outer:
            budget.until = budgets.clock() + budget.part
        self._draining = True
        try:
            self._deliver(items)
        finally:
            self._draining = False
            budget.until = outer
        if not fed.idle or self.cancelled:
            self.advance()
        elif self._demand or fed.prefetch is not None:
            fed.more(self._demand)
        return True

    def arrive(self, items: list[Any]) -> None:
        """Take elements over a boundary, from any thread. A turn handles them if there is demand.

        On the loop they are taken at once, but behind the posted ones: a turn whose time was up may have left some of these.
        """
        fed: Any = self._input
        if get_ident() != self._ident or self._posted:
            self.post(fed.add, items)
            return
        fed.add(items)
        if self._demand and not self._awake:
            self._awake = True
            self._wake_here()

    def on_error(self, error: BaseException) -> None:
        """Take the failure of upstream. It comes after the elements."""
        self._take_end_here(error)

    def on_complete(self) -> None:
        """Take the end of upstream. It comes after the elements."""
        self._take_end_here(None)

    def _take_end_here(self, error: BaseException | None) -> None:
        try:
            self.take_end(error)
            self.advance()
        except FAILURES as failure:
            self.caught(failure)

    def take_end(self, error: BaseException | None) -> None:
        """Take the end of upstream, to be seen to in the turn that this is part of."""
        if not self.closed:
            if error is not None:
                self.host.hear(error)
            self.upstream.end(error)
        elif error is not None:
            self._drop(error)

    @property
    def demand(self) -> int:
        """The number of elements that have been requested from the region, and that it has not emitted."""
        return self._demand

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

    def hand_over(self, downstream: RegionDriver) -> None:
        """Let the loop of the next region take the made elements, while a function blocks the thread of this one."""
        handover = Handover(downstream.loop, downstream.context, downstream.arrive)
        self.handover = downstream.place.handover = handover
        self.run.pace.idle, self.run.pace.arm = handover.idle, handover.arm

    def begin(
        self, receiver: Receiver[Any] | None, open_source: Callable[[], Subscription] | None, *, called: bool
    ) -> None:
        """Start the region on its loop: at once if that is the running one, else as the next event.

        The receiver of the last region hears on_subscribe first, before anything is opened. With ``called`` no turn
        is scheduled: the caller, on this loop, is to take it.
        """
        begun(self.loop).add(self)
        if self.runs_here():
            self._awake = called
            self._start(receiver, open_source)
        else:
            self.post(lambda _: self._start(receiver, open_source), None)

    def runs_here(self) -> bool:
        """Return whether its loop is the running one."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def _start(self, receiver: Receiver[Any] | None, open_source: Callable[[], Subscription] | None) -> None:
        self._ident = get_ident()
        if self.life is MADE:  # its loop may have ended before
            self.life = BEGUN
            self._open_source = open_source
        if receiver is not None:
            try:
                receiver.on_subscribe(self)
            except FAILURES as error:
                self.caught(error)
        if not self._awake:
            self._wake()

    def _open(self) -> None:
        """Open the input, unless a stage says already that it needs none."""
        open_source, self._open_source = self._open_source, None
        if not self.run.done:
            try:
                if open_source is not None:
                    self.upstream.upstream = open_source()
                    self._served = self.upstream.may_be_served
                self._input.start()
            except FAILURES as error:
                self._not_opened(error)

    def _not_opened(self, error: BaseException) -> None:
        """Fail, after the elements that some stage emits before any input."""
        if self.run.phase is STARTING:
            self.run.locate(error)
            self._input = PushedInput(None, self.run)
            self._input.end(error)
        else:
            self._fail(error, locate=True)

    def lost(self, error: BaseException) -> None:
        """Give up because the region's loop has ended, or is about to; called on it while it still runs."""
        # First the regions that nobody else tells, because they run on this loop for being read from it. There may be
        # no turn any more in which they could see that they have been cancelled.
        for driver in reversed(self.place.dependents(self)):
            driver.leave()
        if self.cancelled:
            self.leave()  # nobody waits to hear that the loop has ended, too
            return
        if not self.closed:
            self.cancelled = True
            self._fail(error)
        self._abandon()

    def give_up(self, error: BaseException) -> None:
        """Handle what is left, here and in the regions that are read on this loop."""
        for driver in reversed(self.place.dependents(self)):
            driver.cancelled = True
            Emission.give_up(driver, error)
        super().give_up(error)

    def leave(self) -> None:
        """Close without waiting for a turn."""
        if not self.closed:
            self.cancelled = True
            self._close()
        self._abandon()

    def _abandon(self) -> None:
        for release in tuple(self.abandoned):
            release()

    def _note(self, _: None) -> None:
        """An event that only wakes."""

    def _check_demand(self, n: int) -> None:
        wrong = demand_error(n)
        if wrong is None:
            self.request(int(n))
        elif not self.closed and not self.cancelled:
            self._fail(wrong)

    def read_by(self, outer: RegionDriver | Passage) -> None:
        """Take a place inside the region of a combinator that reads this one, until this one has ended."""
        self.place.nest(outer)
        if not self.closed:
            self.place.read_by(self, outer)

    def advance(self) -> None:
        """Process the arrived elements at once; called on the loop. If time runs out, the rest comes later."""
        if not self._draining and (self.place.hops or self._work()) and not self._awake:
            self._wake()

    # -- the end

    def broken(self, error: BaseException) -> None:
        """Fail with an exception that left a turn. If the region has ended, its reader fails instead."""
        if self.closed:
            self.host.fail_reader(as_failure(error))
        else:
            self._fail(error)

    def inner_cleanup_failed(self, error: BaseException) -> None:
        """Fail with what the cleanup of a flow has raised that is read here; too late, pass it on."""
        if self.closed:
            self.host.cleanup_failed(error)
        else:
            self._fail(error)

    def _complete(self) -> None:
        receiver = self.receiver
        failures: list[BaseException] = []
        try:
            self.run.check_over()
        except FAILURES as error:
            failures.append(error)
        failures += self._end()
        try:
            if failures:
                self._signal(receiver, failures)
            elif receiver is not None:
                self._tell(receiver, None)
        finally:
            self._done()

    def _tell(self, receiver: Receiver[Any], error: BaseException | None) -> None:
        """Signal the end.

        If that goes wrong, the region that reads the flow fails, or else the receiver gets that failure.
        """
        try:
            if error is None:
                receiver.on_complete()
            else:
                receiver.on_error(error)
        except FAILURES as failure:
            if error is not None:
                also_failed(failure, error)
            if self.host.outer is not None:
                raise
            receiver.on_error(as_failure(failure))

    def _fail(self, error: BaseException, *, locate: bool = False) -> None:
        if locate:
            self.run.locate(error)
        receiver = self.receiver
        self.host.failed = True
        failures = [error, *self._late_failure(), *self._end()]
        try:
            self._signal(receiver, failures)
        finally:
            self._done()

    def _signal(self, receiver: Receiver[Any] | None, failures: list[BaseException]) -> None:
        """Signal the first of several failures. The others are noted on it."""
        self.host.failed = True
        first, *others = map(as_failure, failures)
        try:
            for other in others:
                also_failed(first, other)
            if receiver is not None:
                self._tell(receiver, first)
            else:
                drop_error(first)
        finally:
            del first, others, failures  # a traceback leads back to here

    def _close(self) -> None:
        failures = self._end()
        try:
            for error in failures:
                self.host.cleanup_failed(error)
        finally:
            del failures
            self._done()

    def _drop(self, error: BaseException) -> None:
        """Report a failure that nobody takes. If the flow was cancelled, the end of its place is not a failure."""
        if not (self.cancelled and isinstance(error, PLACE_ENDED)):
            self.host.dropped(error)

    def _late_failure(self) -> list[BaseException]:
        """Take the failure, if there is one, after elements that will not be taken any more."""
        error, self._input.error = self._input.error, None
        return [] if error is None else [error]

    def _end(self) -> list[BaseException]:
        """Stop upstream and forget downstream. Return what the cleanup of the source raises."""
        self.life = CLOSED
        self._served = False
        self.receiver = self._open_source = self._straight = None
        self._demand = 0
        for late in self._late_failure() if self._input.error is not None else ():
            self._drop(late)
        if self.host.reader is self:
            self.host.reader = None
        if self.handover is not None:
            self.handover.close()
        if self.place.handover is not None:
            self.place.handover.stop()
        items, self.run.current = self.run.current, None
        close = getattr(items, "close", None)
        closers = (self.run.close, self._input.close)
        return close_all(closers if close is None else (close, *closers))

    def _done(self) -> None:
        """Leave: the downstream has got the end."""
        begun(self.loop).discard(self)
        self.place.leave(self)
        calls, self.behind = self.behind, ()  # they lead back to here
        for error in close_all(calls) if calls else ():
            self.host.cleanup_failed(error)
        release, self._release = self._release, None
        if release is not None:
            self._give_up(release)

    def _give_up(self, release: Callable[[], None]) -> None:
        """Release the region's place, once what the source has started has ended.

        That may need turns of this loop, which therefore is not to be let go before.
        """
        if self.lifetime is None:
            release()
        else:
            self.lifetime.then(release)
