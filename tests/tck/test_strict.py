"""Strict mode: an object that breaks a rule gets an error at once, with the last signals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from reactive_aio import Flow, ProtocolViolation, schedulers
from reactive_aio.strict import KEPT, strict
from reactive_aio.tck import PublisherVerification, SubscriberBlackboxVerification
from tests.subscribers import ByHand, Recorder
from tests.tck.mutants.correct import GoodPublisher, GoodSubscriber
from tests.tck.where import somewhere

# A stream that keeps the rules keeps them when it is judged.


class StrictOurs(PublisherVerification):
    environment = somewhere()

    def create_publisher(self, elements: int) -> Any:
        return strict(Flow.range(elements))

    def create_failed_publisher(self) -> Any:
        return strict(Flow.error(OSError))


class StrictTheirs(PublisherVerification):
    environment = somewhere()

    def create_publisher(self, elements: int) -> Any:
        return strict(GoodPublisher(elements))

    def create_failed_publisher(self) -> Any:
        return strict(GoodPublisher(0, OSError("failed")))


class StrictSubscriber(SubscriberBlackboxVerification):
    environment = somewhere()

    def create_subscriber(self) -> Any:
        return strict(GoodSubscriber())


async def test_a_publisher_that_delivers_too_much_is_stopped() -> None:
    publisher, subscriber = ByHand(), Recorder(request=2)
    strict(publisher).subscribe(subscriber)
    publisher.next("a", "b")

    with pytest.raises(ProtocolViolation, match=r"§1.1 .*\n  seen: 3 elements for a demand of 2"):
        publisher.next("c")
    assert ["a", "b"] == subscriber.items
    assert isinstance(subscriber.error, ProtocolViolation)
    assert 1 == publisher.cancels


async def test_a_publisher_that_goes_on_after_the_end_is_told() -> None:
    publisher = ByHand()
    strict(publisher).subscribe(Recorder(request=2))
    publisher.complete()

    with pytest.raises(ProtocolViolation, match=r"§1.7"):
        publisher.next("late")


async def test_a_subscriber_that_cancels_in_on_complete_is_told() -> None:
    class Hasty(Recorder):
        def on_complete(self) -> None:
            self.cancel()

    publisher = ByHand()
    publisher.subscribe(strict(Hasty()))

    with pytest.raises(ProtocolViolation, match=r"§2.3"):
        publisher.complete()


async def test_an_exception_of_a_signal_is_the_cause_of_the_violation() -> None:
    class Clumsy(Recorder):
        def on_next(self, item: Any) -> None:
            raise OSError(item)

    publisher = ByHand()
    strict(publisher).subscribe(Clumsy(request=1))

    with pytest.raises(ProtocolViolation, match=r"§2.13") as raised:
        publisher.next("dropped")
    assert isinstance(raised.value.__cause__, OSError)


async def test_a_long_stream_is_still_counted_to_the_element() -> None:
    publisher, subscriber = ByHand(), Recorder(request=1000)
    judged: Any = strict(subscriber)
    publisher.subscribe(judged)
    publisher.next(*range(1000))

    assert len(judged.recorder.signals) <= KEPT + 2
    with pytest.raises(ProtocolViolation, match="1001 elements for a demand of 1000") as raised:
        publisher.next("one more")
    assert KEPT == str(raised.value).count("\n    #")


async def test_what_keeps_the_rules_passes_unchanged() -> None:
    subscriber = Recorder(request=500)
    strict(Flow.range(300)).subscribe(subscriber)
    await subscriber.over.wait()

    assert list(range(300)) == subscriber.items
    assert "complete" == subscriber.kinds[-1]
    assert [0, 1, 2] == await Flow.from_publisher(strict(Flow.range(3))).to_list()


async def test_what_is_neither_publisher_nor_subscriber_is_refused() -> None:
    nothing: Any = asyncio.Event()

    with pytest.raises(TypeError, match="strict"):
        strict(nothing)


async def test_2_05_a_second_subscription_is_cancelled_and_the_first_goes_on() -> None:
    first, second, subscriber = ByHand(), ByHand(), Recorder(request=2)
    judged = strict(subscriber)
    first.subscribe(judged)

    with pytest.raises(ProtocolViolation, match=r"§2.12 "):
        second.subscribe(judged)
    first.next("a")
    first.complete()

    assert [0, 1] == [first.cancels, second.cancels]
    assert ["subscribe", "next", "complete"] == subscriber.kinds


@pytest.mark.parametrize("method", ["on_next", "on_error"])
async def test_2_13_none_is_answered_by_a_type_error_that_the_subscriber_hears_of(method: str) -> None:
    publisher, subscriber = ByHand(), Recorder(request=1)
    strict(publisher).subscribe(subscriber)

    with pytest.raises(TypeError, match=rf"§2.13 .*\n  seen: {method}\(None\)"):
        getattr(publisher.subscribers[0], method)(None)
    assert isinstance(subscriber.error, TypeError)
    assert 1 == publisher.cancels


def test_2_13_no_subscription_is_answered_by_a_type_error() -> None:
    subscriber = Recorder()
    nothing: Any = None

    with pytest.raises(TypeError, match=r"§2.13"):
        strict(subscriber).on_subscribe(nothing)
    assert [] == subscriber.signals


async def test_after_a_violation_request_and_cancel_raise_nothing() -> None:
    publisher, subscriber = ByHand(), Recorder(request=1)
    strict(publisher).subscribe(subscriber)
    with pytest.raises(ProtocolViolation):
        publisher.next("a", "too many")

    subscriber.request(1)
    subscriber.cancel()

    assert ["subscribe", "next", "error"] == subscriber.kinds


async def test_1_07_a_subscriber_that_has_heard_the_end_hears_of_no_violation() -> None:
    publisher, subscriber = ByHand(), Recorder(request=1)
    strict(publisher).subscribe(subscriber)
    publisher.complete()

    for _ in range(2):
        with pytest.raises(ProtocolViolation, match=r"§1.7"):
            publisher.next("late")
    assert ["subscribe", "complete"] == subscriber.kinds


async def test_1_09_a_subscriber_hears_of_a_publisher_that_speaks_before_on_subscribe() -> None:
    class Hasty(ByHand):
        def subscribe(self, subscriber: Any) -> None:
            self.subscribers.append(subscriber)

    publisher, subscriber = Hasty(), Recorder(request=1)
    strict(publisher).subscribe(subscriber)

    with pytest.raises(ProtocolViolation, match=r"§1.9"):
        publisher.next("early")
    with pytest.raises(ProtocolViolation, match=r"§1.9"):
        publisher.subscribers[0].on_subscribe(publisher)
    assert ["subscribe", "error"] == subscriber.kinds
    assert 1 == publisher.cancels


class MuteError(Exception):
    """Can't be shown."""

    def __repr__(self) -> str:
        raise KeyError("repr")


