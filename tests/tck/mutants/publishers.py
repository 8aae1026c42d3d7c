"""Broken publishers."""

from __future__ import annotations

import asyncio
import threading
import weakref
from functools import partial
from typing import Any

from reactive_aio.spec import UNBOUNDED
from tests.tck.where import patient

from .clock import CLOCK, LONG
from .correct import GoodPublisher, GoodSubscription, Idle, soon
from .meeting import meet_inside
from .mutant import publisher

AFTER_CANCEL = ("spec306", "spec307", "spec312")
"""The tests that cancel when nothing is under way, behind which no signal comes."""


@publisher("1.1")
class OneTooMany(GoodSubscription):
    """delivers one element more than was requested"""

    def request(self, n: int) -> None:
        super().request(n + 1 if n > 0 else n)


@publisher("1.2")
class WaitsForTheRest(GoodSubscription):
    """completes only when no demand is left"""

    def complete(self) -> None:
        if not self.demand:
            super().complete()


@publisher("1.3", environment=patient(threads=True, silence=0.002))
class TwoThreads(GoodSubscription):
    """delivers on two threads at once"""

    def deliver(self) -> None:
        if self.delivering or self.demand < 2 or len(self.items) < 2:
            super().deliver()
            return
        pair, self.items = self.items[:2], self.items[2:]
        self.demand -= 2
        self.delivering = True
        meet_inside("on_next", *(partial(self.subscriber.on_next, item) for item in pair))
        self.delivering = False
        if not self.over:
            self.deliver()


@publisher("1.4")
class SwallowsTheFailure(GoodPublisher):
    """completes where it failed"""

    def start(self, subscriber: Any) -> None:
        self.error = None
        super().start(subscriber)


@publisher("1.5", also=("spec102",))
class NeverEnds(GoodSubscription):
    """gives all elements and no end"""

    def complete(self) -> None:
        """Never."""


@publisher("1.5", fails=("theEndNeedsNoFurtherDemand",))
class WantsOneMore(GoodSubscription):
    """completes only when more is requested than there is"""

    def request(self, n: int) -> None:
        super().request(n)
        if self.demand and not self.items and not self.over:
            super().complete()

    def complete(self) -> None:
        """Not yet."""


@publisher("1.5", fails=("spec105_emptyStream",))
class EndsByAnElement(GoodPublisher):
    """gives a stream without elements one that stands for the end"""

    def start(self, subscriber: Any) -> None:
        if self.elements or self.error is not None:
            super().start(subscriber)
        else:
            subscriber.on_subscribe(GoodSubscription(self, subscriber, [""]))


@publisher("1.6")
class LivesOn(GoodSubscription):
    """completes again when it is asked for more after the end"""

    done: Any = None

    def complete(self) -> None:
        self.done = self.subscriber
        super().complete()

    def request(self, n: int) -> None:
        if self.done is not None:
            self.done.on_complete()
        else:
            super().request(n)


@publisher("1.6")
class FailsAgain(GoodSubscription):
    """fails again when it is asked for more after on_error"""

    failed: Any = None

    def fail(self, error: BaseException) -> None:
        self.failed = self.subscriber, error
        super().fail(error)

    def request(self, n: int) -> None:
        if self.failed is None:
            super().request(n)
        else:
            subscriber, error = self.failed
            subscriber.on_error(error)


@publisher("1.6")
class RemembersTheServed(GoodSubscription):
    """refers to the subscriber after the end"""

    kept: Any = None

    def complete(self) -> None:
        self.kept = self.subscriber
        super().complete()


@publisher("1.7", fails=("spec107_mustNotEmitFurtherSignalsOnceOnCompleteHas",))
class CompletesTwice(GoodSubscription):
    """signals on_complete twice"""

    def complete(self) -> None:
        subscriber = self.subscriber
        super().complete()
        subscriber.on_complete()


@publisher("1.7", fails=("spec107_mustNotEmitFurtherSignalsOnceOnErrorHas",))
class FailsThenCompletes(GoodSubscription):
    """signals on_complete after on_error"""

    def fail(self, error: BaseException) -> None:
        subscriber = self.subscriber
        super().fail(error)
        subscriber.on_complete()


@publisher("1.8", also=AFTER_CANCEL)
class SaysGoodbye(GoodSubscription):
    """answers cancel by on_complete"""

    def cancel(self) -> None:
        subscriber = self.subscriber
        super().cancel()
        if subscriber is not None:
            subscriber.on_complete()


@publisher("1.9", fails=("spec109_mayReject", "spec109_subscribeShouldNotThrowNonFatal"))
class RejectsWithoutSubscription(GoodPublisher):
    """signals on_error without on_subscribe"""

    def start(self, subscriber: Any) -> None:
        if self.error is not None:
            subscriber.on_error(self.error)
        else:
            super().start(subscriber)


@publisher("1.9", fails=("spec109_mayReject", "spec109_subscribeShouldNotThrowNonFatal"))
class RaisesFromSubscribe(GoodPublisher):
    """signals its failure and raises it from subscribe as well"""

    def start(self, subscriber: Any) -> None:
        super().start(subscriber)
        if self.error is not None:
            raise self.error


