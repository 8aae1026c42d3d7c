"""The shared part: one log, and the readers that come and go on their event loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from contextvars import Context
from functools import partial
from threading import get_ident
from typing import Any

from attrs import define, field

from ..._core.containers import new_dict
from ..._plan import SharedSnapshot, SubscriberSnapshot
from ...hooks import discard, drop_error
from ...spec import subtract_demand
from .delivery import Delivery
from .log import Log, Node
from .mutex import Mutex
from .patience import Patience
from .reader import End, Reader, ReaderChunk

Then = Callable[[], object]
"""Work to do when the lock has been released."""


@define(eq=False)
class Broadcast(ABC):
    """A log under a lock. Subclasses decide how it is filled.

    A method called ``_...`` is called with the lock and changes the log. It returns the work to do without the lock: to
    schedule a callback, to ask upstream, to call a hook. So nobody else's code runs under the lock, nor anything that
    might wait.
    """

    lag: int
    """The most elements that may be made beyond those that the slowest reader has taken."""
    log: Log
    mutex: Mutex
    deliveries: dict[AbstractEventLoop, Delivery] = field(init=False, factory=new_dict)
    joined: int = field(init=False, default=0)
    """The number of readers that have come."""
    heard: bool = field(init=False, default=False)
    """Whether a reader has got the end."""
    patience: Patience | None = field(init=False, default=None)
    """Measures how long readers have been waiting."""

    # -- what a kind of broadcast says, with the lock

    @property
    @abstractmethod
    def keeps(self) -> bool:
        """Whether it goes on without readers, and keeps the elements that no reader has had."""

    @property
    def _keeps_now(self) -> bool:
        """Whether it keeps unread elements if the last reader leaves now. A run that has ended drops them."""
        return self.keeps and not self.log.ended

    @abstractmethod
    def _settle(self) -> Then | None:
        """Request more, if readers have moved or need more."""

    @property
    @abstractmethod
    def _hooks(self) -> Context:
        """The context whose hooks get the elements that no reader gets."""

    @property
    @abstractmethod
    def _may_be_joined(self) -> bool:
        """Whether a reader may come, and get the replay."""

    @abstractmethod
    def _deserted(self) -> Iterable[Then]:
        """Handle the leave of the last reader."""

    @abstractmethod
    def _released(self, reader: Reader) -> Iterable[Then]:
        """Complete the cleanup of a reader: now, or when the cleanup upstream is done."""

    # -- the readers, each on its loop

    def _join(self, reader: Reader) -> Iterable[Then]:
        loop = reader.inlet.loop
        delivery = self.deliveries.get(loop)
        if delivery is None:
            delivery = self.deliveries[loop] = Delivery(self, loop)
        delivery.readers[reader] = reader.cursor
        reader.delivery = delivery
        self.joined += 1
        reader.number = self.joined
        self.log.join(reader.cursor)
        if self.log.ended and delivery.note(reader):
            yield delivery.post

    def want(self, reader: Reader, n: int) -> None:
        """Add to the demand of a reader."""
        with self.mutex:
            if reader.over:
                return
            self.log.want(reader.cursor, n)
            post = reader.cursor.is_due and reader.delivery.note(reader)
            then = self._settle()
        if post:
            reader.delivery.post()
        if then is not None:
            then()

    def want_next(self, readers: Iterable[Reader]) -> None:
        """Request one element for each reader that has none to come. They are on one event loop."""
        log = self.log
        post: Then | None = None
        with self.mutex:
            log.seal()
            goal, more, made = 0, 0, log.made
            for reader in readers:
                cursor = reader.cursor
                if reader.over:
                    continue
                if cursor.goal == cursor.at:
                    if cursor.goal != goal:
                        if more:
                            log.goals.move(goal, goal + 1, more)
                        goal, more = cursor.goal, 0
                    cursor.goal = goal + 1
                    more += 1
                if cursor.at < made and reader.delivery.note(reader):
                    post = reader.delivery.post
            if more:
                log.goals.move(goal, goal + 1, more)
            then = self._settle()
        if post is not None:
            post()
        if then is not None:
            then()

    def take(self, reader: Reader) -> tuple[list[Any], End | None]:
        """Take the requested elements of one reader, and the end if that is next. Then the reader has left."""
        nodes: list[Node | None] = []  # they are let go of behind the lock
        with self.mutex:
            taken, calls = self._take((reader,), nodes)
        do(calls)
        return taken[0][1:] if taken else ([], None)

    def take_next(self, reader: Reader) -> tuple[Sequence[Any], End | None]:
        """Request one element for a reader, unless it has, and `take` it.

        If it is not there, the reader hears when it is.
        """
        log, cursor, mutex = self.log, reader.cursor, self.mutex
        node = cursor.node  # it is let go of behind the lock
        items: Sequence[Any] = ()
        then: Then | None = None
        mutex.lock.acquire()  # as by ``with``, without the calls: each reader comes by here for each element
        try:
            mutex.owner, mutex.untouched = get_ident(), False
            ended = log.ended
            if not reader.over:
                goals, goal = log.goals, cursor.goal
                furthest, least = goals.greatest, log.places.least
                if log.tail.items:
                    log.seal()
                if goal == cursor.at:
                    goals.move(goal, goal + 1)
                    cursor.goal = goal + 1
                if not ended:  # else it is for `take` to say so
                    reader.is_due = False
                    if node is not None and node.behind is not None:
                        items = log.take(cursor)
                    # The demand upstream depends on these, and on others only where a reader is held up.
                    if goals.greatest > furthest or log.places.least > least or furthest > least + self.lag:
                        then = self._settle()
        finally:
            mutex.owner = 0
            mutex.lock.release()
            if mutex.put_off:
                mutex.call_put_off()
        if ended:
            return self.take(reader)
        del node
        if then is not None:
            then()
        return items, None

    def take_due(self, delivery: Delivery) -> tuple[list[ReaderChunk], bool]:
        """Take for the readers of one event loop that are due, some of them at a time; True if more of them are."""
        nodes: list[Node | None] = []  # as above
        with self.mutex:
            summoned = delivery.summon()
            more = delivery.posted
            taken, calls = self._take(summoned, nodes)
        for call in calls:
            call()
        return taken, more

    def put_off(self, delivery: Delivery) -> bool:
        """Queue taken elements for a turn. Return True if that has to be posted."""
        with self.mutex:
            return delivery.put_off()

    def _take(self, readers: Iterable[Reader], nodes: list[Node | None]) -> tuple[list[ReaderChunk], list[Then]]:
        """Take for some readers. The caller passes ``nodes``, which hold the freed lists until the lock is released."""
        log = self.log
        taken: list[ReaderChunk] = []
        calls: list[Then] = []
        for reader, items in log.take_all([each for each in readers if not each.over], nodes):
            cursor, end = reader.cursor, None
            reader.is_due = False
            if log.ended and cursor.at == log.made:
                self.heard = True
                end = log.error, log.traceback
                if log.error is not None:
                    reader.keep_open()
                calls += self._gone(reader)
            elif cursor.at < log.made and cursor.at < cursor.goal and reader.delivery.note(reader):
                calls.append(reader.delivery.post)
            if items or end is not None:
                taken.append((reader, items, end))
        if taken and not log.ended and (then := self._settle()) is not None:
            calls.append(then)
        return taken, calls

    def leave(self, reader: Reader) -> None:
        """Remove a reader; from any thread, also from a finalizer."""
        if self.mutex.is_mine:
            self.mutex.later(partial(self.leave, reader))
            return
        node = reader.cursor.node  # as above
        with self.mutex:
            gone = () if reader.over else tuple(self._gone(reader))
        del node
        do(gone)

    def evict(self, reader: Reader) -> Iterable[Then]:
        """Remove a reader, whatever it has requested; with the lock."""
        return () if reader.over else self._gone(reader)

    def _gone(self, reader: Reader) -> Iterable[Then]:
        cursor, delivery, log = reader.cursor, reader.delivery, self.log
        node, number = cursor.node, cursor.at
        reader.over = True
        log.leave(cursor, keeps=self._keeps_now)
        del delivery.readers[reader]
        if not delivery.readers:
            del self.deliveries[delivery.loop]
            yield delivery.unwatch
            if self.patience is not None and self.patience.loop is delivery.loop:
                yield from self._counts_no_more()
        if not log.readers:
            yield from self._deserted()
        elif (then := self._settle()) is not None:
            yield then
        yield from self._let_go(node, number)
        yield from self._released(reader)

    def _let_go(self, node: Node | None, number: int) -> Iterable[Then]:
        """Discard the elements from this place on that no reader has had, and none can get any more."""
        log = self.log
        until = log.places.least if log.readers or log.rest is not None else log.made
        if self._may_be_joined:
            until = min(until, log.head.first)
        if unread := log.unread(node, number, until):
            yield partial(self._discard, unread)

    def _unheard(self) -> Iterable[Then]:
        """Report the failure if no reader has got it, and none can any more."""
        error = self.log.let_go()
        if error is not None and not self.heard:
            yield partial(self._drop, error)

    def _drop(self, error: BaseException) -> None:
        self._hooks.copy().run(drop_error, error)

    def _discard(self, items: list[Any]) -> None:
        self._hooks.copy().run(discard, items)

    def forget(self, first: int) -> Iterable[Then]:
        """Let the replay begin with this element, with the lock. The caller holds the log's head."""
        head = self.log.head
        self.log.forget(first)
        return self._let_go(head, head.first)

    def _counts(self, evict_after: float | None) -> Then | None:
        """Measure how long readers have to wait, if one has to."""
        counting = self.patience is not None and not self.patience.loop.is_closed()
        if counting or not self.log.is_held_up(self.lag):
            return None
        patience = self.patience = Patience.of(self, evict_after)
        return None if patience is None else patience.begin

    def _counts_no_more(self) -> Iterable[Then]:
        patience, self.patience = self.patience, None
        if patience is not None:
            yield patience.stop

    @property
    def everybody(self) -> list[Reader]:
        """All readers; to be called with the lock."""
        return [reader for delivery in self.deliveries.values() for reader in delivery.readers]

    def look(self) -> SharedSnapshot:
        """Look at how far the readers are; from any thread, and from a finalizer in the middle of a change."""
        with nullcontext() if self.mutex.is_mine else self.mutex:
            made, kept = self.log.made, self.log.kept
            places = [(each.cursor.at, each.cursor.goal) for each in self.everybody]
        there = (SubscriberSnapshot(made - at, subtract_demand(goal, at)) for at, goal in places)
        return SharedSnapshot(made, kept, tuple(there))

    # -- the writer

    def _put(self, items: list[Any]) -> Iterable[Delivery]:
        """Add a list. Return the deliveries to notify. The caller holds the log's head until the lock is released."""
        self.log.put(items)
        return self._told()

    def _told(self) -> Iterable[Delivery]:
        """Notify the readers that the log has grown or ended. Return the deliveries to post."""
        told: list[Delivery] = []
        ended = self.log.ended
        for each in self.deliveries.values():
            # On a closed loop the turn does not come any more. To post it again counts its readers as gone.
            if each.posted and not (ended and each.loop.is_closed()):
                each.news = True
                continue
            for cursor in each.readers.values():
                if cursor.goal > cursor.at or ended:
                    each.posted = each.news = True
                    told.append(each)
                    break
        return told

    def _end(self, error: BaseException | None) -> Iterable[Then]:
        """Add the end, and notify the readers."""
        self.log.end(error)
        yield from self._counts_no_more()
        for delivery in self._told():
            yield delivery.post


def post(deliveries: Iterable[Delivery]) -> None:
    """Schedule the callbacks of several event loops."""
    for delivery in deliveries:
        delivery.post()


def do(calls: Iterable[Then]) -> None:
    """Do what was to be done when the lock has been released."""
    for call in calls:
        call()
