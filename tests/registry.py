"""Everything of ours that makes or changes a flow: what conformance, typing, demand and leak tests go through.

An entry is named for the method that it stands for. It builds, for a number of elements, a flow that has exactly so many
elements, none of them None. Each flow in it goes through ``via``. By this a test leaves the steps fused, or puts
something between them: it may have them speak the contract to each other.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from attrs import define, field, frozen

from reactive_aio import Emitter, Flow, schedulers
from reactive_aio._fusion import Stage
from reactive_aio.schedulers.base import Scheduler, Workers
from reactive_aio.spec import Publisher

AnyFlow = Flow[Any]
Via = Callable[[AnyFlow], AnyFlow]
Places = Callable[[], Scheduler]


class FailureError(Exception):
    """How the flows of this registry fail."""


@frozen
class Settings:
    """The settings by which an entry may vary."""

    prefetch: int = 256
    thread: Scheduler | None = None
    """A scheduler on another thread, for the entries that need one."""
    loop: AbstractEventLoop | None = None
    """The event loop of that thread."""
    pool: Workers | None = None
    """The workers, for the entries that need some."""


Make = Callable[[int, Via, Settings], AnyFlow]


@frozen
class Entry:
    """One method of Flow, or one way to use it."""

    method: str
    """The name of the method on Flow."""
    make: Make
    """Makes a flow of so many elements."""
    fail: Make
    """Makes a flow that fails without an element; the number is not used."""
    variant: str = ""
    prefetches: bool = False
    """Whether the entry has a boundary whose prefetch can be set."""
    threaded: bool = False
    """Whether the entry needs a scheduler on another thread."""
    pool: str = ""
    """The kind of workers that the entry needs, by the name of the function that makes them."""
    ends_late: bool = False
    """Whether the end is known only when one more element is wanted."""
    recovers: bool = False
    """Whether a failure of what it reads may be answered by going on."""
    passes: bool = False
    """Whether each element of its one input comes out as it is, and nothing else does."""
    mixes: bool = False
    """Whether it reads several inputs at a time, so that what comes of each is a matter of time."""
    kind: str = field(default="operator")

    def __str__(self) -> str:
        return f"{self.method}{'-' if self.variant else ''}{self.variant}"


REGISTRY: list[Entry] = []

NOT_ENTERED = {
    "from_blocking": "is from_iterable with subscribe_on, which are entered, and a thread for each subscription",
    "from_spark": "starts a job for each subscription, so it is left to the tests of the Spark engine",
}
"""Public methods of Flow that give a flow and need no entry, and why."""


def new_failure() -> FailureError:
    """Make an error: one that is kept in a flow would keep, by its traceback, all that it has passed through."""
    return FailureError("failed")


def failed(via: Via) -> AnyFlow:
    """Return a flow that fails at once."""
    return via(Flow.error(new_failure))


def source(method: str, make: Make, fail: Make | None = None, **options: Any) -> None:
    """Enter a source."""
    REGISTRY.append(Entry(method, make, fail or (lambda _, via, __: failed(via)), kind="source", **options))


def operator(method: str, apply: Callable[[AnyFlow], AnyFlow], *, passes: bool = True, **options: Any) -> None:
    """Enter an operator by what leaves the number of elements as it is, and ``passes`` them on as they are."""
    REGISTRY.append(
        Entry(
            method,
            lambda n, via, _: via(apply(via(Flow.range(n)))),
            lambda _, via, __: via(apply(failed(via))),
            passes=passes,
            **options,
        )
    )


def wide(method: str, make: Make, fail: Make, **options: Any) -> None:
    """Enter an operator that changes the number of elements, or that has several inputs."""
    REGISTRY.append(Entry(method, make, fail, **options))


def boundary(method: str, apply: Callable[[AnyFlow, Settings], AnyFlow], **options: Any) -> None:
    """Enter an asynchronous boundary or a placement."""
    REGISTRY.append(
        Entry(
            method,
            lambda n, via, settings: via(via(apply(via(Flow.range(n)), settings)).map(same)),
            lambda _, via, settings: via(via(apply(failed(via), settings)).map(same)),
            kind="boundary",
            passes=True,
            **options,
        )
    )


def same(item: Any) -> Any:
    """Change nothing."""
    return item


# -- what the sources read


@frozen
class Counting:
    """An async iterable that can be read any number of times; it suspends now and then."""

    stop: int

    async def __aiter__(self) -> AsyncIterator[int]:
        for n in range(self.stop):
            yield n


def numbers(stop: int) -> Iterator[int]:
    """Generate numbers."""
    yield from range(stop)


def emitting(stop: int) -> Any:
    """Return a producer for Flow.create."""

    async def produce(emit: Any) -> None:
        for n in range(stop):
            await emit(n)

    return produce


async def raising(_: Any) -> None:
    """Fail as a producer."""
    raise FailureError("failed")


def raise_failure(*_: Any) -> Any:
    """Fail as a function."""
    raise FailureError("failed")


@frozen(eq=False)
class ByContract:
    """A publisher of somebody else's, which delivers from inside request."""

    flow: Callable[[], Publisher[Any]]

    def subscribe(self, subscriber: Any) -> None:
        """Pass on."""
        self.flow().subscribe(subscriber)


