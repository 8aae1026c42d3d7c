"""timeout: an element that is wanted comes in time, or the flow is left."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import Flow, hooks, schedulers
from reactive_aio.testing import TestPublisher, VirtualTimeLoop, from_marbles, no_leaks, probe, record, run_virtual
from tests.registry import AnyFlow


def now() -> float:
    return asyncio.get_running_loop().time()


def virtual(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test on virtual time."""

    def run() -> None:
        run_virtual(test())

    run.__name__ = test.__name__
    return run


# -- in time, and too late


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("---a--b--|", "---a--b--|"),
        ("-a--b|", "-a--b|"),
        ("-a-----b|", "-a---#"),
        ("------a|", "----#"),
        ("-(ab)------|", "-(ab)#"),
        ("-a--#", "-a--#"),
        ("-", "----#"),
    ],
)
def test_the_time_is_given_anew_behind_each_element(source: str, seen: str) -> None:
    assert seen == run_virtual(record(from_marbles(source).timeout(4.0)))


@pytest.mark.parametrize(
    ("source", "seen"),
    [("-a-----b|", "-a---x--y---|"), ("---a--b|", "---a--b|"), ("-----a", "----x--y---|")],
)
def test_the_fallback_takes_over_when_the_time_is_up_and_is_given_all_the_time(source: str, seen: str) -> None:
    fallback = from_marbles("x--y---|")

    assert seen == run_virtual(record(from_marbles(source).timeout(4.0, fallback=fallback)))


@virtual
async def test_a_fallback_may_take_longer_than_the_flow_might() -> None:
    assert [0] == await Flow.never().timeout(1.0, fallback=Flow.interval(60.0).take(1)).to_list()
    assert 61.0 == now()


@virtual
async def test_the_error_says_what_was_waited_for_and_where() -> None:
    with pytest.raises(TimeoutError, match=r"no element came within 2\.5 s of its request: timeout\(2\.5\), chain"):
        await Flow.never().timeout(2.5).to_list()


@virtual
async def test_a_failure_of_the_fallback_is_that_of_the_whole() -> None:
    with pytest.raises(OSError, match="down"):
        await Flow.never().timeout(1.0, fallback=Flow.error(OSError("down"))).to_list()


# -- time counts while there is demand


@virtual
async def test_time_without_demand_does_not_count() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).timeout(5.0)) as p:
        await p.expect_no_event(for_=100.0)
        await p.request(1)
        await p.expect_no_event(for_=4.0)
        source.next(1)
        await p.expect_next(1)
        await p.expect_no_event(for_=100.0)
        await p.request(1)
        await p.expect_error(TimeoutError)
        assert 209.0 == now()


@virtual
async def test_a_consumer_takes_as_long_as_it_likes() -> None:
    seen = [n async for n in Flow.range(3).timeout(1.0) if await asyncio.sleep(60.0, True)]

    assert [0, 1, 2] == seen


@virtual
async def test_more_demand_does_not_give_more_time() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).timeout(5.0), request=1) as p:
        await p.expect_no_event(for_=3.0)
        await p.request(1)
        await p.expect_error(TimeoutError)
        assert 5.0 == now()


@virtual
async def test_an_element_that_leaves_demand_unmet_starts_the_time_anew() -> None:
    source = TestPublisher[int]()
    async with probe(Flow.from_publisher(source).timeout(5.0), request=2) as p:
        await p.expect_no_event(for_=3.0)
        source.next(1)
        await p.expect_next(1)
        await p.expect_error(TimeoutError)
        assert 8.0 == now()


@virtual
async def test_the_time_in_which_the_consumer_blocks_the_loop_does_not_count() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)

    def block(n: int) -> int:
        loop._now += 60.0  # the clock goes on while the loop does not
        return n

    assert [0, 1, 2] == await Flow.interval(1.0).on_backpressure_buffer(9).timeout(5.0).map(block).take(3).to_list()


@virtual
async def test_demand_passes_one_for_one_and_what_is_unmet_is_asked_of_the_fallback_once() -> None:
    source, fallback = TestPublisher[int](), TestPublisher[int]()
    async with probe(Flow.from_publisher(source).timeout(5.0, fallback=Flow.from_publisher(fallback)), request=3) as p:
        await p.expect_no_event(for_=1.0)
        source.assert_requested(3)
        source.next(1)
        await p.expect_next(1)
        await p.expect_no_event(for_=6.0)
        source.assert_cancelled()
        fallback.assert_requested(2)
        await p.request(4)
        await p.expect_no_event()
        fallback.assert_requested(6)
        source.assert_requested(3)
        p.cancel()
    fallback.assert_cancelled()


# -- what is left behind


