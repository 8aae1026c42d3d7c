"""The findings of the verification suite in another library: the streams of rsocket, which were written without it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import reactivex
from attrs import field, frozen
from reactivestreams.subscriber import Subscriber
from rsocket.awaitable.collector_subscriber import CollectorSubscriber
from rsocket.reactivex.back_pressure_publisher import (
    from_observable_with_backpressure,
    observable_from_async_generator,
    observable_to_publisher,
)
from rsocket.reactivex.from_rsocket_publisher import RxSubscriberFromObserver
from rsocket.streams.empty_stream import EmptyStream
from rsocket.streams.error_stream import ErrorStream
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
from rsocket.streams.stream_from_generator import StreamFromGenerator

from reactive_aio import UNBOUNDED, Flow, Subscription
from reactive_aio.spec import quote
from reactive_aio.tck import PublisherVerification, SubscriberBlackboxVerification, Verification, verify
from tests.tck.where import somewhere

VERSION = "0.4.20"
PAGE = Path(__file__).parents[2] / "docs" / "verify-your-own-publisher.md"

# A cancel on another thread makes a coroutine that it can't start: one of the findings.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine method 'aclose':RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


# -- the adapter: what differs in the signatures, and nothing else


class Told(Subscriber):
    """One of our subscribers, as rsocket speaks to it: the last element may bring the end with it."""

    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscriber.on_subscribe(subscription)

    def on_next(self, value: Any, is_complete: bool = False) -> None:
        self.subscriber.on_next(value)
        if is_complete:
            self.subscriber.on_complete()

    def on_error(self, exception: Exception) -> None:
        self.subscriber.on_error(exception)

    def on_complete(self) -> None:
        self.subscriber.on_complete()


@frozen(eq=False)
class Adapted:
    """A publisher of rsocket, as we speak to it."""

    publisher: Any

    def subscribe(self, subscriber: Any) -> None:
        self.publisher.subscribe(None if subscriber is None else Told(subscriber))


def adapted(publisher: Any) -> Any:
    """One of ours stands in where rsocket's can't: a stream of many elements, or one that fails."""
    return publisher if isinstance(publisher, Flow) else Adapted(publisher)


# -- what is verified


def marked(n: int) -> Iterator[tuple[int, bool]]:
    for item in range(n):
        yield item, item == n - 1


async def marked_async(n: int) -> AsyncIterator[tuple[int, bool]]:
    for item in range(n):
        yield item, item == n - 1


async def plain_async(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


def failing() -> Iterator[Any]:
    raise OSError("failed")
    yield


async def failing_async() -> AsyncIterator[Any]:
    raise OSError("failed")
    yield


def under_demand(make: Callable[[], AsyncIterator[Any]]) -> Any:
    return observable_to_publisher(
        from_observable_with_backpressure(lambda demand: observable_from_async_generator(make(), demand))
    )


def publisher(make: Callable[[int], Any], fail: Callable[[], Any], *, most: int = UNBOUNDED - 1) -> type[Verification]:
    class Publisher(PublisherVerification):
        max_elements_from_publisher = most

        def create_publisher(self, elements: int) -> Any:
            return adapted(make(elements))

        def create_failed_publisher(self) -> Any:
            return adapted(fail())

    return Publisher


def subscriber(make: Callable[[], Any], *, needs: int | None = None, asks: bool = True) -> type[Verification]:
    # No adapter: as a subscriber it can be called the way we call ours.
    class Blackbox(SubscriberBlackboxVerification):
        elements_needed = needs

        def create_subscriber(self) -> Any:
            return make()

        def trigger_request(self, subscriber: Any) -> None:
            if not asks:
                subscriber.request(1)

    return Blackbox


@frozen
class Foreign:
    name: str
    verification: type[Verification] = field(repr=False)
    broken: dict[str, str] = field(repr=False)
    """The evidence of each broken rule."""
    left_open: frozenset[str] = field(default=frozenset(), converter=frozenset)
    """Rules whose optional tests don't hold."""

    def __str__(self) -> str:
        return self.name


FOREIGN: list[Foreign] = []


