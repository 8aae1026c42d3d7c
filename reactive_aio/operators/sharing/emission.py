"""The inside of a hub: a log that anybody may add to, as far as there is room."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from enum import Enum
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from attrs import define, field, frozen

from ..._core.containers import new_deque
from ..._core.guard import FAILURES, as_failure
from ..._core.here import Here
from ..._plan import Inlet, Pushed
from ...errors import HubClosedError
from ...hooks import drop_error
from ...spec import Subscription
from .broadcast import Broadcast, Then, do, post
from .delivery import Delivery, soon
from .reader import Distance, Reader

if TYPE_CHECKING:
    from .taking import Place

R = TypeVar("R", bound=Reader)

Idle = Literal["wait", "drop"]
"""Without subscribers an element is kept as far as there is room, or goes by."""


class Offer(Enum):
    """The answer to an element that was offered to a hub; true if it was taken."""

    TAKEN = "taken"
    """The element goes to all subscribers, or is kept for a later one."""
    FULL = "full"
    """There is no room: the slowest subscriber is too far behind, or others wait for their turn."""
    CLOSED = "closed"
    """The hub has ended."""
    UNWANTED = "unwanted"
    """There is no subscriber, and the hub keeps nothing for later ones."""

    def __bool__(self) -> bool:
        return self is Offer.TAKEN


@define(eq=False)
class Waiter:
    """A caller that waits for room."""

    wake: Callable[[], object]
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop of its task."""

    @property
    def is_lost(self) -> bool:
        """Whether it will never go on."""
        return self.loop is not None and self.loop.is_closed()