@virtual
async def test_the_flow_is_cleaned_up_before_the_failure_is_heard_of() -> None:
    cleaned: list[float] = []

    async def source() -> AsyncIterator[int]:
        try:
            await asyncio.sleep(60.0)
            yield 1
        finally:
            await asyncio.sleep(3.0)
            cleaned.append(now())

    async with no_leaks():
        with pytest.raises(TimeoutError):
            await Flow.from_async_iterable(source()).timeout(1.0).to_list()
    assert [4.0] == cleaned


@pytest.mark.parametrize("end", ["complete", "error", "cancel"])
def test_no_timer_is_left_however_it_ends(end: str) -> None:
    async def main() -> None:
        source = TestPublisher[int]()
        async with no_leaks(), probe(Flow.from_publisher(source).timeout(60.0), request=2) as p:
            await p.expect_no_event()
            source.next(1)
            await p.expect_next(1)
            if end == "complete":
                source.complete()
                await p.expect_complete()
            elif end == "error":
                source.error(OSError())
                await p.expect_error(OSError)
            else:
                p.cancel()
        assert 0.0 == now()

    run_virtual(main())


@virtual
async def test_what_an_abandoned_source_sends_all_the_same_goes_to_the_hooks() -> None:
    discarded: list[Any] = []
    dropped: list[Any] = []

    async def stubborn(emit: Callable[[int], Awaitable[None]]) -> None:
        try:
            await asyncio.sleep(60.0)
        finally:
            await emit(1)
            raise OSError("late")

    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        assert ["x"] == await Flow.create(stubborn).timeout(1.0, fallback=Flow.of("x")).to_list()
    assert [1] == discarded
    assert ["late"] == [str(error) for error in dropped]


RUNS = 40
ELEMENTS = 50


def slowly(chance: random.Random, made: list[int]) -> AnyFlow:
    """A flow some of whose elements come within the time, some just then, and some too late."""

    async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
        for n in range(ELEMENTS):
            await asyncio.sleep(chance.choice([0.0, 0.0, 0.25, 0.5, 0.75, 1.0 if chance.random() < 0.2 else 0.0]))
            await emit(n)
            made.append(n)

    flow: AnyFlow = Flow.create(produce)
    return chance.choice(
        [
            lambda: flow,
            lambda: flow.publish_on(schedulers.current(), prefetch=chance.choice([1, 4])),
            lambda: Flow.from_publisher(flow),
            lambda: flow.on_backpressure_buffer(ELEMENTS),
        ]
    )()


@pytest.mark.parametrize("fallback", [None, Flow.range(100, 105)], ids=["fails", "fallback"])
def test_every_element_that_was_taken_is_delivered_or_told_to_the_hook(fallback: Any) -> None:
    ended: set[str] = set()

    async def main(seed: int) -> None:
        chance, made, discarded, got = random.Random(seed), list[int](), list[Any](), list[Any]()
        with hooks.using(on_discard=discarded.append):
            try:
                async for n in slowly(chance, made).timeout(1.0, fallback=fallback):
                    got.append(n)
                    await asyncio.sleep(chance.choice([0.0, 0.0, 2.0]))
                ended.add("fallback" if 104 in got else "complete")
            except TimeoutError:
                ended.add("timeout")
        ours = [n for n in got if n < 100]
        assert [n for n in got if n >= 100] in ([], [*range(100, 105)])
        assert ours == [*range(len(ours))]
        assert made == sorted(ours + discarded)

    for seed in range(RUNS):
        run_virtual(main(seed))
    assert {"complete", "timeout" if fallback is None else "fallback"} == ended


# -- building


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Flow.of(1).timeout(0), ValueError, "seconds must be a finite number above 0"),
        (lambda: Flow.of(1).timeout(float("inf")), ValueError, "finite"),
        (lambda: Flow.of(1).timeout("1"), TypeError, "seconds is a number of seconds, not str"),
        (lambda: Flow.of(1).timeout(1, fallback=[2]), TypeError, r"timeout\(\) takes flows, not list"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_it_is_shown_by_its_time_and_its_fallback() -> None:
    assert "Flow.timeout(1.5)" == repr(Flow.of(1).timeout(1.5))
    assert "Flow.timeout(1.5, Flow.of(2))" == repr(Flow.of(1).timeout(1.5, fallback=Flow.of(2)))


async def test_unbounded_demand_costs_the_loop_one_timer_however_many_elements_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, timers = asyncio.get_running_loop(), list[Any]()
    if not isinstance(loop, asyncio.BaseEventLoop):
        pytest.skip("the methods of this loop can't be replaced")
    call_at = loop.call_at
    monkeypatch.setattr(loop, "call_at", lambda *given, **named: timers.append(given) or call_at(*given, **named))

    assert 10_000 == await Flow.range(10_000).publish_on(schedulers.current(), prefetch=4).timeout(3600.0).count()
    assert 1 == len(timers)