@frozen
class Doubling(Stage[Any, Any]):
    """A stage of one's own, written by ``apply``."""

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        """Pass on."""
        yield from items

    @property
    def pending(self) -> bool:
        """Return False: there is one for one, so that the stream ends with the last."""
        return False


@define(eq=False)
class Polled:
    """A client that counts, and opens and closes itself."""

    stop: int
    at: int = 0

    async def __aenter__(self) -> Polled:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left to be done."""

    async def fetch(self, n: int) -> range:
        """Return as many as are wanted."""
        await asyncio.sleep(0)
        if self.at == self.stop:
            raise StopAsyncIteration
        start, self.at = self.at, min(self.at + n, self.stop)
        return range(start, self.at)

    async def idle(self) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""


def calling_back(stop: int) -> Callable[[Emitter[int]], None]:
    """Return a way to register for callbacks that come at once."""

    def register(emitter: Emitter[int]) -> None:
        for n in range(stop):
            emitter.next(n)
        emitter.complete()

    return register


def flaky() -> Callable[[int, Via], AnyFlow]:
    """Return a maker of flows whose every other subscription fails at once."""

    def make(n: int, via: Via) -> AnyFlow:
        attempts: list[int] = []

        def attempt() -> AnyFlow:
            attempts.append(1)
            return failed(via) if len(attempts) % 2 else via(Flow.range(n))

        return via(Flow.defer(attempt))

    return make


# -- sources

source("of", lambda n, via, _: via(Flow.of(*range(n))))
source("range", lambda n, via, _: via(Flow.range(n)))
source("from_iterable", lambda n, via, _: via(Flow.from_iterable(list(range(n)))))
source(
    "from_iterable",
    lambda n, via, _: via(Flow.defer(lambda: via(Flow.from_iterable(numbers(n))))),
    lambda _, via, __: via(Flow.defer(lambda: via(Flow.from_iterable(map(raise_failure, [1]))))),
    variant="generator",
    ends_late=True,
)
source("empty", lambda n, via, _: via(via(Flow.empty()).concat(via(Flow.range(n)))))
source("never", lambda n, via, _: via(via(via(Flow.range(n)).concat(via(Flow.never()))).take(n)))
source("error", lambda n, via, _: via(failed(via).on_error_resume_next(via(Flow.range(n)))), recovers=True)
source(
    "defer",
    lambda n, via, _: via(Flow.defer(lambda: via(Flow.range(n)))),
    lambda _, via, __: via(Flow.defer(raise_failure)),
)
source(
    "from_async_iterable",
    lambda n, via, _: via(Flow.from_async_iterable(Counting(n))),
    ends_late=True,
)
source(
    "create",
    lambda n, via, _: via(Flow.create(emitting(n))),
    lambda _, via, __: via(Flow.create(raising)),
)
source(
    "from_publisher",
    lambda n, via, _: via(Flow.from_publisher(ByContract(lambda: Flow.range(n)))),
    lambda _, via, __: via(Flow.from_publisher(ByContract(lambda: Flow.error(new_failure)))),
)
source(
    "from_callback",
    lambda n, via, _: via(Flow.from_callback(calling_back(n), max_size=max(n, 1))),
    lambda _, via, __: via(Flow.from_callback(raise_failure)),
)
# Conformance waits for a timer that is due within a second, so the heartbeat is longer.
source(
    "from_poll",
    lambda n, via, _: via(Flow.from_poll(lambda: Polled(n), heartbeat=60.0)),
    lambda _, via, __: via(Flow.from_poll(raise_failure)),
    ends_late=True,
)
# A source that can't be slowed down is finite here. The operators behind it keep all elements: conformance asks one by one.
source(
    "interval",
    lambda n, via, _: via(via(via(Flow.interval(1e-6)).take(n)).on_backpressure_buffer(max(n, 1))),
)

# -- operators

operator("map", lambda flow: flow.map(same))
operator("filter", lambda flow: flow.filter(lambda _: True))
wide(
    "filter",
    lambda n, via, _: via(via(Flow.range(2 * n)).filter(lambda n: n % 2)),
    lambda _, via, __: via(failed(via).filter(bool)),
    variant="half",
)
operator("flat_map_iterable", lambda flow: flow.flat_map_iterable(lambda item: (item,)))
wide(
    "flat_map_iterable",
    lambda n, via, _: via(via(Flow.range(2 * n)).flat_map_iterable(lambda item: [item] * (item % 2))),
    lambda _, via, __: via(via(Flow.range(1)).flat_map_iterable(raise_failure)),
    variant="some-empty",
)
wide(
    "buffer",
    lambda n, via, _: via(via(Flow.range(2 * n)).buffer(2)),
    lambda _, via, __: via(failed(via).buffer(2)),
)
wide(
    "take",
    lambda n, via, _: via(via(Flow.range(n + 5)).take(n)),
    lambda _, via, __: via(failed(via).take(1)),
)
wide(
    "skip",
    lambda n, via, _: via(via(Flow.range(n + 3)).skip(3)),
    lambda _, via, __: via(failed(via).skip(1)),
)
wide(
    "concat",
    lambda n, via, _: via(via(Flow.range(n // 2)).concat(via(Flow.range(n // 2, n)))),
    lambda _, via, __: via(via(Flow.empty()).concat(failed(via))),
)
wide(
    "repeat",
    lambda n, via, _: via(via(Flow.of("again")).repeat(n)),
    lambda _, via, __: via(failed(via).repeat(3)),
)
wide(
    "retry",
    lambda n, via, _: via(flaky()(n, via).retry()),
    lambda _, via, __: via(failed(via).retry(2)),
    recovers=True,
)
wide(
    "on_error_resume_next",
    lambda n, via, _: via(failed(via).on_error_resume_next(lambda _: via(Flow.range(n)))),
    lambda _, via, __: via(failed(via).on_error_resume_next(failed(via))),
    recovers=True,
)
operator("on_backpressure_buffer", lambda flow: flow.on_backpressure_buffer(10_000))
# These keep less than all, so an operator that keeps all asks them for it.
operator(
    "on_backpressure_drop",
    lambda flow: flow.on_backpressure_drop().on_backpressure_buffer(10_000),
)
operator(
    "on_backpressure_error",
    lambda flow: flow.on_backpressure_error().on_backpressure_buffer(10_000),
)
wide(
    "on_backpressure_latest",
    lambda n, via, _: via(via(via(Flow.of("latest")).on_backpressure_latest()).repeat(n)),
    lambda _, via, __: via(failed(via).on_backpressure_latest()),
)
operator("strict", lambda flow: flow.strict())
operator("then", lambda flow: flow.then(Doubling()))

# -- boundaries and schedulers

boundary(
    "publish_on",
    lambda flow, settings: flow.publish_on(schedulers.current(), prefetch=settings.prefetch),
    variant="current",
    prefetches=True,
)
boundary(
    "publish_on",
    lambda flow, settings: flow.publish_on(needed(settings), prefetch=settings.prefetch),
    variant="thread",
    prefetches=True,
    threaded=True,
)
boundary(
    "publish_on",
    lambda flow, settings: flow.publish_on(needed(settings), prefetch=settings.prefetch).publish_on(
        schedulers.current(), prefetch=settings.prefetch
    ),
    variant="there-and-back",
    prefetches=True,
    threaded=True,
)
boundary(
    "publish_on",
    lambda flow, settings: flow.publish_on(schedulers.loop(needed_loop(settings)), prefetch=settings.prefetch),
    variant="loop",
    prefetches=True,
    threaded=True,
)
boundary(
    "publish_on",
    lambda flow, settings: flow.publish_on(needed_pool(settings), prefetch=settings.prefetch),
    variant="threads",
    prefetches=True,
    pool="threads",
)
boundary(
    "publish_on",
    lambda flow, settings: flow.publish_on(needed_pool(settings), prefetch=settings.prefetch),
    variant="processes",
    prefetches=True,
    pool="processes",
)
boundary("subscribe_on", lambda flow, _: flow.subscribe_on(schedulers.current()), variant="current")
boundary("subscribe_on", lambda flow, settings: flow.subscribe_on(needed(settings)), variant="thread", threaded=True)


def needed(settings: Settings) -> Scheduler:
    """Return the scheduler on another thread."""
    assert settings.thread is not None, "this entry needs a scheduler on another thread"
    return settings.thread


def needed_loop(settings: Settings) -> AbstractEventLoop:
    """Return the event loop of another thread."""
    assert settings.loop is not None, "this entry needs the event loop of another thread"
    return settings.loop


def needed_pool(settings: Settings) -> Workers:
    """Return the workers."""
    assert settings.pool is not None, "this entry needs workers"
    return settings.pool


def entered(name: str) -> bool:
    """Return whether a method has an entry."""
    return any(entry.method == name for entry in REGISTRY)


# The entries of the operators are many, and stand on what is above.
import tests.registry_awaiting  # noqa: E402 # pyright: ignore[reportUnusedImport] - it enters them
import tests.registry_gathering  # noqa: E402 # pyright: ignore[reportUnusedImport] - it enters them
import tests.registry_stages  # noqa: E402 # pyright: ignore[reportUnusedImport] - it enters them
import tests.registry_time  # noqa: E402, F401 # pyright: ignore[reportUnusedImport] - likewise
