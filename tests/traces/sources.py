"""The sources of programs, by their names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

from attrs import define, field, frozen

from reactive_aio import Emitter, Flow, Subscriber, Subscription
from tests.traces.programs import Source
from tests.traces.run import AnyFlow, Run, pause
from tests.traces.tape import INSIDE, show


@frozen(eq=False)
class Made:
    """A source in a run."""

    run: Run
    source: Source
    label: str
    offset: int
    """Added to the elements; that of an inner flow is the element it is made for."""

    @property
    def items(self) -> list[int]:
        """The elements."""
        return [(item + self.offset) % 13 for item in self.source.items]

    def say(self, text: str) -> None:
        """Write a line of the trace."""
        self.run.say(f"{self.label} {text}")

    def begin(self) -> int:
        """Note a subscription, and give its number."""
        INSIDE.set(self.label)
        attempt = self.run.count(f"{self.source.label} begins")
        self.say(f"begins {attempt}")
        return attempt

    def fails(self, at: int, attempt: int) -> None:
        """Fail, if it is the time for it."""
        source = self.source
        if source.fails_at == at and attempt < source.fails_times:
            self.run.fail(self.label)

    def plainly(self) -> Iterator[int]:
        """Yield the elements, and fail."""
        attempt = self.begin()
        for at, item in enumerate(self.items):
            self.fails(at, attempt)
            self.say(f"gives {item}")
            yield item
        self.fails(len(self.items), attempt)
        self.say("is through")

    def clean_up(self) -> None:
        """Clean up, and fail."""
        self.say("cleans up")
        if self.source.cleanup_fails:
            self.run.fail(f"{self.label} cleanup")

    def generator(self) -> Iterator[int]:
        """Generate, and clean up."""
        try:
            yield from self.plainly()
        finally:
            self.clean_up()

    async def async_generator(self, slow: bool) -> AsyncIterator[int]:
        """Generate, and clean up, which takes a turn if all else takes some."""
        try:
            for item in self.plainly():
                if slow:
                    await pause(item)
                yield item
        finally:
            if slow:
                await asyncio.sleep(0)
            self.clean_up()

    async def produce(self, slow: bool, emit: Callable[[int], Awaitable[None]]) -> None:
        """Emit, and clean up."""
        try:
            for item in self.plainly():
                if slow:
                    await pause(item)
                await emit(item)
        finally:
            self.clean_up()

    def call(self) -> int:
        """Return one element."""
        self.fails(0, self.begin())
        return self.offset

    async def wait(self) -> int:
        """Return one element later."""
        attempt = self.begin()
        try:
            await pause(self.offset + len(self.items))
            self.fails(0, attempt)
        finally:
            self.clean_up()
        return self.offset

    def step(self, at: int) -> tuple[int, int] | None:
        """Return an element and the next state."""
        self.say(f"steps from {at}")
        self.fails(at, 0)
        return (self.items[at], at + 1) if at < len(self.items) else None

    @contextmanager
    def lent(self) -> Generator[list[int]]:
        """Lend the elements."""
        attempt = self.begin()
        self.fails(0, attempt)
        try:
            yield self.items
        finally:
            self.clean_up()

    @asynccontextmanager
    async def lent_later(self) -> AsyncGenerator[list[int]]:
        """Lend the elements, a turn later."""
        with self.lent() as items:
            await asyncio.sleep(0)
            yield items
            await asyncio.sleep(0)

    def used(self, items: list[int]) -> AnyFlow:
        """Make a flow of what was lent."""
        self.say("is used")
        return self.run.via(Flow.from_iterable(items))

    def register(self, later: bool, emitter: Emitter[int]) -> Callable[[], None]:
        """Register for callbacks, which come at once or one in each turn."""
        items = self.plainly()

        def call_back() -> bool:
            try:
                item = next(items, None)
            except BaseException as error:
                emitter.error(error)
                return False
            if item is None:
                emitter.complete()
            else:
                self.say(f"emitted, {emitter.next(item)}")
            return item is not None

        def call_back_later() -> None:
            if call_back():
                asyncio.get_running_loop().call_soon(call_back_later)

        if later:
            call_back_later()
        else:
            while call_back():
                pass
        return self.clean_up

    def deferred(self) -> AnyFlow:
        """Make a flow for a subscription."""
        self.fails(0, self.begin())
        return self.run.via(Flow.of(*self.items))

    def error(self) -> BaseException:
        """Make an error."""
        self.begin()
        try:
            self.run.fail(self.label)
        except BaseException as error:
            return error
        raise AssertionError("fail() raises")


@frozen(eq=False)
class Listed:
    """An iterable that can be read several times."""

    made: Made

    def __iter__(self) -> Iterator[int]:
        return self.made.plainly()


@frozen(eq=False)
class Published:
    """A publisher written by hand, which notes what is asked of it."""

    made: Made
    manner: str

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Take a subscriber."""
        self.made.say("is subscribed to")
        subscriber.on_subscribe(Link(self.made, self.manner, subscriber))


