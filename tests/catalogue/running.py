"""Runs an example in virtual time, and writes down what went over each of its lanes."""

from __future__ import annotations

import asyncio
import builtins
import functools
import math
import operator
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from unittest.mock import patch

from attrs import define, evolve, field, frozen

import reactive_aio
from reactive_aio import (
    UNBOUNDED,
    Backoff,
    Emitter,
    Failed,
    Flow,
    Next,
    Subscriber,
    Subscription,
    SynchronousSink,
    hooks,
    schedulers,
)
from reactive_aio._fusion import Stage
from reactive_aio.testing import VirtualTimeLoop, from_marbles, run_virtual
from reactive_aio.testing.marbles import MarbleError, render

from .examples import MEASURED, Example

HORIZON = 60
"""Seconds after which an example is given up."""
DIGITS = {str(n): n for n in range(10)}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@define
class Lane:
    """One subscription: what was asked, what came, and how it ended, each with its time."""

    begun: float = 0.0
    asked: list[tuple[float, float]] = field(factory=list[tuple[float, float]])
    """How much was asked for; 0 stands for a cancel."""
    given: list[tuple[float, Any]] = field(factory=list[tuple[float, Any]])
    end: tuple[float, BaseException | None] | None = None
    """The time of the end, and the error if it was none."""

    @property
    def cancelled(self) -> float | None:
        """The time of the cancel."""
        return next((at for at, n in self.asked if not n), None)

    @property
    def over(self) -> float:
        """The time from which on nothing comes any more."""
        if self.end is not None:
            return self.end[0]
        return math.inf if self.cancelled is None else self.cancelled

    def request(self, at: float, n: float) -> None:
        """Enter a request, or with 0 a cancel; a number that comes in parts at one time is one."""
        if self.end is None and self.cancelled is None and at < HORIZON:
            if n and self.asked and self.asked[-1][0] == at:
                n += self.asked.pop()[1]
            self.asked.append((at, n))

    def __str__(self) -> str:
        return " ".join(f"{'∞' if n == float('inf') else f'{n:g}' if n else 'x'}@{at:g}" for at, n in self.asked)


def clock() -> float:
    """Return the seconds since the start, where the clock of the loop begins at 0."""
    return round(asyncio.get_running_loop().time(), 6)


@define(eq=False)
class Watched:
    """A publisher whose subscriptions are written down."""

    flow: Flow[Any]
    lanes: list[Lane] = field(factory=list[Lane])

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Subscribe, with a lane of its own."""
        lane = Lane(clock())
        self.lanes.append(lane)
        self.flow.subscribe(Listening(lane, subscriber))


@define(eq=False)
class Listening:
    """Stands between a publisher and a subscriber, and writes down."""

    lane: Lane
    subscriber: Subscriber[Any] | None = None
    subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        if self.subscriber:
            self.subscriber.on_subscribe(self)

    def on_next(self, item: Any) -> None:
        self.lane.given.append((clock(), item))
        if self.subscriber:
            self.subscriber.on_next(item)

    def on_error(self, error: BaseException) -> None:
        self.lane.end = (clock(), error)
        if self.subscriber:
            self.subscriber.on_error(error)

    def on_complete(self) -> None:
        self.lane.end = (clock(), None)
        if self.subscriber:
            self.subscriber.on_complete()

    def request(self, n: int) -> None:
        self.lane.request(clock(), n if n < UNBOUNDED else float("inf"))
        if self.subscription:
            self.subscription.request(n)

    def cancel(self) -> None:
        self.lane.request(clock(), 0)
        if self.subscription:
            self.subscription.cancel()


@frozen
class Ran:
    """The result of an example."""

    example: Example
    """The example as the run writes it."""
    flows: dict[str, list[Lane]]
    result: Lane
    told: list[tuple[float, str]]
    lost: list[tuple[float, str]]
    flow: Flow[Any] | None
    """The flow that was run; None where it was run by an end."""
    call: str
    """The call, as one writes it in a program."""


async def slow(n: int) -> int:
    """Return ``n``, after as many seconds."""
    await asyncio.sleep(n)
    return n


def attempts(*flows: Flow[Any]) -> Flow[Any]:
    """Return a flow that is another at each subscription."""
    return Flow.defer(iter(flows).__next__)


async def ticks(n: int) -> AsyncIterator[int]:
    """Yield so many numbers, two seconds apart."""
    for each in range(n):
        await asyncio.sleep(2)
        yield each


async def producer(emit: Callable[[str], Awaitable[None]]) -> None:
    """Emit three elements, each two seconds after the one before has been taken."""
    for each in "xyz":
        await asyncio.sleep(2)
        await emit(each)


def ringing(emitter: Emitter[int]) -> None:
    """Call back five times, two seconds apart, and complete."""
    loop = asyncio.get_running_loop()
    for each in range(1, 6):
        loop.call_later(2 * each - 1, emitter.next, each)
    loop.call_later(11, emitter.complete)


@define(eq=False)
class Shop:
    """Returns the requested numbers of seven, a second later."""

    at: int = 0

    async def fetch(self, n: int) -> range:
        """Return the next elements."""
        await asyncio.sleep(1)
        if self.at == 7:
            raise StopAsyncIteration
        start, self.at = self.at, min(self.at + n, 7)
        return range(start, self.at)

    async def idle(self) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""


@asynccontextmanager
async def shop() -> AsyncGenerator[Shop]:
    """Open the shop."""
    yield Shop()


def parse(item: Any, sink: SynchronousSink[int]) -> None:
    """Pass ten times each number to the sink, and complete at a dot."""
    if item == ".":
        sink.complete()
    elif isinstance(item, int):
        sink.next(10 * item)


class Doubled(Stage[int, int]):
    """An operator of one's own."""

    def apply(self, items: Iterator[int]) -> Iterator[int]:
        for item in items:
            yield 2 * item

    @property
    def pending(self) -> bool:
        return False


