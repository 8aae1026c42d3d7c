"""A publisher that a test drives by hand, and that can break the rules on request."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from attrs import define, field

from ..errors import ProtocolViolation
from ..spec import Subscriber, add_demand, demand_error, quote, subtract_demand
from .snapshot import shown

T = TypeVar("T")


class Breach(enum.Enum):
    """A rule that a TestPublisher breaks on request."""

    OVERFLOW = "sends elements that were not requested (rule 1.1)"
    AFTER_TERMINAL = "signals after on_complete or on_error (rule 1.7)"
    DEFER_CANCEL = "goes on after cancel until the test calls finish_cancel() (rule 1.8 allows it for a while)"
    NONE = "sends None as an element or an error (rule 2.13)"
    FOREIGN_THREAD = "signals from another thread than that of the loop (allowed, as long as they come in order)"


@define(eq=False)
class _Link(Generic[T]):
    """One subscription to a TestPublisher."""

    publisher: TestPublisher[T]
    subscriber: Subscriber[T]
    requested: int = field(init=False, default=0)
    demand: int = field(init=False, default=0)
    cancels: int = field(init=False, default=0)
    over: bool = field(init=False, default=False)

    def request(self, n: int) -> None:
        wrong = demand_error(n)
        if self.over or (self.cancels and not self.deferring):
            return
        if wrong is not None:
            self.over = True
            self.subscriber.on_error(wrong)
            return
        self.requested = add_demand(self.requested, n)
        self.demand = add_demand(self.demand, n)

    def cancel(self) -> None:
        self.cancels += 1

    @property
    def deferring(self) -> bool:
        return self.publisher.breaks(Breach.DEFER_CANCEL)

    @property
    def open(self) -> bool:
        """Whether signals may be sent, by the rules or by the allowed breach."""
        stopped = self.cancels > 0 and not self.deferring
        return not stopped and (not self.over or self.publisher.breaks(Breach.AFTER_TERMINAL))


class TestPublisher(Generic[T]):
    """A publisher that a test drives by calls, and that records requests and cancels.

    It keeps the rules, and fails a test that would make it break one. To test a breach, name it:
    ``TestPublisher(Breach.OVERFLOW)``. So a test can show that an operator is safe when the other side breaks the
    rules. It has any number of subscribers and sends to all that have not ended.
    (Reactor: ``TestPublisher``, ``createNoncompliant``.)

    >>> from reactive_aio import Flow
    >>> from reactive_aio.testing import TestPublisher, probe, run_virtual
    >>> async def main():
    ...     source = TestPublisher()
    ...     async with probe(Flow.from_publisher(source).take(2)) as p:
    ...         await p.request(5)
    ...         await p.expect_no_event()
    ...         source.assert_requested(2)
    ...         source.next("a", "b")
    ...         await p.expect_next("a", "b")
    ...         await p.expect_complete()
    ...         source.assert_cancelled()
    >>> run_virtual(main())
    """

    __test__ = False  # for pytest, which collects classes of such a name

    def __init__(self, *breaches: Breach) -> None:
        self.breaches: frozenset[Breach] = frozenset(breaches)
        self._links: list[_Link[T]] = []

    def breaks(self, breach: Breach) -> bool:
        """Return whether the publisher was made to break a rule."""
        return breach in self.breaches

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Take a subscriber."""
        if subscriber is None:  # pyright: ignore[reportUnnecessaryComparison] - a test may be about it
            raise TypeError(f"subscribe(None): {quote('1.9')}")
        link = _Link(self, subscriber)
        self._links.append(link)
        self._send(partial(subscriber.on_subscribe, link))

    # -- what a test does

    def next(self, *items: T) -> None:
        """Send elements to every subscriber. A subscriber that cancels at an element does not get the next ones."""
        for link in self._targets("next"):
            for item in items:
                if link.open:
                    self._next(link, item)

    def _next(self, link: _Link[T], item: T) -> None:
        if item is None and not self.breaks(Breach.NONE):
            raise TypeError(f"next(None): {quote('2.13')}. TestPublisher(Breach.NONE) allows it")
        if not link.demand and not link.over and not self.breaks(Breach.OVERFLOW):
            raise ProtocolViolation(
                f"next({item!r}) with no demand left of {shown(link.requested)}: {quote('1.1')}. "
                "TestPublisher(Breach.OVERFLOW) allows it"
            )
        link.demand = subtract_demand(link.demand, 1)
        self._send(partial(link.subscriber.on_next, item))

    def complete(self) -> None:
        """End the stream of every subscriber."""
        for link in self._targets("complete"):
            link.over = True
            self._send(link.subscriber.on_complete)

    def error(self, error: BaseException) -> None:
        """Fail the stream of every subscriber."""
        if error is None and not self.breaks(Breach.NONE):  # pyright: ignore[reportUnnecessaryComparison] - as above
            raise TypeError(f"error(None): {quote('2.13')}. TestPublisher(Breach.NONE) allows it")
        for link in self._targets("error"):
            link.over = True
            self._send(partial(link.subscriber.on_error, error))

    def finish_cancel(self) -> None:
        """Stop signalling to those who have cancelled, with ``Breach.DEFER_CANCEL``."""
        self._links = [link for link in self._links if not link.cancels]

    def _targets(self, signal: str) -> list[_Link[T]]:
        targets = [link for link in self._links if link.open]
        if not targets:
            raise ProtocolViolation(f"{signal} has no subscriber that can receive it: {self}")
        return targets

    def _send(self, signal: Callable[[], Any]) -> None:
        """Send one signal, on this thread or on another. An exception of the subscriber is raised here."""
        if not self.breaks(Breach.FOREIGN_THREAD):
            signal()
            return
        raised: list[BaseException] = []

        def call() -> None:
            try:
                signal()
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=call, name="TestPublisher")
        thread.start()
        thread.join()
        if raised:
            raise raised[0]

    # -- what a test expects

    @property
    def requested(self) -> int:
        """The sum of what the latest subscriber has requested."""
        return self._latest.requested

    @property
    def demand(self) -> int:
        """The number of elements that the latest subscriber has requested and not got."""
        return self._latest.demand

    @property
    def _latest(self) -> _Link[T]:
        if not self._links:
            raise AssertionError("nobody has subscribed to the TestPublisher")
        return self._links[-1]

    def assert_requested(self, n: int) -> None:
        """Check the sum of what the latest subscriber has requested so far."""
        self._check(n == self.requested, f"expected a sum of {shown(n)} to have been requested")

    def assert_cancelled(self, times: int = 1) -> None:
        """Check that the latest subscriber has cancelled exactly once."""
        self._check(times == self._latest.cancels, f"expected {times} calls of cancel")

    def assert_not_cancelled(self) -> None:
        """Check that the latest subscriber has not cancelled."""
        self.assert_cancelled(0)

    def assert_subscribers(self, n: int) -> None:
        """Check the number of subscribers that have neither cancelled nor got the end."""
        live = sum(not link.over and not link.cancels for link in self._links)
        self._check(n == live, f"expected {n} live subscribers, not {live}")

    def _check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise AssertionError(f"{otherwise}: {self}")

    def __repr__(self) -> str:
        links = [
            f"requested {shown(link.requested)}, demand {shown(link.demand)}, cancelled {link.cancels} times"
            + (", ended" if link.over else "")
            for link in self._links
        ]
        return f"<TestPublisher {'; '.join(links) or 'without subscribers'}>"
