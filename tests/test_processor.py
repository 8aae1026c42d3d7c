"""processor(chain): between a publisher and a subscriber of other libraries. Either may come first."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any, assert_type

import pytest

from reactive_aio import (
    UNBOUNDED,
    Flow,
    Processor,
    ProtocolViolation,
    SourceConsumedError,
    Subscription,
    processor,
    schedulers,
)
from reactive_aio.hooks import using
from tests.subscribers import ByHand, Recorder, idle

AnyProcessor = Processor[Any, Any]


def doubling() -> AnyProcessor:
    return processor(lambda flow: flow.map(lambda n: 2 * n))


async def between(middle: AnyProcessor, request: int = 0) -> tuple[ByHand, Recorder]:
    """Put a processor between a publisher and a subscriber."""
    publisher, subscriber = ByHand(), Recorder(request)
    publisher.subscribe(middle)
    middle.subscribe(subscriber)
    await idle()
    return publisher, subscriber


# -- who comes first


async def test_the_publisher_may_come_first() -> None:
    publisher, subscriber = await between(doubling(), request=2)
    publisher.next(1, 2)
    publisher.complete()
    await idle()

    assert [2, 4] == subscriber.items
    assert ["subscribe", "next", "next", "complete"] == subscriber.kinds


async def test_the_subscriber_may_come_first_and_its_demand_waits_for_the_publisher() -> None:
    middle, publisher, subscriber = doubling(), ByHand(), Recorder(2)
    middle.subscribe(subscriber)
    await idle()
    subscriber.request(3)
    await idle()
    publisher.subscribe(middle)
    await idle()

    assert [5] == publisher.requests
    publisher.next(1)
    await idle()
    assert [2] == subscriber.items


async def test_an_end_before_the_subscriber_waits_for_it() -> None:
    middle, publisher, subscriber = doubling(), ByHand(), Recorder(1)
    publisher.subscribe(middle)
    publisher.complete()
    middle.subscribe(subscriber)
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds
    assert ([], 0) == (publisher.requests, publisher.cancels), "its stream was over"


async def test_a_failure_before_the_subscriber_waits_for_it() -> None:
    dropped: list[BaseException] = []
    middle, publisher, subscriber = doubling(), ByHand(), Recorder(1)
    publisher.subscribe(middle)
    failure = OSError("failed")
    publisher.error(failure)
    with using(on_error_dropped=dropped.append):
        middle.subscribe(subscriber)
        await idle()

    assert failure is subscriber.error
    assert [] == dropped, "it was heard"
    assert ([], 0) == (publisher.requests, publisher.cancels), "its stream was over"


# -- demand


@pytest.mark.parametrize("n", [1, 7, UNBOUNDED])
async def test_demand_is_passed_one_for_one(n: int) -> None:
    publisher, subscriber = await between(doubling())
    assert [] == publisher.requests

    subscriber.request(n)
    await idle()

    assert [n] == publisher.requests


async def test_what_the_chain_drops_is_asked_for_again() -> None:
    publisher, subscriber = await between(processor(lambda flow: flow.filter(lambda n: n % 2)), request=1)
    publisher.next(2)
    await idle()
    publisher.next(3)
    await idle()

    assert [1, 1] == publisher.requests
    assert [3] == subscriber.items


# -- cancel


async def test_cancel_is_passed_on() -> None:
    publisher, subscriber = await between(doubling(), request=2)
    publisher.next(1)
    subscriber.cancel()
    await idle()

    assert 1 == publisher.cancels


class Leaver(Recorder):
    """Cancels from inside on_subscribe."""

    def on_subscribe(self, subscription: Subscription) -> None:
        subscription.cancel()


async def test_cancel_from_inside_on_subscribe_reaches_a_publisher_that_nothing_was_asked_of() -> None:
    middle, publisher = doubling(), ByHand()
    publisher.subscribe(middle)
    middle.subscribe(Leaver())
    await idle()

    assert ([], 1) == (publisher.requests, publisher.cancels)


async def test_a_publisher_that_has_ended_is_not_cancelled() -> None:
    middle, publisher = doubling(), ByHand()
    publisher.subscribe(middle)
    publisher.complete()
    middle.subscribe(Leaver())
    await idle()

    assert 0 == publisher.cancels


async def test_a_publisher_that_comes_after_cancel_is_cancelled() -> None:
    middle, publisher, subscriber = doubling(), ByHand(), Recorder(1)
    middle.subscribe(subscriber)
    subscriber.cancel()
    await idle()
    publisher.subscribe(middle)

    assert ([], 1) == (publisher.requests, publisher.cancels)


async def test_a_publisher_that_the_chain_has_not_come_to_is_cancelled_with_it() -> None:
    publisher, subscriber = await between(processor(lambda flow: Flow.of("first").concat(flow)), request=1)
    assert ["first"] == subscriber.items
    subscriber.cancel()
    await idle()

    assert ([], 1) == (publisher.requests, publisher.cancels)


async def test_a_chain_that_has_enough_cancels_the_publisher() -> None:
    publisher, subscriber = await between(processor(lambda flow: flow.take(1)), request=5)
    publisher.next(1)
    await idle()

    assert ["subscribe", "next", "complete"] == subscriber.kinds
    assert 1 == publisher.cancels


def apart(flow: Flow[Any]) -> Flow[Any]:
    return Flow.from_publisher(flow)


LATE_READERS: dict[str, Any] = {
    "flows that are apart": lambda flow: apart(apart(apart(flow).map(str)).map(str)),
    "race": lambda flow: apart(apart(flow).race(apart(Flow.never()))),
    "take_until_other": lambda flow: apart(apart(flow).take_until_other(apart(Flow.never()))),
}


@pytest.mark.parametrize(
    "leave", [lambda subscription: subscription.cancel(), lambda subscription: subscription.request(-1)]
)
@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("chain", LATE_READERS)
async def test_who_leaves_before_the_chain_has_come_to_its_input_is_told_of_no_error(
    chain: str, turns: int, leave: Any
) -> None:
    dropped: list[BaseException] = []
    with using(on_error_dropped=dropped.append):
        middle, publisher, subscriber = processor(LATE_READERS[chain]), ByHand(), Recorder()
        publisher.subscribe(middle)
        middle.subscribe(subscriber)
        for _ in range(turns):
            await asyncio.sleep(0)
        if subscriber.subscription is not None:
            leave(subscriber.subscription)
            await idle()
            assert 1 == publisher.cancels
    assert [] == dropped


# -- errors


async def test_the_failure_of_a_function_keeps_its_type_and_cancels_the_publisher() -> None:
    publisher, subscriber = await between(processor(lambda flow: flow.map(lambda n: 1 // n)), request=5)
    publisher.next(0)
    await idle()

    assert isinstance(subscriber.error, ZeroDivisionError)
    assert 1 == publisher.cancels


async def test_the_failure_of_the_publisher_is_passed_on_without_demand() -> None:
    publisher, subscriber = await between(doubling())
    failure = OSError("failed")
    publisher.error(failure)
    await idle()

    assert failure is subscriber.error


async def test_a_chain_may_recover() -> None:
    publisher, subscriber = await between(processor(lambda flow: flow.on_error_resume_next(Flow.of("instead"))), 1)
    publisher.error(OSError("failed"))
    await idle()

    assert ["instead"] == subscriber.items
    assert ["subscribe", "next", "complete"] == subscriber.kinds


async def test_a_failure_after_the_stream_is_over_goes_to_the_hook() -> None:
    dropped: list[BaseException] = []
    with using(on_error_dropped=dropped.append):
        publisher, subscriber = await between(doubling(), request=1)
        subscriber.cancel()
        await idle()
        failure = OSError("too late")
        publisher.error(failure)

    assert [failure] == dropped


async def test_an_element_under_way_when_the_stream_is_over_is_discarded() -> None:
    dropped, discarded = list[BaseException](), list[object]()
    with using(on_error_dropped=dropped.append, on_discard=discarded.append):
        publisher, subscriber = await between(doubling(), request=1)
        subscriber.cancel()
        await idle()
        publisher.next(1)
        await idle()

    assert ([], [1]) == (dropped, discarded)


async def test_a_failure_that_waits_for_a_subscriber_that_does_not_stay_goes_to_the_hook() -> None:
    dropped: list[BaseException] = []
    middle, publisher, failure = doubling(), ByHand(), OSError("unheard")
    publisher.subscribe(middle)
    publisher.error(failure)
    with using(on_error_dropped=dropped.append):
        middle.subscribe(Leaver())
        await idle()

    assert [failure] == dropped


async def test_of_two_failures_before_the_subscriber_the_first_waits_and_the_second_goes_to_the_hook() -> None:
    dropped: list[BaseException] = []
    middle, publisher, subscriber = doubling(), ByHand(), Recorder(1)
    first, second = OSError("first"), OSError("second")
    publisher.subscribe(middle)
    with using(on_error_dropped=dropped.append):
        publisher.error(first)
        publisher.error(second)
    middle.subscribe(subscriber)
    await idle()

    assert first is subscriber.error
    assert [second] == dropped


async def test_none_from_the_publisher_is_refused_by_its_rule() -> None:
    publisher, subscriber = await between(doubling(), request=1)
    with pytest.raises(TypeError, match=r"§2\.13"):
        publisher.next(None)
    await idle()

    assert "§2.13" in str(subscriber.error)
    assert 1 == publisher.cancels


async def test_none_from_the_chain_is_refused_by_the_name_of_its_operator() -> None:
    publisher, subscriber = await between(processor(lambda flow: flow.map(lambda _: None)), request=1)
    publisher.next(1)
    await idle()

    assert "map(" in str(subscriber.error)
    assert __file__.rpartition("/")[2] in str(subscriber.error)
    assert 1 == publisher.cancels


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_refused_before_anybody_listens_too(signal: str) -> None:
    with pytest.raises(TypeError, match=r"§2\.13"):
        getattr(doubling(), signal)(None)


async def test_an_element_before_anybody_can_have_asked_for_it_is_a_violation() -> None:
    middle, publisher, subscriber, discarded = doubling(), ByHand(), Recorder(1), list[object]()
    publisher.subscribe(middle)
    with using(on_discard=discarded.append):
        publisher.next(1)
    middle.subscribe(subscriber)
    await idle()

    assert isinstance(subscriber.error, ProtocolViolation)
    assert ([1], 1) == (discarded, publisher.cancels)


# -- one of each


async def test_a_second_publisher_is_cancelled_and_the_first_goes_on() -> None:
    middle = doubling()
    publisher, subscriber = await between(middle, request=1)
    second = ByHand()
    second.subscribe(middle)
    publisher.next(1)
    await idle()

    assert (1, 0) == (second.cancels, publisher.cancels)
    assert [2] == subscriber.items


class Unwilling(ByHand):
    """A publisher whose subscription can't be cancelled."""

    def cancel(self) -> None:
        raise GeneratorExit("can't be cancelled")


