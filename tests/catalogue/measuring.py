"""Measures what an operator asks for, keeps, and does at an end or a failure, in an entry of the registry.

Every flow of the entry has a gauge behind it. The name of the entry says which operator it stands for. The flows that
this operator holds say which gauges are in front of it. These gauges give nothing before they are released.
"""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs
from attrs import define, field, frozen

from reactive_aio import UNBOUNDED, Flow, Subscriber, Subscription, hooks
from reactive_aio._catalogue import TRAITS
from reactive_aio._core.missing import MISSING
from reactive_aio.operators._fluent import is_async, is_flow
from reactive_aio.operators.sourcing.publisher import FromPublisher
from reactive_aio.testing import settle
from tests.registry import AnyFlow, Entry, Settings, same

ELEMENTS = 9
PREFETCH = 4
UNENDING = 100
"""More elements than any input has. An input of so many ends only when the test ends it."""


class Counted:
    """Objects that are counted."""

    alive = 0

    def __init__(self, _: object) -> None:
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1


class Number(Counted, int):
    """A number that is counted."""


class Text(Counted, str):
    """A text that is counted."""


COUNTED: dict[type, Callable[[Any], Any]] = {int: Number, str: Text}
PLAIN: dict[type, Callable[[Any], Any]] = {Number: int, Text: str}


