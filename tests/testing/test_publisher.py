"""The publisher that is driven by hand keeps the rules, or breaks the one that the test names."""

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, ProtocolViolation, Publisher, schedulers
from reactive_aio.hooks import using
from reactive_aio.testing import Breach, TestPublisher, no_leaks, probe, run_virtual, settle
from tests.subscribers import Recorder

Source = TestPublisher[Any]


def subscribed(*breaches: Breach, request: int = 0) -> tuple[Source, Recorder]:
    source: Source = TestPublisher(*breaches)
    subscriber = Recorder(request)
    source.subscribe(subscriber)
    return source, subscriber


def test_it_is_a_publisher() -> None:
    assert isinstance(TestPublisher(), Publisher)


def test_it_sends_what_it_is_told_to_and_knows_what_was_asked() -> None:
    source, subscriber = subscribed(request=3)

    source.next(1, 2)
    subscriber.request(4)
    source.complete()

    assert [1, 2] == subscriber.items
    assert ["subscribe", "next", "next", "complete"] == subscriber.kinds
    source.assert_requested(7)
    assert (7, 5) == (source.requested, source.demand)
    source.assert_not_cancelled()
    source.assert_subscribers(0)


def test_it_fails_its_subscribers() -> None:
    source, subscriber = subscribed()
    error = ValueError()

    source.error(error)

    assert error is subscriber.error


def test_it_sends_to_all_subscribers_that_go_on() -> None:
    source, first = subscribed(request=2)
    second = Recorder(2)
    source.subscribe(second)

    source.next("a")
    source.assert_subscribers(2)
    first.cancel()
    source.assert_subscribers(1)
    source.next("b")

    assert (["a"], ["a", "b"]) == (first.items, second.items)


def test_unbounded_demand_is_not_used_up() -> None:
    source, subscriber = subscribed(request=UNBOUNDED)

    source.next(*range(100))

    assert UNBOUNDED == source.demand
    assert 100 == len(subscriber.items)


def test_demand_that_is_none_is_answered_by_an_error() -> None:
    source, subscriber = subscribed()

    subscriber.request(0)

    assert isinstance(subscriber.error, ValueError)
    assert "3.9" in str(subscriber.error)
    source.assert_subscribers(0)


def test_elements_stop_when_the_subscriber_cancels_in_the_middle() -> None:
    class TakesOne(Recorder):
        def on_next(self, item: Any) -> None:
            super().on_next(item)
            self.cancel()

    source: Source = TestPublisher()
    subscriber = TakesOne(5)
    source.subscribe(subscriber)

    source.next(1, 2, 3)

    assert [1] == subscriber.items


# -- a compliant one does not let the test break a rule


@pytest.mark.parametrize(
    ("signal", "match"),
    [
        (lambda source: source.next(1, 2), "no demand left of 1: §1.1"),
        (lambda source: source.next(None), "§2.13"),
        (lambda source: source.error(None), "§2.13"),
        (lambda source: (source.complete(), source.next(1)), "next has no subscriber"),
        (lambda source: (source.complete(), source.complete()), "complete has no subscriber"),
        (lambda source: (source.error(KeyError()), source.error(KeyError())), "error has no subscriber"),
        (lambda source: source.subscribe(None), "§1.9"),
    ],
)
def test_a_rule_can_not_be_broken_unasked(signal: Any, match: str) -> None:
    source, _ = subscribed(request=1)

    with pytest.raises((ProtocolViolation, TypeError), match=match):
        signal(source)


@pytest.mark.parametrize(
    ("check", "match"),
    [
        (lambda source: source.assert_requested(2), "a sum of 2"),
        (lambda source: source.assert_cancelled(), "1 calls of cancel"),
        (lambda source: source.assert_subscribers(0), "0 live subscribers, not 1"),
    ],
)
def test_its_assertions_fail_and_show_what_was_asked(check: Any, match: str) -> None:
    source, _ = subscribed(request=1)

    with pytest.raises(AssertionError, match=match) as caught:
        check(source)
    assert "requested 1, demand 1, cancelled 0 times" in str(caught.value)


def test_a_cancel_that_came_twice_is_not_one_cancel() -> None:
    source, subscriber = subscribed()
    subscriber.cancel()
    source.assert_cancelled()
    subscriber.cancel()

    with pytest.raises(AssertionError):
        source.assert_cancelled()
    with pytest.raises(AssertionError):
        source.assert_not_cancelled()


def test_questions_about_a_subscriber_that_is_not_there_fail() -> None:
    with pytest.raises(AssertionError, match="nobody"):
        TestPublisher().assert_requested(0)


# -- breaches


def test_overflow() -> None:
    source, subscriber = subscribed(Breach.OVERFLOW, request=1)
    source.next(1, 2, 3)
    assert [1, 2, 3] == subscriber.items


def test_after_terminal() -> None:
    source, subscriber = subscribed(Breach.AFTER_TERMINAL, request=1)
    source.complete()
    source.next(1)
    source.error(KeyError())
    assert ["subscribe", "complete", "next", "error"] == subscriber.kinds


