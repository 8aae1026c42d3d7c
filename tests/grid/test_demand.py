"""Every operator under demand: no more comes than is requested, and no more is asked for and held than is declared."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, Subscriber, Subscription
from reactive_aio.testing import run_virtual
from tests.grid.points import HERE
from tests.registry import AnyFlow, Entry, Settings, Via
from tests.subscribers import Recorder

ELEMENTS = 9
DEMANDS = [1, 2, 3, UNBOUNDED]


@define(eq=False)
class Gauge:
    """A publisher in front of another one, with the accounts of what is asked of it and what it gives."""

    flow: AnyFlow
    asked: int = field(init=False, default=0)
    given: int = field(init=False, default=0)
    most_outstanding: int = field(init=False, default=0)

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        self.flow.subscribe(Gauged(self, subscriber))


@define(eq=False)
class Gauged:
    """One subscription to a gauge."""

    gauge: Gauge
    subscriber: Subscriber[Any]
    subscription: Subscription | None = field(init=False, default=None)
    outstanding: int = field(init=False, default=0)

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.subscriber.on_subscribe(self)

    def on_next(self, item: Any) -> None:
        self.gauge.given += 1
        assert self.outstanding, "more comes than was requested"
        self.outstanding -= 1
        self.subscriber.on_next(item)

    def on_error(self, error: BaseException) -> None:
        self.subscriber.on_error(error)

    def on_complete(self) -> None:
        self.subscriber.on_complete()

    def request(self, n: int) -> None:
        assert self.subscription is not None
        self.gauge.asked = min(self.gauge.asked + n, UNBOUNDED)
        self.outstanding = min(self.outstanding + n, UNBOUNDED)
        self.gauge.most_outstanding = max(self.gauge.most_outstanding, self.outstanding)
        self.subscription.request(n)

    def cancel(self) -> None:
        assert self.subscription is not None
        self.subscription.cancel()


@define(eq=False)
class Gauges:
    """A gauge on each flow of an entry."""

    all: list[Gauge] = field(init=False, factory=list[Gauge])

    def via(self, flow: AnyFlow) -> AnyFlow:
        self.all.append(Gauge(flow))
        return Flow.from_publisher(self.all[-1])


async def rest() -> None:
    """Let everything happen that will, on virtual time."""
    await asyncio.sleep(3600)


demands = pytest.mark.parametrize("demand", DEMANDS, ids=lambda n: "unbounded" if n == UNBOUNDED else str(n))
entries = pytest.mark.parametrize("entry", HERE, ids=str)


@demands
@entries
def test_as_many_elements_come_as_are_requested_each_time(entry: Entry, demand: int) -> None:
    async def main(via: Via) -> None:
        whole = await entry.make(ELEMENTS, via, Settings(prefetch=2)).to_list()
        recorder, requested = Recorder(), 0
        entry.make(ELEMENTS, via, Settings(prefetch=2)).subscribe(recorder)
        await rest()
        assert recorder.items == []
        while requested < ELEMENTS:
            recorder.request(demand)
            requested += demand
            await rest()
            assert recorder.items == whole[:requested]
        if not entry.ends_late:
            assert recorder.kinds[-1] == "complete", "behind the last element the end needs no demand"
        recorder.cancel()

    run_virtual(main(lambda flow: flow))
    run_virtual(main(Flow.from_publisher))


@demands
@entries
def test_no_more_is_asked_of_an_input_and_no_more_is_held_than_is_declared(entry: Entry, demand: int) -> None:
    async def main(prefetch: int) -> None:
        gauges, recorder = Gauges(), Recorder()
        entry.make(ELEMENTS, gauges.via, Settings(prefetch=prefetch)).subscribe(recorder)
        await rest()
        most = max(entry.asks(demand), prefetch if entry.prefetches else 0)
        held = entry.holds + (prefetch if entry.prefetches else 0)
        for _ in range(3):
            recorder.request(demand)
            await rest()

            asked = max(gauge.most_outstanding for gauge in gauges.all)
            assert asked <= most, "if the operator is to ask for more than is wanted, declare asks= in its entry"
            ahead = gauges.all[0].given - len(recorder.items)
            assert ahead <= held or not entry.passes, "if the operator is to keep elements, declare holds= in its entry"
        recorder.cancel()

    for prefetch in (1, 2, 256) if entry.prefetches else (1,):
        run_virtual(main(prefetch))