HELPERS = {each.__name__: each for each in (slow, attempts, ticks, producer, ringing, shop, parse, Doubled, Backoff)}
"""The names that examples may use, beside the builtins."""


def ran(example: Example) -> Ran:
    """Run an example."""
    try:
        recording = Recording(example)
        return recording.blocking() if example.operator == "run_sync" else run_virtual(recording.run())
    except Exception as error:
        error.add_note(f"in the example of {example.file}:\n{example}")
        raise


@define
class Recording:
    """A run of an example, and what is written down of it."""

    example: Example
    told: list[tuple[float, str]] = field(init=False, factory=list[tuple[float, str]])
    lost: list[tuple[float, str]] = field(init=False, factory=list[tuple[float, str]])
    letters: dict[str, str] = field(init=False, factory=dict[str, str])
    watched: dict[str, Watched] = field(init=False)
    listening: Listening = field(init=False, factory=lambda: Listening(Lane()))

    def __attrs_post_init__(self) -> None:
        values = DIGITS | _where(self.example)
        self.watched = {name: Watched(from_marbles(text, values=values)) for name, text in self.example.flows.items()}

    async def run(self) -> Ran:
        """Run it on the running loop."""
        result = self.listening.lane
        with hooks.using(on_discard=functools.partial(self.note, self.lost)):
            made = self.evaluated()
            call = self.example.call
            match made:
                case Awaitable():
                    call = f"await {call}"
                    await _await(made, result)
                case AbstractAsyncContextManager() if not isinstance(made, Flow):  # a shared flow is both
                    call = f"async with {call}"
                    await _step(made, result, self.example)
                case _:  # a flow to be subscribed to, or what subscribing gives
                    await _listen(made, self.listening, self.example)
        return self.whole(made if isinstance(made, Flow) else None, call)

    def blocking(self) -> Ran:
        """Run what makes an event loop of its own; the loop that it makes is one of virtual time."""
        loop, result = VirtualTimeLoop(), self.listening.lane
        with patch("asyncio.events.new_event_loop", lambda: loop):
            value = self.evaluated()
        result.given.append((loop.time(), value))
        result.end = (loop.time(), None)
        return self.whole(None, self.example.call)

    def evaluated(self) -> Any:
        """Call what the example calls."""
        names = {name: Flow.from_publisher(each) for name, each in self.watched.items()}
        tell = functools.partial(self.note, self.told)
        return eval(self.example.call, namespace() | names | {"tell": tell, "subscriber": self.listening})

    def note(self, notes: list[tuple[float, str]], *items: object) -> None:
        """Write down a call."""
        if clock() < HORIZON:
            signs = ["∞" if each == UNBOUNDED else _sign(each, self.letters) for each in items]
            notes.append((clock(), ",".join(signs) or "!"))

    def whole(self, flow: Flow[Any] | None, call: str) -> Ran:
        """Return the result of the run."""
        lanes = {name: each.lanes for name, each in self.watched.items()}
        done = Ran(self.example, lanes, self.listening.lane, self.told, self.lost, flow, call)
        return evolve(done, example=evolve(self.example, lines=tuple(written(done, self.letters))))