def test_defer_cancel() -> None:
    source, subscriber = subscribed(Breach.DEFER_CANCEL, request=5)
    subscriber.cancel()
    source.next(1)
    source.assert_cancelled()
    source.finish_cancel()
    with pytest.raises(ProtocolViolation):
        source.next(2)
    assert [1] == subscriber.items


def test_none() -> None:
    source, subscriber = subscribed(Breach.NONE, request=1)
    source.next(None)
    source.error(None)
    assert [("subscribe", None), ("next", None), ("error", None)] == subscriber.signals


def test_foreign_thread_and_what_the_subscriber_raises_there() -> None:
    threads: list[str] = []

    class Here(Recorder):
        def on_next(self, item: Any) -> None:
            threads.append(threading.current_thread().name)
            raise KeyError(item)

    source: Source = TestPublisher(Breach.FOREIGN_THREAD)
    source.subscribe(Here(1))
    with pytest.raises(KeyError):
        source.next(1)
    assert ["TestPublisher"] == threads


# -- operators stay safe when the other side breaks the rules


CHAINS: dict[str, Any] = {
    "bare": lambda flow: flow,
    "fused": lambda flow: flow.filter(lambda _: True).map(lambda item: item),
    "boundary": lambda flow: flow.publish_on(schedulers.current(), prefetch=2),
    "thread": lambda flow: flow.publish_on(schedulers.thread("chain"), prefetch=2).publish_on(schedulers.current()),
    "retry": lambda flow: flow.retry(1),
    "concat": lambda flow: Flow.concat(Flow.empty(), flow),
}


@pytest.fixture(params=list(CHAINS))
def chain(request: pytest.FixtureRequest) -> Any:
    return CHAINS[request.param]


def test_an_overflow_ends_in_a_protocol_violation_and_nothing_extra_is_delivered(chain: Any) -> None:
    async def main() -> None:
        source: Source = TestPublisher(Breach.OVERFLOW)
        discarded: list[Any] = []
        async with no_leaks():
            with using(on_discard=discarded.append):
                subscriber = Recorder(1)
                chain(Flow.from_publisher(source)).subscribe(subscriber)
            await settle()
            source.next(*range(1, 40))
            await settle()
            assert len(subscriber.items) <= 1
            subscriber.request(1000)
            await settle()
            if subscriber.kinds[-1] != "error":  # retry has subscribed again
                source.next(*range(2000))
                await settle()
            error = subscriber.error
        assert isinstance(error, ProtocolViolation)
        assert "§1.1" in str(error)
        assert 1 == subscriber.kinds.count("error")
        assert 1001 >= len(subscriber.items)

    run_virtual(main())


def test_signals_after_the_end_are_not_delivered(chain: Any) -> None:
    async def main() -> None:
        source: Source = TestPublisher(Breach.AFTER_TERMINAL)
        dropped: list[BaseException] = []
        async with no_leaks():
            with using(on_error_dropped=dropped.append):
                async with probe(chain(Flow.from_publisher(source)), request=9) as p:
                    await settle()
                    source.next("a")
                    source.complete()
                    source.next("b")
                    source.error(KeyError("late"))
                    source.complete()
                    await p.expect_next("a")
                    await p.expect_complete()
            source.next("c")
        assert [KeyError] == [type(error) for error in dropped]

    run_virtual(main())


def test_signals_after_cancel_are_not_delivered(chain: Any) -> None:
    async def main() -> None:
        source: Source = TestPublisher(Breach.DEFER_CANCEL)
        subscriber = Recorder(9)
        async with no_leaks():
            chain(Flow.from_publisher(source)).subscribe(subscriber)
            await settle()
            source.next("a")
            await settle()
            subscriber.cancel()
            await settle()
            source.assert_cancelled()
            source.next("b")
            source.complete()
            await settle()
        assert ["a"] == subscriber.items
        assert ["subscribe", "next"] == subscriber.kinds

    run_virtual(main())


def test_none_from_a_publisher_fails_the_stream_and_is_refused(chain: Any) -> None:
    async def main() -> None:
        source: Source = TestPublisher(Breach.NONE)
        async with no_leaks(), probe(chain(Flow.from_publisher(source)), request=9) as p:
            await settle()
            with pytest.raises(TypeError, match=r"2\.13"):
                source.next(None)
            if "retry" in repr(p.publisher):
                await settle()
                with pytest.raises(TypeError, match=r"2\.13"):
                    source.next(None)
            await p.expect_error(TypeError, match=r"2\.13")

    run_virtual(main())


def test_signals_of_a_foreign_thread_arrive_in_order(chain: Any) -> None:
    async def main() -> None:
        source: Source = TestPublisher(Breach.FOREIGN_THREAD)
        async with no_leaks(), probe(chain(Flow.from_publisher(source)), request=50) as p:
            await settle()
            for n in range(50):
                source.next(n)
                await settle()
            source.complete()
            await p.expect_next(*range(50))
            await p.expect_complete()

    run_virtual(main())


def test_it_drives_a_flow_on_an_ordinary_loop() -> None:
    async def main() -> list[str]:
        source: Source = TestPublisher()
        result = asyncio.create_task(Flow.from_publisher(source).take(2).to_list())
        await settle()
        source.next("a", "b")
        return await result

    assert ["a", "b"] == asyncio.run(main())
