"""Broken subscribers, each for the whitebox and the blackbox verification."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from .clock import CLOCK, LONG
from .correct import GoodSubscriber, soon
from .meeting import meet_inside
from .mutant import subscriber


@subscriber("2.1", also_whitebox=("HappyPath",))
class NeverRequests(GoodSubscriber):
    """takes a subscription and requests nothing"""

    def request(self, n: int) -> None:
        """Nothing."""


@subscriber("2.1", roles=("whitebox",), also=("HappyPath", "spec308"))
class PassesOnOtherElements(GoodSubscriber):
    """tells its probe of other elements than it was given"""

    def on_next(self, item: Any) -> None:
        super().on_next(None if item is None else str(item))


@subscriber("2.2")
class SlowToTake(GoodSubscriber):
    """blocks in on_next"""

    def on_next(self, item: Any) -> None:
        if item is not None:
            CLOCK.take(LONG)
        super().on_next(item)


@subscriber("2.3", fails=("InOnComplete",))
class CancelsInOnComplete(GoodSubscriber):
    """cancels in on_complete"""

    def on_complete(self) -> None:
        subscription = self.subscription
        super().on_complete()
        if subscription is not None:
            subscription.cancel()


@subscriber("2.3", fails=("InOnError",))
class RequestsInOnError(GoodSubscriber):
    """requests in on_error"""

    def on_error(self, error: BaseException) -> None:
        subscription, was_over = self.subscription, self.over
        super().on_error(error)
        if not was_over:
            subscription.request(1)


@subscriber("2.4")
class RequestsAfterTheEnd(GoodSubscriber):
    """requests from a callback that was scheduled in on_complete"""

    def on_complete(self) -> None:
        subscription, was_over = self.subscription, self.over
        super().on_complete()
        if not was_over:
            soon(subscription.request, 1)


@subscriber("2.5")
class TakesTheNewcomer(GoodSubscriber):
    """goes over to a second subscription"""

    def on_subscribe(self, subscription: Any) -> None:
        if self.subscription is not None and subscription is not None:
            self.subscription = subscription
        else:
            super().on_subscribe(subscription)


@subscriber("2.5")
class CancelsTheFirst(GoodSubscriber):
    """cancels both subscriptions when a second comes"""

    def on_subscribe(self, subscription: Any) -> None:
        if self.subscription is not None and subscription is not None:
            self.subscription.cancel()
        super().on_subscribe(subscription)


@subscriber("2.6")
class NeverCancels(GoodSubscriber):
    """forgets to cancel when it needs no more"""

    def cancel(self) -> None:
        """Nothing."""


@subscriber("2.7", also=("spec301",))
class RequestsOnTwoThreads(GoodSubscriber):
    """requests on two threads at once"""

    def request(self, n: int) -> None:
        if self.over:
            return
        meet_inside("request", *[partial(self.subscription.request, n)] * 2)


@subscriber("2.8")
class ExpectsNoStragglers(GoodSubscriber):
    """raises for an element that comes after cancel"""

    def on_next(self, item: Any) -> None:
        if self.over:
            raise RuntimeError("cancelled already")
        super().on_next(item)


@subscriber("2.9", also=("spec311",))
class RefusesTheEnd(GoodSubscriber):
    """raises from on_complete"""

    def on_complete(self) -> None:
        was_over = self.over
        super().on_complete()
        if not was_over:
            raise RuntimeError("so soon")


@subscriber("2.9", fails=("OnCompleteSignalWithoutPreceding",), roles=("whitebox",))
class RefusesAnEarlyEnd(GoodSubscriber):
    """raises from on_complete when it has requested nothing"""

    asked: bool = False

    def request(self, n: int) -> None:
        self.asked = True
        super().request(n)

    def on_complete(self) -> None:
        super().on_complete()
        if not self.asked:
            raise RuntimeError("so soon")


@subscriber("2.9", roles=("whitebox",), also=("HappyPath",))
class KeepsTheEndToItself(GoodSubscriber):
    """does not tell its probe of the end"""

    def on_complete(self) -> None:
        self.over, self.subscription = True, None


@subscriber("2.10", roles=("whitebox",))
class CopiesTheFailure(GoodSubscriber):
    """tells its probe of a copy of the error that it was given"""

    def on_error(self, error: Any) -> None:
        super().on_error(None if error is None else type(error)(*error.args))


@subscriber("2.10", also=("spec311", "spec316"))
class RefusesTheFailure(GoodSubscriber):
    """raises from on_error"""

    def on_error(self, error: BaseException) -> None:
        was_over = self.over
        super().on_error(error)
        if not was_over:
            raise RuntimeError("not me")


@subscriber("2.12")
class EqualToAll(GoodSubscriber):
    """is equal to every other subscriber of its class"""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EqualToAll)

    def __hash__(self) -> int:
        return 1


@subscriber("2.13", fails=("mustThrowNullPointerException",))
class TakesNone(GoodSubscriber):
    """takes None for a subscription, an element and an error"""

    def on_subscribe(self, subscription: Any) -> None:
        if subscription is not None:
            super().on_subscribe(subscription)

    def on_next(self, item: Any) -> None:
        super().on_next(0 if item is None else item)

    def on_error(self, error: Any) -> None:
        super().on_error(OSError("none") if error is None else error)


@subscriber("2.13", fails=("failingOnSignalInvocation",), also=("spec308", "spec310"))
class StumblesOverTheSecond(GoodSubscriber):
    """raises from on_next for its second element"""

    def on_next(self, item: Any) -> None:
        super().on_next(item)
        if self.received == 2 and not self.over:
            raise RuntimeError("one is enough")


@subscriber("3.1")
class RequestsElsewhere(GoodSubscriber):
    """requests on a thread of its own, away from the event loop"""

    def request(self, n: int) -> None:
        if not self.over:
            thread = threading.Thread(target=self.subscription.request, args=(n,))
            thread.start()
            thread.join()


@subscriber("3.8", roles=("whitebox",))
class AsksOnlyWhenServed(GoodSubscriber):
    """forgets a demand that comes while another is not yet met"""

    open: int = 0

    def trigger_request(self, n: int) -> None:
        if self.open <= 0:
            self.open = n
            super().trigger_request(n)

    def on_next(self, item: Any) -> None:
        self.open -= 1
        super().on_next(item)


@subscriber("3.8", roles=("blackbox",), also=("failingOnSignalInvocation", "spec310"))
class CountsOnlyTheFirstRequest(GoodSubscriber):
    """takes no element beyond its first request"""

    def on_next(self, item: Any) -> None:
        super().on_next(item)
        if self.received > 1 and not self.over:
            raise RuntimeError("only one was requested")


class Asking(GoodSubscriber):
    """Knows whether it is inside its own request."""

    asking: bool = False

    def request(self, n: int) -> None:
        self.asking = True
        try:
            super().request(n)
        finally:
            self.asking = False


@subscriber("3.10")
class NotReadyForElements(Asking):
    """raises when an element comes from inside its request"""

    def on_next(self, item: Any) -> None:
        if self.asking:
            raise RuntimeError("not yet")
        super().on_next(item)


@subscriber("3.11")
class NotReadyForTheEnd(Asking):
    """raises when on_complete comes from inside its request"""

    def on_complete(self) -> None:
        super().on_complete()
        if self.asking:
            raise RuntimeError("not yet")


@subscriber("3.14")
class ExpectsNoShutdown(GoodSubscriber):
    """raises when the publisher ends after cancel"""

    def on_complete(self) -> None:
        if self.over:
            raise RuntimeError("cancelled already")
        super().on_complete()


@subscriber("3.15")
class ExpectsNoLateFailure(GoodSubscriber):
    """raises when on_error comes from inside its cancel"""

    def on_error(self, error: BaseException) -> None:
        if self.over:
            raise RuntimeError("cancelled already")
        super().on_error(error)


@subscriber("3.16", also=("spec311",))
class NotReadyForTheFailure(Asking):
    """raises when on_error comes from inside its request"""

    def on_error(self, error: BaseException) -> None:
        super().on_error(error)
        if self.asking:
            raise RuntimeError("not yet")
