"""A run: one subscription to a flow, and the log of its elements."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import Factory, define, field

from ..._core.containers import new_list
from ..._plan import Plan, Pulled
from ...errors import SchedulerClosedError
from ...hooks import discard, drop_error
from ...schedulers.current import Current
from ...schedulers.loop import LoopScheduler
from ...spec import Subscription, quarter
from .ages import Ages
from .broadcast import Broadcast, Then, do, post
from .delivery import Delivery
from .log import Log
from .mutex import Mutex
from .reader import Reader

if TYPE_CHECKING:
    from ..._runtime.driver import RegionDriver
    from ...schedulers.base import Scheduler
    from .shared import Sharing


@define(eq=False)
class Run(Broadcast):
    """Subscribes to the flow once, for all subscribers while it may be joined (a Receiver).

    ::

        MADE ──begin──► BEGUN ──upstream ends, or nobody is left──► its cleanup ──► FINISHED

    A run owns its log and its readers. They stay with it to its end, whatever begins meanwhile. A `Sharing` only refers
    to the run that may be joined. A run can't be joined any more before any reader gets its end, and after its last
    reader has left.
    """

    sharing: Sharing
    lag: int = field(init=False, default=Factory(lambda self: self.sharing.lag, takes_self=True))
    log: Log = field(init=False, default=Factory(lambda self: Log(self.sharing.replay), takes_self=True))
    mutex: Mutex = field(init=False, default=Factory(lambda self: self.sharing.mutex, takes_self=True))
    begun: bool = field(init=False, default=False)
    """Whether it has subscribed to the flow."""
    finished: bool = field(init=False, default=False)
    """Whether all that the subscription has started has been cleaned up."""
    left: bool = field(init=False, default=False)
    """Whether it has been cancelled."""
    started: bool = field(init=False, default=False)
    """Whether as many readers have come as it waits for."""
    home: asyncio.AbstractEventLoop | None = field(init=False, default=None)
    """The event loop where a part of the flow runs that is placed nowhere."""
    in_turns: bool = field(init=False, default=False)
    """Whether elements come only in turns of an event loop, while no code of the user runs."""
    asked: int = field(init=False, default=0)
    """The number of elements that have been requested."""
    _bulk: int = field(init=False, default=Factory(lambda self: quarter(self.lag), takes_self=True))
    """The number of elements to request at a time, when the slowest holds up the others."""
    _upstream: Subscription | None = field(init=False, default=None)
    _releases: list[Then] = field(init=False, factory=new_list)
    """Readers that must not get the end before all has ended."""
    _context: Context | None = field(init=False, default=None)
    """The context of the flow, from the moment when the run begins. A block may end before the run has nothing left to report."""
    _connection: RegionDriver | None = field(init=False, default=None)
    """The last region of the flow, until all has been cleaned up."""
    _ages: Ages | None = field(init=False, default=None)

    @property
    def keeps(self) -> bool:
        """Whether it is held open."""
        return self.sharing.holder is not None and self.sharing.current is self

    # -- the readers

    def admit(self, reader: Reader) -> Iterable[Then]:
        """Add a reader; with the lock. The caller holds the log's head."""
        if self._ages is not None:
            yield from self._ages.look()
        yield from self._join(reader)
        if not self.started and self.log.readers >= self.sharing.start and (then := self.start()) is not None:
            yield then

    def start(self) -> Then | None:
        """Request the demand from the time when it waited for others to come; with the lock."""
        self.started = True
        return self._settle()

    def _settle(self) -> Then | None:
        missing = self._missing()
        if not missing:
            return self._counts(self.sharing.evict_after)
        assert self._upstream is not None
        self.asked += missing
        return partial(self._upstream.request, missing)

    def _missing(self) -> int:
        """Return how much to request: the demand of the fastest, as far as the slowest permits it.

        Where the slowest lets the fastest have a few elements at a time, they are asked for in bulk. There is one
        exception: a reader has taken all there is, and nothing is on its way.
        """
        log = self.log
        if self._upstream is None or log.ended or not self.started:
            return 0
        wanted, allowed = log.goals.greatest, log.places.least + self.lag
        if wanted <= allowed:
            return max(wanted - self.asked, 0)
        missing = allowed - self.asked
        if missing < self._bulk and (self.asked > log.made or log.made not in log.places):
            return 0
        return max(missing, 0)

    @property
    def _hooks(self) -> Context:
        return self.sharing.context if self._context is None else self._context

    @property
    def _may_be_joined(self) -> bool:
        return self.sharing.current is self

    def _deserted(self) -> Iterable[Then]:
        if not self.log.ended:
            return self.sharing.linger_over(self) if self.keeps else self._cancelled()
        return () if self._may_be_joined else self._unheard()

    def _released(self, reader: Reader) -> Iterable[Then]:
        over = self.log.ended or self.left
        if over and self.begun and not self.finished:
            self._releases.append(reader.release)
            return ()
        return (reader.release,)

    def close(self) -> Iterable[Then]:
        """Cancel it, with the lock. It can't be joined any more."""
        yield from self._cancelled()
        yield from self._let_go(*self.log.keep_no_more())

    def _cancelled(self) -> Iterable[Then]:
        self.left = True
        self.sharing.leave(self)
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            yield upstream.cancel
        if self._ages is not None:
            yield self._ages.stop

    def fail(self, error: BaseException) -> Iterable[Then]:
        """Cancel it, with the lock, and fail the remaining readers, after the elements that are kept for them."""
        if not self.log.ended:
            yield from self.close()
            yield from self._end(error)
            return
        self.sharing.leave(self)
        if self._ages is not None:
            yield self._ages.stop
        if not self.log.readers:  # nobody will come any more to hear of the end
            yield from self._unheard()
            yield from self._let_go(*self.log.keep_no_more())

    def then(self, call: Then) -> bool:
        """Call something when all cleanup is done. Return False if there is nothing to wait for. With the lock."""
        if self.finished or not self.begun:
            return False
        self._releases.append(call)
        return True

    # -- the subscription to the flow

    def begin(self) -> None:
        """Subscribe to the flow, on the running loop, unless that is done or the cleanup of another run is pending."""
        from ..._runtime.connect import connected

        with self.mutex:
            if self.begun or self.left or self.sharing.connected is not None:
                return
            self.begun, self.sharing.connected = True, self
            self._context = self.sharing.context
            plan = Plan.of(self.sharing.flow)
            # Not of a producer or a callback, whose code is running when it emits; nor of an async iterator, whose task is.
            self.in_turns = len(plan.regions) > 1 or isinstance(plan.source.operator, Pulled)
            if any(placed_nowhere(region.scheduler) for region in plan.regions):
                self.home = asyncio.get_running_loop()
            context = self.sharing.context_of_a_run()
        connection = connected(self.sharing.flow, self, context, self.finish)
        with self.mutex:
            self._connection = None if self.finished else connection

    def look_at_home(self) -> None:
        """Fail if the loop of the flow has ended, and nobody has noticed. Called on the loop of a new reader."""
        home = self._home
        if home is not None and not home.is_running():
            self._lost(home, SchedulerClosedError(f"the event loop of a shared flow does not run any more: {home!r}"))

    def look_after_home(self, reader: Reader) -> None:
        """Fail if the loop of the flow ends, as long as a reader is on another loop; called on the reader's loop."""
        home, delivery = self._home, reader.delivery
        if home is None or home is delivery.loop or delivery.watch is not None or reader.over:
            return
        try:
            delivery.watch = LoopScheduler(home).attach(partial(self._lost, home))
        except SchedulerClosedError as error:
            self._lost(home, error)

    @property
    def _home(self) -> asyncio.AbstractEventLoop | None:
        """The loop without which the run can't go on: that of the flow, or where it is about to begin."""
        holder = self.sharing.holder
        return self.home if self.begun or holder is None else holder.loop

    def _lost(self, home: asyncio.AbstractEventLoop, cause: BaseException) -> None:
        """Fail, and count everything on the loop as cleaned up, because the loop has ended; on any thread."""
        from ..._runtime.connect import abandon

        error = SchedulerClosedError(
            "the event loop of a shared flow has ended. Place the flow with subscribe_on(...), or hold it open on a loop that goes on"
        )
        error.__cause__ = cause
        with self.mutex:
            if home is not self._home or (self.begun and self._connection is None):
                return  # it has ended, or another thread has noticed
            connection, self._connection = self._connection, None
            over = self.left or self.log.ended
        if not over:
            self.on_error(error)
        if connection is not None:
            abandon(connection, home, error)

    def cannot_begin(self, cause: BaseException) -> None:
        """Fail, because the event loop is closed on which the run was to begin."""
        error = SchedulerClosedError("the event loop that opened the shared flow is closed")
        error.__cause__ = cause
        self.on_error(error)

    def finish(self) -> None:
        """Take note that all has been cleaned up, on whatever thread: the next run may begin."""
        with self.mutex:
            self.finished, self.sharing.connected, self._connection = True, None, None
            releases, self._releases = self._releases, []
            following = tuple(self.sharing.begun_next())
        for call in (*releases, *following):
            call()

    def on_subscribe(self, subscription: Subscription) -> None:
        """Take the subscription, and request the current demand."""
        with self.mutex:
            if not self.left:
                self._upstream = subscription
            then = subscription.cancel if self.left else self._settle()
        if then is not None:
            then()

    def on_chunk(self, items: list[Any]) -> None:
        """Add elements to the log. If all readers wait here and no code of the user runs, they get them at once."""
        head = self.log.head  # it is let go of behind the lock
        here: Delivery | None = None
        then: Then | None = None
        deliveries: Iterable[Delivery] = ()
        with self.mutex:
            late = self.left
            if not late:
                here = self._given_at_once(items) if self.in_turns else None
                if here is not None:
                    # All have moved together, so none is held up.
                    then = self._settle() if self.log.goals.greatest > self.asked else None
                else:
                    # More is asked for when readers move or want more: this changes neither.
                    deliveries = self._put(items)
        del head
        if late:
            discard(items)
            return
        if then is not None:
            then()
        if here is not None:
            here.hand_out()
            return
        post(deliveries)
        if self.sharing.replay_for is not None:
            self._keep_by_age(self.sharing.replay_for)

    def _given_at_once(self, items: list[Any]) -> Delivery | None:
        """Take a list for all readers, without the log, if it can be passed on here and now. Return its delivery."""
        if len(self.deliveries) != 1:
            return None
        (here,) = self.deliveries.values()
        if not here.is_idle or not self.log.pass_by(here.readers.values(), items):
            return None
        here.taken.extend([(reader, items, None) for reader in here.readers])
        return here

    def _keep_by_age(self, seconds: float) -> None:
        if self._ages is None:
            with self.mutex:
                if not self._may_be_joined:  # the last reader has just left, on another thread
                    return
                self._ages = Ages(self, asyncio.get_running_loop(), seconds)
        self._ages.add(self.log.made)

    def on_error(self, error: BaseException) -> None:
        """Add the failure to the log, after the elements."""
        self._over(error)

    def on_complete(self) -> None:
        """Add the end to the log, after the elements."""
        self._over(None)

    def _over(self, error: BaseException | None) -> None:
        with self.mutex:
            self._upstream = None
            unheard = self.left
            calls = list[Then]()
            if not self.left:
                calls += self._end(error)
                if self.sharing.begins_anew_behind(error):
                    self.sharing.leave(self)
                    unheard = not self.log.readers
                    calls += self._let_go(*self.log.keep_no_more())
            may_be_joined = self._may_be_joined
        do(calls)
        if self._ages is not None and not may_be_joined:
            self._ages.stop()
        if unheard and error is not None:
            drop_error(error)


def placed_nowhere(scheduler: Scheduler | None) -> bool:
    """Return whether a region runs on the loop of the subscriber."""
    return scheduler is None or scheduler == Current()