@define(eq=False)
class Gauge:
    """A publisher in front of another one, with the accounts of what is asked of it and what it gives."""

    flow: AnyFlow
    operators: list[Any]
    """The elements between the inputs and here, in order."""
    inputs: list[Gauge]
    gives: float = math.inf
    """How many elements may be given; with 0 there is not even a subscription."""
    counts: bool = False
    """Whether its elements are counted as long as they live."""
    asked: float = 0.0
    most_outstanding: float = 0.0
    lingers: int = 1
    """How many counted elements the last given one may keep alive: the caller that gave it still has it at hand."""
    given: int = 0
    ended: tuple[BaseException | None] | None = None
    subscriptions: list[Gauged] = field(factory=list[Any])

    def has_ended(self) -> bool:
        """Return whether a subscription has ended."""
        return self.ended is not None

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Take a subscriber."""
        gauged = Gauged(self, subscriber)
        self.subscriptions.append(gauged)
        subscriber.on_subscribe(gauged)
        if self.gives:
            gauged.begin()

    def release(self, gives: float = math.inf) -> None:
        """Let elements through."""
        self.gives = gives
        for each in self.subscriptions:
            each.begin()


@define(eq=False)
class Gauged:
    """One subscription to a gauge."""

    gauge: Gauge
    subscriber: Subscriber[Any]
    begun: bool = False
    subscription: Subscription | None = None
    waiting: float = 0.0
    outstanding: float = 0.0
    given: int = 0
    over: bool = False

    def begin(self) -> None:
        """Subscribe to the flow, if that is still wanted."""
        if not self.begun and not self.over:
            self.begun = True
            self.gauge.flow.subscribe(self)

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        if self.waiting:
            subscription.request(int(min(self.waiting, UNBOUNDED)))

    def on_next(self, item: Any) -> None:
        if self.over or self.given >= self.gauge.gives:
            return
        assert self.outstanding, "more comes than was requested"
        self.outstanding -= 1
        self.given += 1
        if self.gauge.counts:
            item = COUNTED.get(type(item), same)(item)
        elif isinstance(item, Counted):
            item = PLAIN[type(item)](item)
        self.gauge.given += 1
        self.gauge.lingers = len(item) if isinstance(item, (list, tuple)) else 1
        self.subscriber.on_next(item)

    def on_error(self, error: BaseException) -> None:
        if self.gauge.gives > UNENDING:
            self.end(error)

    def on_complete(self) -> None:
        if self.gauge.gives > UNENDING:
            self.end(None)

    def end(self, error: BaseException | None) -> None:
        """End, once."""
        if not self.over:
            self.over, self.gauge.ended = True, (error,)
            if error is None:
                self.subscriber.on_complete()
            else:
                self.subscriber.on_error(error)

    def request(self, n: int) -> None:
        number = math.inf if n >= UNBOUNDED else n
        self.gauge.asked += number
        self.outstanding += number
        self.gauge.most_outstanding = max(self.gauge.most_outstanding, self.outstanding)
        if self.subscription is not None:
            self.subscription.request(n)
        else:
            self.waiting += number

    def cancel(self) -> None:
        self.over = True
        if self.subscription is not None:
            self.subscription.cancel()


def operators_of(flow: AnyFlow) -> list[Any]:
    """Return the operators that a flow has of its own: its steps, behind its source if that is none of the gauges."""
    source = flow.__nodes__.source.operator
    own = [] if isinstance(source, FromPublisher) and isinstance(source.publisher, Gauge) else [source]
    return [*own, *(step.operator for step in flow.__nodes__.steps)]


def name_of(operator: Any) -> str:
    """Return the name of the method that made an operator."""
    if isinstance(operator, str):
        return operator
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(operator).__name__).lstrip("_")
    named: str = getattr(operator, "name", snake)
    return {"slice": "__getitem__"}.get(named, named)


def read_by(flow: AnyFlow) -> Iterator[Gauge]:
    """Yield the gauges that a flow reads, in order."""
    yield from _gauges(flow)
    operator: Any = flow.__nodes__.source.operator
    for each in attrs.fields(type(operator)):
        yield from _gauges(getattr(operator, each.name))


def _gauges(value: Any) -> Iterator[Gauge]:
    if is_flow(value):
        source = value.__nodes__.source.operator
        if isinstance(source, FromPublisher) and isinstance(source.publisher, Gauge):
            yield source.publisher
    elif isinstance(value, tuple):
        for each in value:
            yield from _gauges(each)


@define
class Bench:
    """An entry with a gauge on each flow, and a subscriber."""

    entry: Entry
    prefetch: int = PREFETCH
    gauges: list[Gauge] = field(factory=list[Gauge])
    built: int = 0
    """How many gauges there are from the start; what comes later is on flows that the operator makes."""
    received: int = 0
    end: tuple[BaseException | None] | None = None
    discarded: int = 0
    dropped: list[BaseException] = field(factory=list[BaseException])
    subscription: Subscription | None = None

    def via(self, flow: AnyFlow) -> AnyFlow:
        """Put a gauge behind a flow."""
        self.gauges.append(Gauge(flow, operators_of(flow), [*read_by(flow)], counts=self.built > 0))
        return Flow.from_publisher(self.gauges[-1])

    @property
    def made(self) -> list[Gauge]:
        """The gauges on flows that the operator has made while it ran."""
        return self.gauges[self.built :]

    async def begin(self, demand: int) -> Gauge:
        """Subscribe, ask for so much, and give the gauge behind the operator."""
        made = self.entry.make(ELEMENTS, self.via, Settings(prefetch=self.prefetch))
        self.built = len(self.gauges)
        own = next((each for each in reversed(self.gauges) if self.entry.method in map(name_of, each.operators)), None)
        if own is None:  # then() is called otherwise inside; it is the last that is entered
            own = self.gauges[-1]
            own.operators, own.inputs = [self.entry.method], own.inputs or self.gauges[-2:-1]
        for each in own.inputs:
            each.gives, each.counts = 0, True
        with hooks.using(on_discard=self._discard, on_error_dropped=self.dropped.append):
            made.subscribe(self)
            await settle()
            if demand:
                self.request(demand)
                await settle()
        return own

    def _discard(self, item: object) -> None:
        self.discarded += 1

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription

    def on_next(self, item: Any) -> None:
        self.received += 1

    def on_error(self, error: BaseException) -> None:
        self.end = (error,)

    def on_complete(self) -> None:
        self.end = (None,)

    def request(self, n: int) -> None:
        """Ask for more."""
        assert self.subscription is not None
        self.subscription.request(n)

    def cancel(self) -> None:
        """Leave."""
        assert self.subscription is not None
        self.subscription.cancel()


async def released(gauges: Iterable[Gauge], gives: float = math.inf) -> None:
    """Let elements through several gauges, and wait for what comes of that."""
    for each in gauges:
        each.release(gives)
    await settle()


def alive(expected: float) -> int:
    """Return the number of counted elements. If there are too many, the garbage is collected first."""
    if Counted.alive > expected:
        gc.collect()
    return Counted.alive


def arguments_of(operator: Any) -> dict[str, Any]:
    """Return the arguments that an operator keeps as a value."""
    fields = () if isinstance(operator, str) else attrs.fields(type(operator))
    arguments = {each.name.lstrip("_"): getattr(operator, each.name) for each in fields}
    if "ahead" in arguments:  # what pushed sources call prefetch is another thing
        arguments["prefetch"] = arguments["ahead"]
    return arguments


def evaluated(expression: str, arguments: Mapping[str, Any], d: float) -> float:
    """Return what an expression of the traits comes to; an argument that is None is no bound."""
    functions = {"min": min, "max": max, "len": len, "range": range, "is_async": is_async}
    names = {name: UNBOUNDED if value is None else value for name, value in arguments.items()}
    demand = {"d": int(min(d, UNBOUNDED)), "unbounded": UNBOUNDED, "MISSING": MISSING}
    value = eval(expression, {"__builtins__": {}}, functions | names | demand)
    return math.inf if value > UNBOUNDED // 2 else float(value)


def declared(gauge: Gauge, d: float) -> tuple[float, float]:
    """Return the declared request of the operators before a gauge for a demand, and the elements that they keep."""
    kept = 0.0
    for operator in reversed(gauge.operators):
        traits, arguments = TRAITS[name_of(operator)], arguments_of(operator)
        kept += evaluated(traits.keeps, arguments, d)
        d = max(evaluated(traits.demand, arguments, d), 0.0)
    return d, kept


@frozen
class Ending:
    """The signals of an operator after its source has ended."""

    when: str
    """"at once", "behind" what it keeps, or "not"."""
    error: BaseException | None
    discarded: bool


async def endings(entry: Entry, error: BaseException | None) -> list[Ending]:
    """Let what an operator reads give some elements and then end, with and without more being wanted."""
    cases = [await _ending(entry, demand, gives, error) for demand in (0, 1, 2, 7) for gives in (3, 4)]
    return [case for case in cases if case is not None]


async def _ending(entry: Entry, demand: int, gives: int, error: BaseException | None) -> Ending | None:
    bench = Bench(entry)
    own = await bench.begin(demand)
    first, *others = own.inputs
    if not first.asked:
        await released(others, gives + 2)
    if not first.asked:
        bench.cancel()
        return None
    first.release(gives)
    await released(others, gives + 2)
    before = bench.discarded
    if own.has_ended():
        bench.cancel()
        return None
    first.subscriptions[-1].end(error)
    await settle()
    when = "at once" if own.has_ended() else "not"
    if when == "not":
        bench.request(UNBOUNDED)
        await asyncio.sleep(3600)
        when = "behind" if own.has_ended() else "not"
    discarded = bench.discarded > before
    bench.cancel()
    assert not bench.dropped
    return Ending(when, own.ended[0] if own.ended else None, discarded)
