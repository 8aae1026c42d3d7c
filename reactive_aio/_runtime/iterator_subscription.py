"""Async iterators that a combinator reads: the owner of the iterator signals its elements to the combinator.

``flat_map(lambda user: Flow.from_async_iterable(posts(user)))`` reads an iterator for each element, and ``merge`` reads a row of them.
Such a flow has no steps, or stateless ones. So no driver is made for it. Elements that the iterator gives without a wait are one list, which is signalled at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from types import coroutine
from typing import Any

from .._arbiter import Appended, Inner
from .._core import budgets
from .._core.budgets import Later
from .._core.guard import FAILURES, PLACE_ENDED, as_failure
from .._core.missing import NOTHING
from .._fusion import BARE, Pace, Stage
from .._fusion.origin import Placed
from .._plan import Awaited, Receiver
from ..hooks import also_failed, drop_error
from ..spec import UNBOUNDED, add_demand, subtract_demand
from .awaited import LISTED, MANY, AwaitedInput
from .driver import RegionDriver
from .host import FlowHost
from .lifetime import Lifetime
from .owner import Reader
from .passage import Passage
from .spare import SpareOwner
from .staged import StagedInput


class IteratorSubscription:
    """The subscription to an async iterator, confined to the event loop of the region that reads it (a Reader)."""

    __slots__ = (
        "_before", "_borrow", "_budget", "_due", "_here", "_host", "_lifetime", "_outer", "_outer_host", "_owner", "_receiver", "_source",
        "closed", "context", "delivered", "demand",
    )  # fmt: skip

    def __init__(
        self,
        source: Placed[Awaited[Any]],
        stages: Sequence[Placed[Stage[Any, Any]]],
        outer: RegionDriver | Passage,
        receiver: Receiver[Any],
        lifetime: Lifetime,
        borrow: Callable[[AwaitedInput, Reader], SpareOwner],
    ) -> None:
        self._outer: RegionDriver | Passage | None = outer
        """The region that reads the flow, by its combinator, until all is over: it refers to what it reads."""
        self._outer_host = outer.host
        self._receiver: Any = receiver
        """Gets the signals, until all is over: it refers to the region, by whose snapshots this subscription is kept."""
        self.closed = False
        """Whether the end has been signalled, or the receiver has cancelled: it reads no more."""
        self.context = outer.context
        """The context of the subscriber."""
        self._lifetime = lifetime
        self._host: FlowHost | None = None
        self._budget = outer.budget
        self._source = (
            StagedInput(source, stages, outer.budget)
            if stages
            else AwaitedInput(source.operator, Pace(), source, outer.budget)
        )
        self._borrow: Callable[[AwaitedInput, Reader], SpareOwner] | None = borrow
        """Finds an owner, until there is one: it refers to the region."""
        self._owner: SpareOwner | None = None
        self._due = True
        """Whether a turn is to come."""
        self._here = False
        """Whether it is at work under the owner's identity."""
        self.demand = 0
        """The number of elements that have been requested and not signalled."""
        self.delivered = 0
        """The number of elements that have been signalled."""
        self._before = 0
        """The number of elements still to collect when it began to append them to a list of its reader."""

    @property
    def host(self) -> FlowHost:
        """Hears of failures; made where there is one, since most such flows have none."""
        if self._host is None:
            self._host = FlowHost(self._lifetime, self._outer_host)
        return self._host

    @property
    def uncounted(self) -> int:
        """The number of elements that have been appended to a list of its reader and not been counted. Read from any thread."""
        source = self._source
        return 0 if source.into is source.collected else self._before - source.collecting

    def begin(self, *, at_once: bool) -> None:
        """Pass the receiver its subscription. Have the owner begin: now, with ``at_once``, or in an event."""
        try:
            self._receiver.on_subscribe(self)
        except FAILURES as error:
            self.caught(error)
        self._due = False
        if not at_once:
            self._post()
        elif self.demand and not self.closed:
            self._read_here()  # as `_turn`, without its checks: most inner flows begin here
        else:
            self._turn(None)

    # -- the Subscription of the combinator

    def request(self, n: int) -> None:
        """Note the demand, and serve it in an event."""
        self.demand = add_demand(self.demand, n)
        self._post()

    def cancel(self) -> None:
        """Signal nothing any more, and have the iterator closed in an event."""
        self.closed = self._source.left = True  # at once: the owner may close the iterator before the event comes
        self._post()

    def abandon(self) -> None:
        """Count the flow as failed, for errors of its cleanup."""
        self.host.failed = True

    # -- turns

    def call_again(self) -> None:
        """Schedule a turn after the others have had theirs. By then the region that reads may need no more."""
        if not self._due and self._outer is not None:
            self._due = True
            self._budget.add(Later(self._turn, self._outer.context.copy()))

    def _post(self) -> None:
        if not self._due and self._outer is not None:
            self._due = True
            self._outer.post(self._turn, None)

    def _turn(self, _: None) -> None:
        """Read on, or close: in the name of the owner where that waits, else in a step of its own."""
        self._due = False
        source, owner = self._source, self._owner
        if self.closed:
            self._let_go()
            if owner is not None:
                owner.close(self)
            else:
                self._leave()
        elif self._here or not self.demand or source.pace.awaiting is not None:
            return
        elif owner is None:
            self._read_here()
        elif not owner.waits:
            owner.call(self)
        else:
            late = owner.run(self.work_here)
            if late:
                self.call_again()
            else:
                self._hand_over(owner)

    def _read_here(self) -> None:
        """Begin in the name of an owner, which is another one's again if the iterator ends without a wait."""
        borrow, self._borrow = self._borrow, None
        assert borrow is not None
        owner = self._owner = borrow(self._source, self)
        if not owner.waits:
            return  # its first step is due
        late = owner.run(self.work_here)
        if owner.take_back(self):
            self._owner = None
            self._leave()
        elif late:
            self.call_again()
        else:
            self._hand_over(owner)

    def _leave(self) -> None:
        self._outer = self._borrow = self._receiver = None

    def _hand_over(self, owner: SpareOwner) -> None:
        """Leave to the owner what it alone does: to await something, and to close the iterator."""
        if self.closed or self._source.pace.awaiting is not None:
            if self.demand >= MANY:  # in its own steps it is quicker
                owner.call(self)
            else:
                owner.hand_over(self)

    def go_on(self, behind: object) -> None:
        """Work behind what the iterator has waited for."""
        owner = self._owner
        if owner is not None and owner.goes_on(self, behind):
            if owner.run(self.work_here):
                self.call_again()
            else:
                self._hand_over(owner)

    def _let_go(self) -> None:
        """Drop elements that are not taken, and report a failure after them to the hook."""
        self._source.close()
        late, self._source.error = self._source.error, None
        if late is not None and not isinstance(late, PLACE_ENDED):
            self.host.dropped(late)

    # -- the Reader

    def work_here(self) -> bool:
        """Signal elements until the iterator suspends or ends, or demand is met. Return True if the time is up first."""
        source, budget = self._source, self._budget
        self._here = True
        outer = budget.until
        until = budget.until = outer or budgets.clock() + budget.part
        try:
            while not (over := source.ended and source.emptied) and self.demand and not self.closed:
                items = source.listed(self.demand)
                if items:
                    self.delivered += len(items)
                    if self.demand != UNBOUNDED:
                        self.demand -= len(items)
                    self._receiver.on_chunk(items)
                if source.broken is not None:
                    self._break()
                    break
                if source.pace.awaiting is not None:
                    return False
                if not source.ended and budgets.clock() >= until:
                    return True
            if over and not self.closed:
                source.left = True
                if source.reading is not None:
                    source.resume()  # to its end, which has been known since its one element came
                self._signal_end()
                return False  # nothing is left to let go of
        except FAILURES as error:
            self.caught(error)
        finally:
            self._here = False
            budget.until = outer
        if self.closed:
            self._let_go()
        return False

    def read_on(self) -> Awaitable[BaseException | None]:
        """Await the iterator's wait, and read on, as long as it suspends. Return the failure of a wait, if one fails."""
        receiver = self._receiver
        # Most inner flows end with their first list: for these it is not worth the calls.
        if self.delivered and self._source.collecting and isinstance(receiver, Inner):
            appending = receiver.appending()
            if appending is not None:
                return self._append_on(receiver, *appending)
        return self._signal_on()

    @coroutine
    def _signal_on(self) -> Generator[Any, None, BaseException | None]:
        """Signal what comes between two waits."""
        source, pace = self._source, self._source.pace
        while pace.awaiting is not None:
            (awaited,), pace.awaiting = pace.awaiting, None
            while True:
                try:
                    yield awaited
                except GeneratorExit:
                    raise
                except FAILURES as failure:
                    return failure
                if self.closed or not self.demand or source.interrupted:
                    return None
                reading = source.reading
                if not source.collecting or reading is None:
                    self.work_here()
                    break
                # As `work_here` in the middle of a list, without its calls: a source that suspends for each element comes by here.
                awaited = next(reading, NOTHING)
                if reading.gi_yieldfrom is None:
                    self._listed(awaited)
                    self.work_here()
                    return None  # another list may be appended to
                items = source.collected
                if items:
                    source.collected = source.into = []
                    before, count = self.delivered, len(items)
                    self.delivered = before + count
                    if self.demand != UNBOUNDED:
                        self.demand -= count
                    try:
                        self._receiver.on_chunk(items)
                    except FAILURES as error:
                        self.caught(error)
                    del items  # which would be kept for as long as the iterator waits
                    if not (before or self.closed):  # the first list: those that follow may be appended
                        pace.awaiting = BARE if awaited is None else (awaited,)
                        return None
        return None

    @coroutine
    def _append_on(self, inner: Inner, appended: Appended, most: int) -> Generator[Any, None, BaseException | None]:
        """Append what comes between two waits to a list of the combinator, and count it when there are ``most`` elements.

        `_signal_on` makes a list for each element of a source that suspends before each.
        """
        source, pace = self._source, self._source.pace
        reading = source.reading
        assert reading is not None
        assert pace.awaiting is not None
        left = self._before = source.collecting
        rest = left - most
        source.into = appended.elements
        (awaited,), pace.awaiting = pace.awaiting, None
        while True:
            try:
                yield awaited
            except GeneratorExit:
                raise
            except FAILURES as failure:
                self._count(inner)
                return failure
            if self.closed:
                break
            awaited = next(reading, NOTHING)
            if source.collecting != left:
                left = source.collecting
                if not appended.due:
                    try:
                        appended.arrived()
                    except FAILURES as error:
                        self.caught(error)
            if reading.gi_yieldfrom is None:
                self._count(inner)
                self._listed(awaited)
                return None
            if left <= rest:
                pace.awaiting = BARE if awaited is None else (awaited,)
                break
        self._count(inner)
        return None

    def _count(self, inner: Inner) -> None:
        """Count elements that have been appended, and append no more."""
        count = self.uncounted
        self._source.into = self._source.collected
        self.delivered += count
        self.demand = subtract_demand(self.demand, count)
        inner.count(count)

    def _listed(self, element: Any) -> None:
        """Take what the iterator's generator has given, in the middle of a list: that it has ended, has listed all, or an element."""
        source = self._source
        if element is NOTHING:
            source.over()
            return
        source.collecting = 0
        if element is not LISTED:
            source.collected.append(element)

    def break_off(self) -> None:
        """Drop the pass, if there is one."""
        self._source.break_off()

    def _break(self) -> None:
        """Fail with the failure of a stage, behind as much of the iterator's cleanup as does not wait."""
        source = self._source
        error, source.broken = source.broken, None
        self.host.failed = source.left = True
        try:
            assert error is not None
            source.leave()
            if self.closed:
                self.host.dropped(as_failure(error))
            else:
                self.caught(error)
        finally:
            del error  # a traceback leads back to here

    def _signal_end(self) -> None:
        self.closed = True
        error, self._source.error = self._source.error, None
        try:
            if error is None:
                self._receiver.on_complete()
            else:
                self.host.failed = True
                self._receiver.on_error(as_failure(error))
        finally:
            del error  # a traceback leads back to here

    def caught(self, error: BaseException) -> None:
        """Fail with an exception of a signal. If the flow has ended, the region that reads it fails instead."""
        closed, self.closed = self.closed, True
        self._source.left = True
        try:
            if closed:
                self.host.fail_reader(as_failure(error))
            else:
                self.host.failed = True
                self._receiver.on_error(as_failure(error))
        except FAILURES as another:
            also_failed(another, error)
            drop_error(another)

    def left(self, task: asyncio.Task[None]) -> None:
        """Let go of the region that reads the flow."""
        if self._owner is not None:
            self._owner.ended(self, task)
        self._leave()