def namespace() -> dict[str, Any]:
    """Return what examples may name, beside their flows."""
    exported = {name: getattr(reactive_aio, name) for name in dir(reactive_aio) if name[0].isupper()}
    modules = {"schedulers": schedulers, "functools": functools, "operator": operator, "asyncio": asyncio}
    return vars(builtins) | exported | modules | HELPERS


def _where(example: Example) -> dict[str, Any]:
    """Return the elements that letters stand for, as far as they are needed to run."""
    return {
        name: eval(text, namespace())
        for name, _, text in (each.partition(" = ") for each in example.said("let").split("; ") if each)
    }


async def _listen(flow: Flow[Any] | None, listening: Listening, example: Example) -> None:
    loop, result = asyncio.get_running_loop(), listening.lane
    if flow is not None:
        flow.subscribe(listening)
    for at, n in example.wanted:
        demand = listening.cancel if not n else functools.partial(listening.request, int(min(n, UNBOUNDED)))
        loop.call_at(at, demand)
    await asyncio.sleep(HORIZON)
    if result.end is None and result.cancelled is None and listening.subscription:
        listening.subscription.cancel()
        await asyncio.sleep(0)


async def _step(block: AbstractAsyncContextManager[AsyncIterator[Any]], result: Lane, example: Example) -> None:
    """Step through what a block is given as it is wanted, one element at a time, and leave the block at a cancel."""
    async with block as items:
        for at, n in example.wanted:
            await asyncio.sleep(at - clock())
            result.request(clock(), n)
            for _ in range(int(n)):
                item = await anext(items)
                result.given.append((clock(), item))


async def _await(end: Awaitable[Any], result: Lane) -> None:
    try:
        value = await asyncio.wait_for(end, HORIZON)
    except Exception as error:
        result.end = (clock(), error)
        return
    if value is not None:
        result.given.append((clock(), value))
    result.end = (clock(), None)


def _sign(item: Any, letters: dict[str, str]) -> str:
    """Return the sign of an element: itself, or a letter from now on."""
    if len(text := str(item)) == 1:
        return text
    shown = label(item)
    for letter, each in letters.items():
        if each == shown:
            return letter
    letter = LETTERS[len(letters)]
    letters[letter] = shown
    return letter


def label(item: Any) -> str:
    """Show an element, as short as that can be."""
    match item:
        case BaseException():
            return type(item).__name__
        case Next():
            return f"Next({label(item.item)})"
        case Failed():
            return f"Failed({label(item.error)})"
        case list() | tuple() | set():
            brackets = {list: "[{}]", tuple: "({})", set: "{{{}}}"}[type(item)]
            return brackets.format(", ".join(label(each) for each in item))
        case _:
            return str(item)


def written(whole: Ran, letters: dict[str, str]) -> list[tuple[str, str]]:
    """Return the lines of the example as the run writes them."""
    lines: list[tuple[str, str]] = []
    example, result = whole.example, whole.result
    for word, text in example.lines:
        if word not in MEASURED:
            lines.append((word, text))
        if word in whole.flows:
            lines.append(("asked", " , ".join(str(lane) or "0@0" for lane in whole.flows[word]) or "never"))
    lines.append(("given", marbles(result, letters)))
    for word, calls in (("told", whole.told), ("lost", whole.lost)):
        if calls:
            lines.append((word, " ".join(f"{sign}@{at:g}" for at, sign in calls)))
    error = result.end[1] if result.end else None
    if error is not None and not isinstance(error, MarbleError):
        lines.append(("fails", type(error).__name__))
    if letters:
        lines.append(("where", "; ".join(f"{letter} = {text}" for letter, text in letters.items())))
    return lines


def marbles(lane: Lane, letters: dict[str, str]) -> str:
    """Write what came over a lane in marbles; with times, where these would take more room than there is."""
    signs = [(at, _sign(item, letters)) for at, item in lane.given]
    if lane.end:
        signs.append((lane.end[0], "#" if lane.end[1] else "|"))
    try:
        if all(at == int(at) for at, _ in signs):
            return render((int(at), sign) for at, sign in signs) or "-"
    except ValueError:
        pass
    return " ".join(f"{sign}@{at:g}" for at, sign in signs)
