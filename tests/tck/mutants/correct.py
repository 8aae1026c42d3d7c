"""A publisher, a subscriber and a processor that keep all rules, written as openly as possible; the mutants derive from them."""

from __future__ import annotations

import asyncio
from typing import Any

from attrs import define, field

from reactive_aio.spec import UNBOUNDED, add_demand
from reactive_aio.tck import WhiteboxProbe


@define(eq=False)
class GoodSubscription:
    """Delivers a list under demand, in a loop that no signal re-enters."""

    publisher: Any
    subscriber: Any
    items: list[Any]
    demand: int = field(init=False, default=0)
    over: bool = field(init=False, default=False)
    delivering: bool = field(init=False, default=False)

    def request(self, n: int) -> None:
        if self.over:
            return
        if n <= 0:
            self.fail(ValueError(f"§3.9 request({n})"))
            return
        self.demand = add_demand(self.demand, n)
        self.deliver()

    def cancel(self) -> None:
        self.over = True
        self.subscriber = None

    def deliver(self) -> None:
        if self.delivering:
            return
        self.delivering = True
        while self.demand and self.items and not self.over:
            if self.demand != UNBOUNDED:
                self.demand -= 1
            self.subscriber.on_next(self.items.pop(0))
        self.delivering = False
        if not self.items and not self.over:
            self.complete()

    def complete(self) -> None:
        subscriber = self.end()
        subscriber.on_complete()

    def fail(self, error: BaseException) -> None:
        subscriber = self.end()
        subscriber.on_error(error)

    def end(self) -> Any:
        subscriber, self.subscriber = self.subscriber, None
        self.over = True
        return subscriber


@define(eq=False)
class GoodPublisher:
    elements: int
    error: BaseException | None = None
    subscription: Any = GoodSubscription
    subscribed: int = field(init=False, default=0)

    def subscribe(self, subscriber: Any) -> None:
        if subscriber is None:
            raise TypeError("subscribe(None)")
        self.subscribed += 1
        self.start(subscriber)

    def start(self, subscriber: Any) -> None:
        subscription = self.subscription(self, subscriber, list(range(self.elements)))
        subscriber.on_subscribe(subscription)
        if subscription.over:
            return
        if self.error is not None:
            subscription.fail(self.error)
        elif not self.elements:
            subscription.complete()


@define(eq=False)
class GoodSubscriber:
    """Asks for one element after another; where it has strings, only when told to, and it stops after ``needed``."""

    probe: WhiteboxProbe | None = None
    needed: int | None = None
    subscription: Any = field(init=False, default=None)
    received: int = field(init=False, default=0)
    over: bool = field(init=False, default=False)

    def on_subscribe(self, subscription: Any) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None)")
        if self.subscription is not None or self.over:
            subscription.cancel()
            return
        self.subscription = subscription
        if self.probe is not None:
            self.probe.register_on_subscribe(self)
        else:
            self.request(1)

    def on_next(self, item: Any) -> None:
        if item is None:
            raise TypeError("on_next(None)")
        if self.over:
            return
        self.received += 1
        if self.probe is not None:
            self.probe.register_on_next(item)
        else:
            self.go_on()

    def go_on(self) -> None:
        if self.needed is not None and self.received >= self.needed:
            self.cancel()
        else:
            self.request(1)

    def on_error(self, error: Any) -> None:
        if error is None:
            raise TypeError("on_error(None)")
        self.over, self.subscription = True, None
        if self.probe is not None:
            self.probe.register_on_error(error)

    def on_complete(self) -> None:
        self.over, self.subscription = True, None
        if self.probe is not None:
            self.probe.register_on_complete()

    def request(self, n: int) -> None:
        if not self.over:
            self.subscription.request(n)

    def cancel(self) -> None:
        if not self.over:
            self.over = True
            self.subscription.cancel()

    # the strings

    def trigger_request(self, n: int) -> None:
        self.request(n)

    def trigger_cancel(self) -> None:
        self.cancel()


@define(eq=False)
class GoodProcessor:
    """Passes everything on, for one subscriber; demand that comes early waits for upstream."""

    upstream: Any = field(init=False, default=None)
    downstream: Any = field(init=False, default=None)
    demand: int = field(init=False, default=0)
    over: bool = field(init=False, default=False)
    end: Any = field(init=False, default=None)
    """How upstream has ended, for a subscriber that comes later."""
    ended: bool = field(init=False, default=False)

    def subscribe(self, subscriber: Any) -> None:
        if subscriber is None:
            raise TypeError("subscribe(None)")
        if self.downstream is not None or self.over:
            subscriber.on_subscribe(Idle())
            subscriber.on_error(RuntimeError("one subscriber only"))
            return
        self.downstream = subscriber
        subscriber.on_subscribe(self)
        if self.ended and not self.over:
            self.finish()

    # the subscriber of upstream

    def on_subscribe(self, subscription: Any) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None)")
        if self.upstream is not None or self.over:
            subscription.cancel()
            return
        self.upstream = subscription
        demand, self.demand = self.demand, 0
        if demand:
            subscription.request(demand)

    def on_next(self, item: Any) -> None:
        if item is None:
            raise TypeError("on_next(None)")
        if not self.over and self.downstream is not None:
            self.downstream.on_next(item)

    def on_error(self, error: Any) -> None:
        if error is None:
            raise TypeError("on_error(None)")
        self.upstream_ended(error)

    def on_complete(self) -> None:
        self.upstream_ended(None)

    def upstream_ended(self, error: BaseException | None) -> None:
        self.end, self.ended, self.upstream = error, True, None
        if self.downstream is not None and not self.over:
            self.finish()

    def finish(self) -> None:
        downstream, self.downstream = self.downstream, None
        self.over = True
        if self.end is None:
            downstream.on_complete()
        else:
            downstream.on_error(self.end)

    # the subscription of downstream

    def request(self, n: int) -> None:
        if self.over:
            return
        if n <= 0:
            self.end = ValueError(f"§3.9 request({n})")
            if self.upstream is not None:
                self.upstream.cancel()
            self.finish()
        elif self.upstream is not None:
            self.upstream.request(n)
        else:
            self.demand = add_demand(self.demand, n)

    def cancel(self) -> None:
        if not self.over:
            self.over = True
            self.downstream = None
            upstream, self.upstream = self.upstream, None
            if upstream is not None:
                upstream.cancel()


class Idle:
    def request(self, n: int) -> None:
        """Nothing."""

    def cancel(self) -> None:
        """Nothing."""


def soon(call: Any, *arguments: Any) -> None:
    """Have something done in a scheduled callback."""
    asyncio.get_running_loop().call_soon(call, *arguments)