@define(eq=False)
class Emission(Broadcast, Here):
    """A log with permits: each is room for one element.

    The permits are free, or reserved for one who is about to add its element, or taken by elements that the slowest has
    not read. Together they are the `lag`. Who comes first is served first. To add is one step with the reserved permit,
    in the task or thread that has waited. So a task that is cancelled has added nothing, and its permit goes to the
    next. So it does however else the wait ends, also when the event loop of the task has been closed.
    """

    STAYS: ClassVar[str] = (
        "a hub can't be pickled: its subscribers are in this process. Send the elements back to this process and emit them here"
    )

    idle: Idle
    evict_after: float | None = None
    unwanted: int = field(init=False, default=0)
    """The number of elements that have gone by."""
    context: Context = field(init=False, factory=copy_context)
    """The context whose hooks get elements that no subscriber gets."""
    _waiting: deque[Waiter] = field(init=False, factory=new_deque)
    _granted: deque[Waiter] = field(init=False, factory=new_deque)
    """The callers with a reserved permit, which they have not used yet."""
    _until: int = field(init=False, default=0)
    """The most elements while the mutex is untouched."""

    def __attrs_post_init__(self) -> None:
        if self.keeps:
            self.log.keep()

    # -- the readers

    @property
    def keeps(self) -> bool:
        """Whether elements wait for a first subscriber."""
        return self.idle == "wait"

    def join(self, kind: Callable[[Emission, Any], R], inlet: Inlet[Any] | Place) -> R:
        """Let a subscriber read, by a reader of some kind, on its loop."""
        with self.mutex:
            reader = kind(self, inlet)
            calls = tuple(self._join(reader))
        for call in calls:
            call()
        return reader

    def _settle(self) -> Then | None:
        if self._granted:
            _let_go_of_lost(self._granted)
        if not self._waiting or self._room <= 0:
            return self._counts(self.evict_after)
        granted: list[Waiter] = []
        while self._waiting and self._room > 0:
            _let_go_of_lost(self._waiting)
            if self._waiting:
                granted.append(self._grant())
        return partial(_wake, granted)

    def _grant(self) -> Waiter:
        waiter = self._waiting.popleft()
        self._granted.append(waiter)
        return waiter

    @property
    def _hooks(self) -> Context:
        return self.context

    @property
    def _may_be_joined(self) -> bool:
        return True  # a newcomer gets the replay, also when the hub has ended

    def _deserted(self) -> Iterable[Then]:
        if (then := self._settle()) is not None:
            yield then

    def _released(self, reader: Reader) -> Iterable[Then]:
        return (reader.release,)

    # -- the writers, from any thread

    @property
    def _room(self) -> int:
        """The number of permits that are free, with the lock.

        Without readers too, though elements go by then: one may come before those with a permit add theirs.
        """
        return self.lag - self.log.window - len(self._granted)

    @property
    def _goes_by(self) -> bool:
        log = self.log
        return not log.readers and log.rest is None and not log.replay

    def takes(self, item: Any) -> bool:
        """Add an element in the usual case, with the fewest calls: a reader, no waiting caller, no replay, and room.

        While nothing else happens all readers have been told already, and only the room is looked at.
        """
        mutex, log = self.mutex, self.log
        if not mutex.lock.acquire(False):
            return False
        mutex.owner = ident = get_ident()
        try:
            told = mutex.untouched
            if not told:
                usual = log.readers and not (self._waiting or self._granted or log.ended or log.replay)
                self._until = log.places.least + self.lag if usual else 0
            if log.made >= self._until:
                return False
            log.tail.items.append(item)
            log.made += 1
            if told:
                return True
            deliveries: Iterable[Delivery] = ()
            if len(self.deliveries) > 1:
                deliveries = self._told()
            elif log.goals.greatest >= log.made:  # as `_told`, without its call: a reader wants this element
                (only,) = self.deliveries.values()
                deliveries = () if only.posted else (only,)
                only.posted = only.news = True
            mutex.untouched = True
        finally:
            mutex.owner = 0
            mutex.lock.release()
            if mutex.put_off:
                mutex.call_put_off()
        for each in deliveries:  # as `Delivery.post`, without its call
            if each.ident == ident:
                each.budget.add(each)
            else:
                each.budget.post(each)
        return True

    def offer(self, item: Any) -> Offer:
        """Add an element now, or return why not. A finalizer in the middle of a change finds no room."""
        if self.takes(item):
            return Offer.TAKEN
        mutex = self.mutex
        if not mutex.enter():
            return Offer.FULL
        try:
            if self.log.ended:
                return Offer.CLOSED
            # Those who wait, or have been given room, are served first.
            _let_go_of_lost(self._granted)
            if self._waiting or self._granted or self._room <= 0:
                return Offer.FULL
            by, calls = self._goes_by, self._add(item)
        finally:
            mutex.leave()
        do(calls)
        return Offer.UNWANTED if by else Offer.TAKEN

    async def emit(self, item: Any) -> None:
        """Add an element when there is room."""
        if self._goes_by:
            # Else one who emits for nobody would keep the loop to itself. The turn comes before the element, because a
            # cancel in it says that nothing has been emitted.
            await asyncio.sleep(0)
        if self.offer(item) in {Offer.TAKEN, Offer.UNWANTED}:
            return
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        waiter = Waiter(partial(soon, loop, _set, woken), loop)
        try:
            self._wait(waiter)
            await woken
            self._add_with_permit(waiter, item)
        except FAILURES:  # a cancel, or the coroutine is closed because nobody will go on with it
            self._withdraw(waiter)
            raise

    def submit(self, item: Any, timeout: float | None) -> None:
        """Add an element when there is room. The thread waits."""
        if self.offer(item) in {Offer.TAKEN, Offer.UNWANTED}:
            return
        woken = threading.Event()
        waiter = Waiter(woken.set)
        try:
            self._wait(waiter)
            # When the hub has ended in the meantime, that is for the caller to hear, by the error of the next step.
            seconds = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
            if not woken.wait(seconds) and not self.log.ended:
                raise TimeoutError(f"there was no room in the hub for {timeout} seconds")
            self._add_with_permit(waiter, item)
        except FAILURES:  # a signal may interrupt the wait
            self._withdraw(waiter)
            raise

    def _wait(self, waiter: Waiter) -> None:
        """Wait for room, after all earlier callers. There may be some by now."""
        with self.mutex:
            self._check_open()
            self._waiting.append(waiter)
            lost = [each for each in self.deliveries.values() if each.loop.is_closed()]
            then = self._settle()
        post(lost)  # a turn on a closed loop counts its readers as gone
        if then is not None:
            then()

    def _add_with_permit(self, waiter: Waiter, item: Any) -> None:
        with self.mutex:
            self._check_open()
            self._granted.remove(waiter)
            calls = self._add(item)
            # The element has the permit now, until the slowest has read it. Without a reader it is free again.
            if not self.log.readers and (then := self._settle()) is not None:
                calls.append(then)
        do(calls)

    def _withdraw(self, waiter: Waiter) -> None:
        """Remove a caller that waits no more, if it is there. Its permit goes to the next."""
        if self.mutex.is_mine:  # a finalizer closes the coroutine, in the middle of a change
            self.mutex.later(partial(self._withdraw, waiter))
            return
        with self.mutex:
            for line in (self._granted, self._waiting):
                if waiter in line:
                    line.remove(waiter)
            then = self._settle()
        if then is not None:
            then()

    def _check_open(self) -> None:
        if self.log.ended:
            raise HubClosedError("the hub has ended: it takes no more elements")

    def _add(self, item: Any) -> list[Then]:
        """Add an element, unless it goes by; with the lock. Return the work to do without it."""
        if self._goes_by:
            self.unwanted += 1
            return [partial(self._discard, [item])]
        log, head = self.log, self.log.head
        log.add(item)
        calls: list[Then] = [each.post for each in self._told()]
        if not log.readers:  # else all that falls out of the replay has been had, or is kept for one of them
            calls += self._let_go(head, head.first)
        return calls

    def close(self, error: BaseException | None) -> None:
        """End it, after the kept elements. Callers that wait for room are refused."""
        if self.mutex.is_mine:
            self.mutex.later(partial(self.close, error))
            return
        if error is not None:
            error = as_failure(error)  # a CancelledError would cancel the tasks that read
        with self.mutex:
            late = self.log.ended
            calls = () if late else tuple(self._end(error))
            refused = [] if late else [self._grant() for _ in range(len(self._waiting))]
        do(calls)
        _wake(refused)
        if late and error is not None:
            self.context.copy().run(drop_error, error)


def _let_go_of_lost(line: deque[Waiter]) -> None:
    """Let go of the first callers whose event loops have been closed. The others are looked at when they are first."""
    while line and line[0].is_lost:
        line.popleft()


def _wake(waiters: Iterable[Waiter]) -> None:
    for waiter in waiters:
        waiter.wake()


def _set(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


@frozen(eq=False)
class HubFlow(Pushed[Any]):
    """Source of ``Hub.flow``."""

    emission: Emission = field(repr=False)
    lag: int
    prefetch: int | None

    @property
    def name(self) -> str:
        """Return its name in plans."""
        return "hub"

    @property
    def arguments(self) -> str:
        """The number of elements that it keeps."""
        return f"lag={self.lag}" + (f", prefetch={self.prefetch}" if self.prefetch else "")

    def admit(self, kind: Callable[[Emission, Any], R], inlet: Inlet[Any] | Place) -> R:
        """Let a subscriber read."""
        return self.emission.join(kind, inlet)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin to read."""
        reader = self.admit(Reader, inlet)
        inlet.show(Distance(self.emission.log, reader.cursor, self.lag))
        return reader