@publisher("1.9", fails=("spec109_subscribeThrowNPE",))
class AcceptsNobody(GoodPublisher):
    """takes subscribe(None) without a word"""

    def subscribe(self, subscriber: Any) -> None:
        if subscriber is not None:
            super().subscribe(subscriber)


@publisher("1.9", fails=("spec109_mustIssue",))
class SpeaksFirst(GoodPublisher):
    """signals an element before on_subscribe, when it has three"""

    def start(self, subscriber: Any) -> None:
        if self.elements != 3:
            super().start(subscriber)
            return
        subscriber.on_next(0)
        subscriber.on_subscribe(GoodSubscription(self, subscriber, [1, 2]))


@publisher("1.10")
class ServesTwo(GoodPublisher):
    """ignores the third subscriber, and those that follow"""

    def start(self, subscriber: Any) -> None:
        if self.subscribed <= 2:
            super().start(subscriber)


class ForAll(GoodSubscription):
    def deliver(self) -> None:
        self.subscriber = self.publisher.latest()
        super().deliver()


@publisher("1.10", also=("spec111_registered", "spec111_multicast"))
class ServesTheLatest(GoodPublisher):
    """gives the latest subscriber the elements that any of its subscribers requests"""

    latest: Any = None

    def start(self, subscriber: Any) -> None:
        self.subscription = ForAll
        self.latest = weakref.ref(subscriber)
        super().start(subscriber)


@publisher("1.11")
class ServesOne(GoodPublisher):
    """rejects the second subscriber"""

    def start(self, subscriber: Any) -> None:
        if self.subscribed == 1:
            super().start(subscriber)
        else:
            subscriber.on_subscribe(Idle())
            subscriber.on_error(RuntimeError("one subscriber only"))


@publisher("1.11", fails=("spec111_multicast",))
class TellsEachAnother(GoodPublisher):
    """gives the second subscriber other elements than the first"""

    def start(self, subscriber: Any) -> None:
        first = self.subscribed * 10
        subscription = GoodSubscription(self, subscriber, list(range(first, first + self.elements)))
        subscriber.on_subscribe(subscription)
        if self.error is not None:
            subscription.fail(self.error)
        elif not self.elements and not subscription.over:
            subscription.complete()


@publisher("2.12")
class SubscribesTwice(GoodPublisher):
    """calls on_subscribe twice"""

    def start(self, subscriber: Any) -> None:
        super().start(subscriber)
        if self.error is None and self.elements == 3:
            subscriber.on_subscribe(Idle())


@publisher("2.13")
class FailsWithNothing(GoodPublisher):
    """signals on_error(None)"""

    def start(self, subscriber: Any) -> None:
        if self.error is None:
            super().start(subscriber)
            return
        subscriber.on_subscribe(Idle())
        try:
            subscriber.on_error(None)
        except TypeError:
            return


@publisher("3.2")
class DeafInside(GoodSubscription):
    """ignores a request from inside on_next"""

    def request(self, n: int) -> None:
        if not self.delivering:
            super().request(n)


@publisher("3.3")
class Recurses(GoodSubscription):
    """delivers from inside the request that on_next makes"""

    def deliver(self) -> None:
        self.delivering = False
        super().deliver()


@publisher("3.4")
class SlowToRequest(GoodSubscription):
    """blocks in request"""

    def request(self, n: int) -> None:
        CLOCK.take(LONG)
        super().request(n)


@publisher("3.5")
class SlowToCancel(GoodSubscription):
    """blocks in cancel"""

    def cancel(self) -> None:
        CLOCK.take(LONG)
        super().cancel()


