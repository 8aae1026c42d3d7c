"""The examples of the page of the operators that need a cluster are records of what a cluster does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from attrs import define, evolve, field

from reactive_aio import UNBOUNDED, Flow, Subscriber, Subscription
from tests.catalogue.recorded import Record, recorded_examples
from tests.catalogue.running import Lane, marbles
from tests.spark.waiting import LIMIT

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_factories=["asyncio"])]
pytest.importorskip("pyspark")

AGAIN = "see whether what came is right; if so, write it into tests/catalogue/on_spark.txt, and run python -m tests.catalogue.page"
FROM_SPARK, TO_SPARK = recorded_examples()


@define(eq=False)
class Asking:
    """Asks for what is wanted, each when what it has asked for before has come, and writes down what comes."""

    record: Record
    wanted: list[tuple[float, float]]
    over: asyncio.Event = field(factory=asyncio.Event)
    missing: float = 0
    subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.ask()

    def ask(self) -> None:
        if not self.missing and self.wanted and self.subscription:
            at, self.missing = self.wanted.pop(0)
            self.record.step = max(self.record.step, int(at))
            self.record.result.request(self.record.step, self.missing)
            self.subscription.request(int(min(self.missing, UNBOUNDED)))

    def on_next(self, item: Any) -> None:
        self.missing -= 1
        assert self.missing >= 0
        self.record.next(self.record.result, item)
        self.ask()

    def on_error(self, error: BaseException) -> None:
        raise error

    def on_complete(self) -> None:
        self.record.end(self.record.result)
        self.over.set()


@define(eq=False)
class Giving:
    """A publisher of some elements, as they are asked for, which writes both down (and its own subscription)."""

    record: Record
    lane: Lane
    items: list[int]
    subscriber: Subscriber[int] | None = None

    def subscribe(self, subscriber: Subscriber[int]) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        self.lane.request(self.record.step, n)
        asyncio.get_running_loop().call_soon(self.give, n)

    def give(self, n: int) -> None:
        assert self.subscriber is not None
        for item in self.items[:n]:
            self.record.next(self.lane, item)
            self.subscriber.on_next(item)
        del self.items[:n]
        if not self.items and self.lane.end is None:
            self.record.end(self.lane)
            self.subscriber.on_complete()

    def cancel(self) -> None:
        """Nothing is left to be done."""


async def test_from_spark_is_drawn_as_it_runs(sc: Any) -> None:
    record = Record(FROM_SPARK)
    asking = Asking(record, FROM_SPARK.wanted)
    name, _, made = FROM_SPARK.said("let").partition(" = ")

    flow: Flow[Any] = eval(FROM_SPARK.call, {"Flow": Flow, name: eval(made, {"sc": sc})})
    flow.subscribe(asking)
    await asyncio.wait_for(asking.over.wait(), LIMIT)

    assert str(record) == str(FROM_SPARK), f"{AGAIN}\n{record}"


async def test_to_spark_is_drawn_as_it_runs(spark: Any) -> None:
    from reactive_aio.spark.sink import Frames

    record, lane = Record(TO_SPARK), Lane()
    source = Giving(record, lane, [int(sign) for sign in TO_SPARK.flows["a"] if sign.isdigit()])
    loop = asyncio.get_running_loop()

    def tell(*_: object) -> None:
        asyncio.run_coroutine_threadsafe(told(), loop).result(LIMIT)

    async def told() -> None:
        record.tell()

    names = {"a": Flow.from_publisher(source), "Frames": Frames, "spark": spark, "tell": tell}
    done = await eval(TO_SPARK.call, names)
    record.next(record.result, done)
    record.result.end = (record.step, None)
    record.flows["a"] = [lane]
    lines = tuple((word, marbles(lane, {}) if word == "a" else text) for word, text in TO_SPARK.lines)
    record.example = evolve(TO_SPARK, lines=lines)

    assert str(record) == str(TO_SPARK), f"{AGAIN}\n{record}"