@define(eq=False)
class Link:
    """A subscription, which sends from within request or a turn later."""

    made: Made
    manner: str
    subscriber: Subscriber[Any]
    items: Iterator[int] | None = None
    wanted: int = 0
    sending: bool = False
    over: bool = False
    ahead: list[int] = field(factory=list[int])

    def request(self, n: int) -> None:
        """Send what is wanted."""
        self.made.say(f"request({n})")
        if self.manner == "flawed" and self.wanted and self.made.offset % 2:
            self.made.run.fail(self.made.label)
        self.wanted += n
        if self.manner == "later":
            asyncio.get_running_loop().call_soon(self.send)
        else:
            self.send()

    def cancel(self) -> None:
        """Stop."""
        self.made.say("cancel()")
        self.over = True
        if self.made.source.cleanup_fails:
            self.made.run.fail(f"{self.made.label} cancel")

    def send(self) -> None:
        """Send, not from within itself."""
        if self.sending:
            return
        self.sending = True
        while not self.over and self.wanted:
            self.send_one()
        self.sending = False

    def send_one(self) -> None:
        """Send one signal; a hasty one sends the end with the last element, not when one more is wanted."""
        if self.items is None:
            self.items = self.made.plainly()
        try:
            item = self.ahead.pop() if self.ahead else next(self.items)
            self.wanted -= 1
            self.subscriber.on_next(item)
            if self.manner == "hasty" and not self.over:
                self.ahead.append(next(self.items))
        except StopIteration:
            self.finish(self.subscriber.on_complete)
        except BaseException as error:
            self.finish(partial(self.subscriber.on_error, error))

    def finish(self, signal: Callable[[], None]) -> None:
        """Signal the end. A flawed publisher goes on."""
        self.over = True
        signal()
        if self.manner == "flawed":
            self.made.say("goes on behind its end")
            self.subscriber.on_next(99)
            self.subscriber.on_complete()


@frozen(eq=False)
class Tapped:
    """A publisher that passes all on, and notes it: it shows the demand between two operators."""

    run: Run
    label: str
    flow: AnyFlow

    def subscribe(self, subscriber: Subscriber[Any]) -> None:
        """Subscribe to what is behind it."""
        self.run.say(f"{self.label} is subscribed to")
        self.flow.subscribe(Tap(self.run, self.label, subscriber))


@define(eq=False)
class Tap:
    """A subscriber to the one side, and a subscription to the other."""

    run: Run
    label: str
    subscriber: Subscriber[Any]
    subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        """Pass on."""
        self.subscription = subscription
        self.subscriber.on_subscribe(self)

    def on_next(self, item: Any) -> None:
        """Pass on."""
        self.run.say(f"{self.label} on_next({show(item)})")
        self.subscriber.on_next(item)

    def on_error(self, error: BaseException) -> None:
        """Pass on."""
        self.run.say(f"{self.label} on_error({show(error)})")
        self.subscriber.on_error(error)

    def on_complete(self) -> None:
        """Pass on."""
        self.run.say(f"{self.label} on_complete")
        self.subscriber.on_complete()

    def request(self, n: int) -> None:
        """Pass on."""
        self.run.say(f"{self.label} request({n})")
        assert self.subscription is not None
        self.subscription.request(n)

    def cancel(self) -> None:
        """Pass on."""
        self.run.say(f"{self.label} cancel()")
        assert self.subscription is not None
        self.subscription.cancel()


async def slowly(made: Made, emit: Callable[[int], Awaitable[None]]) -> None:
    """Emit with pauses."""
    await made.produce(True, emit)


async def at_once(made: Made, emit: Callable[[int], Awaitable[None]]) -> None:
    """Emit without pauses."""
    await made.produce(False, emit)


KINDS: Final[dict[str, Callable[[Made], AnyFlow]]] = {
    "range": lambda made: Flow.range(len(made.items)),
    "of": lambda made: Flow.of(*made.items),
    "list": lambda made: Flow.from_iterable(Listed(made)),
    "generator": lambda made: Flow.defer(lambda: Flow.from_iterable(made.generator())),
    "async generator": lambda made: Flow.defer(lambda: Flow.from_async_iterable(made.async_generator(False))),
    "slow async generator": lambda made: Flow.defer(lambda: Flow.from_async_iterable(made.async_generator(True))),
    "create": lambda made: Flow.create(partial(at_once, made)),
    "slow create": lambda made: Flow.create(partial(slowly, made)),
    "callable": lambda made: Flow.from_callable(made.call),
    "awaitable": lambda made: Flow.from_awaitable(made.wait),
    "generate": lambda made: Flow.generate(made.step, 0),
    "using": lambda made: Flow.using(made.lent, made.used),
    "async using": lambda made: Flow.using(made.lent_later, made.used),
    "callback": lambda made: Flow.from_callback(partial(made.register, False), max_size=4),
    "later callback": lambda made: Flow.from_callback(
        partial(made.register, True), max_size=2, overflow="drop_oldest" if made.offset % 2 else "error"
    ),
    "publisher": lambda made: Flow.from_publisher(Published(made, "")),
    "later publisher": lambda made: Flow.from_publisher(Published(made, "later")),
    "hasty publisher": lambda made: Flow.from_publisher(Published(made, "hasty")),
    "flawed publisher": lambda made: Flow.from_publisher(Published(made, "flawed")),
    "empty": lambda _: Flow.empty(),
    "never": lambda _: Flow.never(),
    "error": lambda made: Flow.error(made.error),
    "timer": lambda _: Flow.timer(0.7),
    "interval": lambda made: Flow.interval(0.5).take(len(made.items)),
    "deferred": lambda made: Flow.defer(made.deferred),
}


def source(run: Run, described: Source, offset: int) -> AnyFlow:
    """Return the source of a chain."""
    label = f"{described.label}+{offset}" if offset else described.label
    return run.via(KINDS[described.kind](Made(run, described, label, offset)))