@pytest.mark.parametrize("when", ["second", "too late", "on_next"])
async def test_3_15_an_exception_of_a_cancel_goes_to_the_hook_and_not_to_the_publisher(when: str) -> None:
    dropped, middle, publisher = list[BaseException](), doubling(), Unwilling()
    with using(on_error_dropped=dropped.append):
        if when == "second":
            ByHand().subscribe(middle)
        elif when == "too late":
            middle.subscribe(Leaver())
            await idle()
        publisher.subscribe(middle)
        if when == "on_next":
            publisher.next("not requested")

    assert ["can't be cancelled"] == [str(error) for error in dropped]


async def test_a_second_subscriber_is_refused_and_the_first_goes_on() -> None:
    middle = doubling()
    publisher, subscriber = await between(middle, request=1)
    second = Recorder(1)
    middle.subscribe(second)
    publisher.next(1)
    await idle()

    assert ["subscribe", "error"] == second.kinds
    assert isinstance(second.error, SourceConsumedError)
    assert [2] == subscriber.items


async def test_a_chain_that_reads_its_input_twice_is_told_so() -> None:
    publisher, subscriber = await between(processor(lambda flow: flow.repeat(2)), request=5)
    publisher.complete()
    await idle()

    assert isinstance(subscriber.error, SourceConsumedError)