@publisher("3.5")
class BoundToItsThread(GoodSubscription):
    """raises when it is cancelled from another thread"""

    def cancel(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("wrong thread")
        super().cancel()


@publisher("3.6")
class Revives(GoodSubscription):
    """delivers again when it is asked for more after cancel"""

    back: Any = None

    def cancel(self) -> None:
        if self.subscriber is not None:
            self.back = weakref.ref(self.subscriber)
        super().cancel()

    def request(self, n: int) -> None:
        if self.back is not None:
            self.subscriber, self.over = self.back(), False
        super().request(n)


class HasTheLastWord(GoodSubscription):
    """Says something in the turn after cancel."""

    loop: Any = None

    def request(self, n: int) -> None:
        self.loop = asyncio.get_running_loop()
        super().request(n)

    def cancel(self) -> None:
        subscriber = self.subscriber
        super().cancel()
        if subscriber is not None and self.loop is not None:
            self.loop.call_soon_threadsafe(self.say, subscriber)

    def say(self, subscriber: Any) -> None:
        """Say it."""


@publisher("3.6", fails=AFTER_CANCEL)
class HasOneMore(HasTheLastWord):
    """delivers an element that nobody has requested in the turn after cancel"""

    def say(self, subscriber: Any) -> None:
        if not self.demand:
            subscriber.on_next(-1)


@publisher("3.7", fails=AFTER_CANCEL, also=("spec108",))
class TakesACancelForAFailure(HasTheLastWord):
    """signals on_error in the turn after cancel"""

    def say(self, subscriber: Any) -> None:
        subscriber.on_error(OSError("cancelled"))


@publisher("3.7")
class CancelsOnce(GoodSubscription):
    """raises when it is cancelled again"""

    cancels: int = 0

    def cancel(self) -> None:
        self.cancels += 1
        if self.cancels > 1:
            raise RuntimeError("cancelled already")
        super().cancel()


@publisher("3.8")
class ForgetsDemand(GoodSubscription):
    """takes a request for the whole demand, in place of what was left of the one before"""

    def request(self, n: int) -> None:
        if 0 < n < 100 and self.demand < 100 and not self.over:
            self.demand = n
            soon(self.deliver)
        else:
            super().request(n)


@publisher("3.9", fails=("required_spec309",))
class TakesAnything(GoodSubscription):
    """ignores request(0) and request(-1)"""

    def request(self, n: int) -> None:
        if n > 0:
            super().request(n)


@publisher("3.9", fails=("required_spec309",))
class RaisesOnBadDemand(GoodSubscription):
    """raises from request(0) and request(-1) and signals nothing"""

    def request(self, n: int) -> None:
        if n <= 0 and not self.over:
            raise ValueError("§3.9")
        super().request(n)


@publisher("3.9", fails=("required_spec309",))
class BlamesTheRuntime(GoodSubscription):
    """answers request(0) and request(-1) by another error than ValueError"""

    def request(self, n: int) -> None:
        if n <= 0 and not self.over:
            self.fail(RuntimeError("§3.9"))
        else:
            super().request(n)


@publisher("3.9", fails=("optional_spec309",))
class SaysNoMore(GoodSubscription):
    """answers request(-1) by a ValueError that does not cite the rule"""

    def request(self, n: int) -> None:
        if n <= 0 and not self.over:
            self.fail(ValueError("no"))
        else:
            super().request(n)


@publisher("3.12")
class FinishesFirst(GoodSubscription):
    """delivers all that was requested before it looks whether it was cancelled"""

    def deliver(self) -> None:
        if self.delivering:
            return
        self.delivering = True
        subscriber = self.subscriber
        while self.demand and self.items:
            self.demand -= self.demand != UNBOUNDED
            subscriber.on_next(self.items.pop(0))
        self.delivering = False
        if not self.items and not self.over:
            self.complete()


@publisher("3.13")
class RemembersTheCancelled(GoodSubscription):
    """refers to the subscriber after cancel"""

    kept: Any = None

    def cancel(self) -> None:
        self.kept = self.subscriber or self.kept
        super().cancel()


@publisher("3.13", also=("spec106",))
class RemembersEverybody(GoodPublisher):
    """refers to all its subscribers for as long as it lives itself"""

    all: Any = ()

    def start(self, subscriber: Any) -> None:
        self.all = (*self.all, subscriber)
        # By another publisher, so that the subscription does not keep this one alive.
        GoodPublisher(self.elements, self.error).start(subscriber)


class Shutting(GoodSubscription):
    def cancel(self) -> None:
        self.publisher.shut = True
        super().cancel()


@publisher("3.14")
class StaysShut(GoodPublisher):
    """says nothing to subscribers that come after one has cancelled"""

    shut: bool = False

    def start(self, subscriber: Any) -> None:
        self.subscription = Shutting
        if self.shut:
            subscriber.on_subscribe(Idle())
        else:
            super().start(subscriber)


@publisher("3.15")
class RaisesFromCancel(GoodSubscription):
    """raises from cancel what its cleanup raises"""

    def cancel(self) -> None:
        was_over = self.over
        super().cancel()
        if not was_over and threading.current_thread() is threading.main_thread():
            raise OSError("cleanup failed")


@publisher("3.15")
class NotBegun(GoodSubscription):
    """raises when it is cancelled before anything was requested"""

    begun: bool = False

    def request(self, n: int) -> None:
        self.begun = True
        super().request(n)

    def cancel(self) -> None:
        if not self.begun:
            raise AttributeError("items")
        super().cancel()


@publisher("3.16")
class RaisesFromRequest(GoodSubscription):
    """raises from request when it is asked for far more than there is"""

    def request(self, n: int) -> None:
        beyond = n - len(self.items)
        was_over = self.over
        super().request(n)
        if 1 < beyond < 100 and not was_over:
            raise RuntimeError("not so many")


@publisher("3.17")
class CountsInThirtyTwoBits(GoodSubscription):
    """fails when demand reaches 2**31"""

    def request(self, n: int) -> None:
        if self.demand + n >= 2**31 and not self.over:
            self.fail(OverflowError("too much demand"))
        else:
            super().request(n)


@publisher("3.17", fails=("spec317_mustNotSignalOnError",))
class Overflows(GoodSubscription):
    """fails when demand exceeds 2**63-1"""

    def request(self, n: int) -> None:
        if self.demand + n > UNBOUNDED and not self.over:
            self.fail(OverflowError("too much demand"))
        else:
            super().request(n)