async def test_a_violation_is_reported_whatever_the_repr_of_what_was_signalled_does() -> None:
    publisher, subscriber = ByHand(), Recorder(request=1)
    strict(publisher).subscribe(subscriber)
    publisher.error(error := MuteError())

    with pytest.raises(ProtocolViolation, match=r"§1.7 (.*\n)*.*<MuteError>"):
        publisher.complete()
    assert error is subscriber.error


async def test_2_13_none_is_told_from_an_element_that_is_shown_as_none() -> None:
    class Shown:
        def __repr__(self) -> str:
            return "None"

    publisher, subscriber = ByHand(), Recorder(request=1)
    strict(publisher).subscribe(subscriber)
    publisher.next(item := Shown())

    assert [item] == subscriber.items


class OwnBaseError(BaseException):
    """Of a class that `except Exception` does not catch."""


@pytest.mark.parametrize("error", [OwnBaseError(), asyncio.CancelledError(), MuteError()], ids=type)
async def test_an_exception_of_a_signal_is_a_violation_whatever_its_class(error: BaseException) -> None:
    class Raising(Recorder):
        def on_next(self, item: Any) -> None:
            raise error

    publisher = ByHand()
    strict(publisher).subscribe(Raising(request=1))

    with pytest.raises(ProtocolViolation, match=r"§2.13") as raised:
        publisher.next("dropped")
    assert error is raised.value.__cause__


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_what_ends_the_program_is_raised_as_it_is(error: type[BaseException]) -> None:
    class Leaving(Recorder):
        def on_next(self, item: Any) -> None:
            raise error

    publisher = ByHand()
    strict(publisher).subscribe(Leaving(request=1))

    with pytest.raises(error):
        publisher.next("last")


class Cleaning:
    """A source without an end, whose cleanup takes many turns of its loop."""

    cleaned: bool = False

    async def items(self) -> AsyncIterator[int]:
        try:
            for n in count():
                yield n
        finally:
            for _ in range(3000):
                await asyncio.sleep(0)
            self.cleaned = True


async def test_an_awaited_end_behind_strict_waits_for_the_cleanup_before_it() -> None:
    source = Cleaning()

    assert [0, 1] == await Flow.from_async_iterable(source.items()).strict().take(2).to_list()
    assert source.cleaned
    assert {asyncio.current_task()} == asyncio.all_tasks()


async def test_no_thread_before_strict_outlives_the_awaited_end() -> None:
    source, thread = Cleaning(), schedulers.thread("before strict")
    flow = Flow.from_async_iterable(source.items()).subscribe_on(thread)

    assert [0, 1] == await flow.strict().take(2).to_list()
    assert source.cleaned
    assert "before strict" not in {each.name for each in threading.enumerate()}


async def test_an_element_that_is_none_fails_a_judged_flow() -> None:
    with pytest.raises(TypeError, match=r"§2.13"):
        await Flow.of(1, None, 2).strict().to_list()


async def test_a_violation_shows_elements_by_their_types_where_messages_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTIVE_AIO_SHOW_ELEMENTS", "0")
    publisher = ByHand()
    strict(publisher).subscribe(Recorder(request=1))

    with pytest.raises(ProtocolViolation, match=r"on_next\(str\)") as raised:
        publisher.next("a secret", "another secret")
    assert "secret" not in str(raised.value)


async def test_a_publisher_that_signals_on_a_thread_of_its_own_breaks_no_rule() -> None:
    with schedulers.thread("signals") as thread:
        for flow in (Flow.range(3).publish_on(thread), Flow.range(3).subscribe_on(thread)):
            assert [0, 1, 2] == await Flow.from_publisher(strict(flow)).to_list()