def test_subscribing_without_a_loop_is_refused_and_leaves_the_processor_as_it_was() -> None:
    middle: AnyProcessor = processor(lambda flow: flow.map(str))
    with pytest.raises(RuntimeError, match="running event loop"):
        middle.subscribe(Recorder())

    async def main() -> list[str]:
        Flow.range(2).subscribe(middle)
        return await Flow.from_publisher(middle).to_list()

    assert ["0", "1"] == asyncio.run(main())


# -- threads


async def test_the_publisher_may_speak_on_any_thread() -> None:
    middle = doubling()

    class OnAThread(ByHand):
        def request(self, n: int) -> None:
            def speak() -> None:
                self.next(*range(n))
                self.complete()

            threading.Thread(target=speak).start()

    threading.Thread(target=lambda: OnAThread().subscribe(middle)).start()

    assert [0, 2, 4] == await Flow.from_publisher(middle).take(3).to_list()


async def test_the_signals_come_where_the_last_region_of_the_chain_runs() -> None:
    threads: list[str] = []

    class Noting(Recorder):
        def on_next(self, item: Any) -> None:
            threads.append(threading.current_thread().name)
            super().on_next(item)

        def on_complete(self) -> None:
            loop.call_soon_threadsafe(self.over.set)

    loop = asyncio.get_running_loop()
    middle: AnyProcessor = processor(lambda flow: flow.publish_on(schedulers.thread("elsewhere")))
    subscriber = Noting(1)
    Flow.of(1).subscribe(middle)
    middle.subscribe(subscriber)
    await subscriber.over.wait()

    assert ["elsewhere"] == threads


# -- what is left behind


async def test_what_has_ended_is_let_go_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        middle = doubling()
        publisher, subscriber = await between(middle, request=1)
        publisher.next(1)
        publisher.complete()
        await idle()
        left = [weakref.ref(each) for each in (middle, subscriber)]
        publisher.subscribers.clear()
        del middle, subscriber

        assert [None, None] == [ref() for ref in left]
    finally:
        gc.enable()


# -- types


def shown(flow: Flow[int]) -> Flow[str]:
    return flow.map(str)


def test_the_types_of_a_chain_are_those_of_its_processor() -> None:
    assert_type(processor(shown), Processor[int, str])
    assert isinstance(processor(shown), Processor)


# -- bad input


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        (3, "takes a function, not int"),
        (lambda flow: flow.to_list, "returned method"),
        (lambda _: None, "returned NoneType"),
        (asyncio.sleep, "is async def"),
    ],
)
def test_an_argument_that_is_no_chain_is_refused_at_once(chain: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        processor(chain)
