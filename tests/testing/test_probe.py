"""The probe: what it accepts, and above all what it does not."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio.testing import (
    Breach,
    LeakCheck,
    ProbeError,
    StreamProbe,
    TestPublisher,
    from_marbles,
    probe,
    run_virtual,
)

Script = Callable[[StreamProbe[Any]], Coroutine[Any, Any, object]]


def run(publisher: Any, script: Script, **options: Any) -> None:
    async def main() -> None:
        async with probe(publisher, **options) as p:
            await script(p)

    run_virtual(main())


def fails(publisher: Any, script: Script, match: str, **options: Any) -> str:
    with pytest.raises(ProbeError, match=match) as caught:
        run(publisher, script, **options)
    return str(caught.value)


async def nothing(p: StreamProbe[Any]) -> None:
    """Expect nothing and leave."""


async def test_on_every_loop_it_follows_a_stream_to_its_end(no_leaks: LeakCheck) -> None:
    async with probe(Flow.range(3)) as p:
        await p.expect_no_event()
        await p.request(2)
        await p.expect_next(0, 1)
        await p.expect_no_event(for_=0.01)
        await p.request()
        assert [2] == await p.expect_count(1)
        await p.expect_complete()


async def test_on_every_loop_a_wait_that_is_in_vain_fails_after_its_deadline() -> None:
    with pytest.raises(ProbeError, match=r"expected next 0; TimeoutError: no signal came"):
        async with probe(Flow.range(3), within=0.02) as p:
            await p.expect_next(0)


async def test_signals_of_another_thread_are_expected_as_any_others() -> None:
    async with probe(Flow.range(1000).publish_on(schedulers.thread("elsewhere")), request=1000) as p:
        await p.expect_next(*range(1000))
        await p.expect_complete()


def test_it_follows_a_failure_and_gives_the_error() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        error = await p.expect_error((KeyError, ValueError), match="wrong")
        assert "wrong" in str(error)

    run(Flow.error(ValueError("all wrong")), script)


def test_a_cancelled_stream_needs_no_end() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await p.request(1)
        await p.expect_next(0)
        p.cancel()

    run(Flow.range(3), script)


def test_unbounded_demand() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await p.request_unbounded()
        await p.expect_next(*range(500))
        await p.expect_complete()

    run(Flow.range(500), script)


# -- what fails


def test_another_element_than_the_expected_one_fails_with_all_that_was_seen() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await p.request(3)
        await p.expect_next(0, 1)
        await p.expect_next(7)

    message = fails(Flow.range(5).publish_on(schedulers.current(), prefetch=4), script, "expected next 7; got next 2")

    assert "of Flow.range(0, 5).publish_on(current(), prefetch=4)" in message
    assert "requested 3, received 3" in message
    assert "next 0 at 0 (expected), next 1 at 0 (expected), next 2 at 0\n" in message
    assert "region running: requested 3, delivered 3, buffered" in message


@pytest.mark.parametrize(
    ("flow", "script", "match"),
    [
        (Flow.empty(), lambda p: p.expect_next(1), "expected next 1; got complete"),
        (Flow.error(KeyError("k")), lambda p: p.expect_next(1), "expected next 1; got error KeyError"),
        (Flow.error(KeyError("k")), lambda p: p.expect_complete(), "expected complete; got error KeyError"),
        (Flow.empty(), lambda p: p.expect_error(), "expected error Exception; got complete"),
        (Flow.error(KeyError("k")), lambda p: p.expect_error(ValueError), "expected error ValueError; got error Key"),
        (Flow.error(KeyError("k")), lambda p: p.expect_error(match="x"), "matching 'x'; got error KeyError"),
        (Flow.empty(), lambda p: p.expect_count(1), "expected element 1 of 1; got complete"),
        (Flow.of(1), lambda p: p.expect_complete(), "expected complete; DeadlockError"),
    ],
)
def test_another_signal_than_the_expected_one_fails(flow: Flow[Any], script: Script, match: str) -> None:
    fails(flow, script, match)


def test_an_element_that_is_an_exception_is_no_failure_of_the_stream() -> None:
    fails(Flow.of(ValueError("an element")), lambda p: p.expect_error(), "got next ValueError", request=1)


def test_a_stream_that_is_not_verified_to_its_end_fails() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await p.request(1)
        await p.expect_next(0)

    fails(Flow.range(3), script, "to be verified to its end")
    fails(Flow.range(3), nothing, "to be verified to its end")


def test_an_element_left_that_was_not_expected_fails() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await asyncio.sleep(1)

    fails(Flow.range(3), script, "a signal is left that was not expected; got next 0", request=2)


def test_an_end_left_that_was_not_expected_fails() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await p.expect_next(0)

    fails(Flow.of(0), script, "a signal is left that was not expected; got complete", request=1)


def test_an_element_that_arrived_before_the_cancel_and_was_not_expected_fails() -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await p.expect_next(0)
        await asyncio.sleep(1)
        p.cancel()

    fails(Flow.range(3), script, "a signal is left that was not expected; got next 1", request=2)


def test_the_failure_in_the_block_comes_out_and_the_stream_is_cancelled() -> None:
    source: TestPublisher[int] = TestPublisher()

    async def script(_: StreamProbe[Any]) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(source, script)
    source.assert_cancelled()


# -- no event


def test_no_event_passes_a_silent_span_and_takes_its_time() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with probe(from_marbles("----a|"), request=1) as p:
            await p.expect_no_event(for_=3.5)
            assert 3.5 == loop.time()
            await p.expect_next("a")
            assert 4 == loop.time()
            await p.expect_complete()

    run_virtual(main())


@pytest.mark.parametrize("marbles", ["-a", "-|", "-#"])
def test_any_event_in_the_span_fails_no_event(marbles: str) -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await p.expect_no_event(for_=1.5)

    fails(from_marbles(marbles), script, "expected no event for 1.5 s; got", request=1)


@pytest.mark.parametrize("for_", [0, 10])
def test_an_event_that_had_arrived_before_fails_no_event(for_: float) -> None:
    async def script(p: StreamProbe[Any]) -> None:
        await asyncio.sleep(1)
        await p.expect_no_event(for_=for_)

    fails(Flow.range(3), script, r"expected no event.*; got next 0 at 0", request=1)


def test_an_event_that_is_under_way_fails_no_event_without_a_span() -> None:
    here = schedulers.current()
    flow = Flow.range(3).publish_on(here).publish_on(here).publish_on(here)

    fails(flow, lambda p: p.expect_no_event(), "expected no event; got next 0", request=1)


def test_an_event_at_the_end_of_the_span_is_no_part_of_it() -> None:
    async def main() -> None:
        source: TestPublisher[str] = TestPublisher()
        async with probe(source, request=1) as p:
            asyncio.get_running_loop().call_later(2, source.next, "a")
            await p.expect_no_event(for_=2)
            await p.expect_next("a")
            p.cancel()

    run_virtual(main())


# -- deadlines


def test_on_virtual_time_a_wait_that_is_in_vain_fails_at_once() -> None:
    start = time.monotonic()

    fails(Flow.never(), lambda p: p.expect_next(1), "DeadlockError: nothing is scheduled", within=60)

    assert 30 > time.monotonic() - start


def test_on_virtual_time_the_deadline_is_one_of_real_time() -> None:
    async def ticking(emit: Any) -> None:
        while True:
            await asyncio.sleep(1)

    async def script(p: StreamProbe[Any]) -> None:
        await p.expect_next(1)

    fails(Flow.create(ticking), script, "TimeoutError: still at work: the loop itself", within=0.05, request=1)


# -- publishers that break the rules


class Silent:
    """Never calls on_subscribe."""

    def subscribe(self, subscriber: Any) -> None:
        pass


class Twice(TestPublisher[Any]):
    """Calls on_subscribe twice."""

    __test__ = False

    def subscribe(self, subscriber: Any) -> None:
        super().subscribe(subscriber)
        super().subscribe(subscriber)


class Hasty:
    """Begins with an element."""

    def subscribe(self, subscriber: Any) -> None:
        subscriber.on_next(1)


def test_a_publisher_without_on_subscribe_fails() -> None:
    fails(Silent(), nothing, "expected on_subscribe")


def test_a_publisher_with_two_on_subscribes_fails_and_the_second_is_cancelled() -> None:
    publisher = Twice()

    fails(publisher, nothing, "2.12")

    publisher.assert_cancelled()


def test_a_rule_that_is_broken_at_the_very_end_fails() -> None:
    source: TestPublisher[int] = TestPublisher()

    async def script(p: StreamProbe[Any]) -> None:
        p.cancel()
        (link,) = source._links
        link.subscriber.on_subscribe(link)

    fails(source, script, "expected nothing more\n.*\n.*2.12")


def test_an_element_before_on_subscribe_fails() -> None:
    fails(Hasty(), nothing, "1.9")


def test_more_elements_than_were_requested_fail() -> None:
    source: TestPublisher[int] = TestPublisher(Breach.OVERFLOW)

    async def script(p: StreamProbe[Any]) -> None:
        source.next(1, 2)
        await p.expect_next(1, 2)
        p.cancel()

    fails(source, script, "2 elements for a demand of 1: §1.1", request=1)


def test_a_signal_after_the_end_fails() -> None:
    source: TestPublisher[int] = TestPublisher(Breach.AFTER_TERMINAL)

    async def script(p: StreamProbe[Any]) -> None:
        source.complete()
        await p.expect_complete()
        source.next(1)

    fails(source, script, "next after complete: §1.7", request=1)


def test_none_fails() -> None:
    source: TestPublisher[Any] = TestPublisher(Breach.NONE)

    async def script(p: StreamProbe[Any]) -> None:
        source.next(None)
        await p.expect_count(1)
        p.cancel()

    fails(source, script, "2.13", request=1)


def test_what_comes_after_cancel_is_allowed() -> None:
    source: TestPublisher[int] = TestPublisher(Breach.DEFER_CANCEL)

    async def script(p: StreamProbe[Any]) -> None:
        p.cancel()
        source.next(1)
        source.complete()

    run(source, script, request=1)


# -- use


def test_a_probe_that_is_not_entered_says_how_to_use_it() -> None:
    with pytest.raises(RuntimeError, match="async with probe"):
        asyncio.run(probe(Flow.range(3)).request(1))


def test_a_probe_is_for_one_subscription() -> None:
    async def main() -> None:
        p = probe(Flow.empty())
        async with p:
            await p.expect_complete()
        async with p:
            pass

    with pytest.raises(RuntimeError, match="Make another"):
        run_virtual(main())


def test_no_thread_is_left_by_any_of_it() -> None:
    assert not [thread for thread in threading.enumerate() if thread.name in {"elsewhere", "TestPublisher"}]