def entry(
    name: str, verification: type[Verification], broken: dict[str, str], left_open: set[str] | None = None
) -> None:
    FOREIGN.append(Foreign(name, verification, broken, left_open or set()))


OF_ALL_STREAMS = {
    "1.6": "the publisher still refers to the subscriber after on_complete",
    "1.9": "subscribe(None) did not raise TypeError but raised AttributeError",
    "1.10": "what was requested in stream 1 was delivered in stream 4",
    "3.9": "was not answered by on_error",
    "3.13": "the publisher still refers to the subscriber after cancel",
}
OF_GENERATORS = OF_ALL_STREAMS | {
    "1.5": "[Payload(None, None)] from a stream that has no elements",
    "3.15": "cancel raised AttributeError",
}
OF_OBSERVABLES = OF_ALL_STREAMS | {
    "3.2": "request raised AttributeError",
    "3.14": "begun after another was cancelled, got neither elements nor an end",
}

entry(
    "StreamFromGenerator",
    publisher(lambda n: StreamFromGenerator(lambda: marked(n)), lambda: StreamFromGenerator(failing)),
    OF_GENERATORS,
    {"1.11"},
)
entry(
    "StreamFromAsyncGenerator",
    publisher(
        lambda n: StreamFromAsyncGenerator(lambda: marked_async(n)), lambda: StreamFromAsyncGenerator(failing_async)
    ),
    OF_GENERATORS | {"3.5": "cancel raised RuntimeError('no running event loop') on another thread"},
    {"1.11"},
)
entry(
    "BackPressurePublisher",
    publisher(
        lambda n: observable_to_publisher(reactivex.from_iterable(range(n))),
        lambda: observable_to_publisher(reactivex.throw(OSError("failed"))),
    ),
    OF_OBSERVABLES,
    {"1.5", "1.11"},
)
entry(
    "InternalBackPressurePublisher",
    publisher(lambda n: under_demand(lambda: plain_async(n)), lambda: under_demand(failing_async)),
    OF_OBSERVABLES,
    {"1.5", "1.11"},
)
entry(
    "EmptyStream",
    publisher(lambda _: EmptyStream(), lambda: Flow.error(OSError("failed")), most=0),
    {"1.6": "request after on_complete had an effect: on_complete"},
)
entry(
    "ErrorStream",
    publisher(Flow.range, lambda: ErrorStream(OSError("failed"))),
    {"1.6": "request after on_error had an effect: on_error"},
)
entry(
    "CollectorSubscriber",
    subscriber(lambda: CollectorSubscriber(limit_rate=1, limit_count=3), needs=3, asks=False),
    {"2.5": "it did not cancel the second subscription", "2.13": "did not raise TypeError but returned"},
)
entry(
    "RxSubscriberFromObserver",
    subscriber(lambda: RxSubscriberFromObserver(reactivex.Observer(on_error=lambda _: None), limit_rate=1)),
    {"2.5": "it requested from the second subscription", "2.13": "did not raise TypeError"},
)


@pytest.mark.costly
@pytest.mark.parametrize("foreign", FOREIGN, ids=str)
def test_exactly_the_rules_that_a_foreign_stream_breaks_are_named_and_quoted(
    foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign.verification, "environment", somewhere())
    results = verify(foreign.verification)
    told = {
        outcome: [(result.about.rule or "", result.text) for result in results if result.outcome == outcome]
        for outcome in ("broken", "does not hold")
    }

    assert VERSION == version("rsocket"), "other findings may be right for another version"
    assert foreign.broken.keys() == {rule for rule, _ in told["broken"]}
    assert foreign.left_open == {rule for rule, _ in told["does not hold"]}
    for rule, text in told["broken"]:
        assert quote(rule) in text
        assert foreign.broken[rule] in text


def test_the_page_has_the_findings() -> None:
    text = PAGE.read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([\d., ]+) \|$", text, re.MULTILINE)

    assert {foreign.name: ", ".join(sorted(foreign.broken, key=place)) for foreign in FOREIGN} == dict(rows)
    assert f"rsocket {VERSION}" in text


def place(rule: str) -> list[int]:
    return [int(part) for part in rule.split(".")]
