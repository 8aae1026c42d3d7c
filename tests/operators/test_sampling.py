"""debounce, sample and throttle_first: fewer elements, chosen by the clock, under demand."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import TestPublisher, VirtualTimeLoop, from_marbles, no_leaks, probe, record, run_virtual
from tests.registry import AnyFlow

ALL: dict[str, Callable[[AnyFlow], AnyFlow]] = {
    "debounce": lambda flow: flow.debounce(3.0),
    "sample": lambda flow: flow.sample(3.0),
    "throttle_first": lambda flow: flow.throttle_first(3.0),
}
KEEPING = {name: ALL[name] for name in ("debounce", "sample")}
every = pytest.mark.parametrize("build", ALL.values(), ids=ALL.keys())
keeping = pytest.mark.parametrize("build", KEEPING.values(), ids=KEEPING.keys())


def now() -> float:
    return asyncio.get_running_loop().time()


# -- which elements


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("-abc----d-e|", "------c----(e|)"),
        ("-a-b-c-d-e-f----|", "--------------f-|"),
        ("-a----b----|", "----a----b-|"),
        ("(abc)----|", "---c-----|"),
        ("-a-#", "---#"),
        ("--|", "--|"),
    ],
)
def test_debounce_gives_an_element_when_nothing_has_come_for_a_while_behind_it(source: str, seen: str) -> None:
    assert seen == run_virtual(record(from_marbles(source).debounce(3.0)))


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("-ab-cd----e|", "---b--d----(e|)"),
        ("-a-----------b-|", "---a-----------(b|)"),
        ("-abcdefghij|", "---b--e--h-(j|)"),
        ("-a-b#", "---a#"),
        ("--|", "--|"),
    ],
)
def test_sample_gives_the_latest_element_of_each_period_in_which_one_has_come(source: str, seen: str) -> None:
    assert seen == run_virtual(record(from_marbles(source).sample(3.0)))


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("-abcdefg|", "-a--d--g|"),
        ("(abc)-d|", "a-----d|"),
        ("-a-b------c|", "-a--------c|"),
        ("-ab#", "-a-#"),
        ("--|", "--|"),
    ],
)
def test_throttle_first_gives_an_element_and_none_for_a_while(source: str, seen: str) -> None:
    assert seen == run_virtual(record(from_marbles(source).throttle_first(3.0)))


def test_sample_sets_no_timer_where_nothing_comes() -> None:
    async def main() -> None:
        loop, source = asyncio.get_running_loop(), TestPublisher[int]()
        assert isinstance(loop, VirtualTimeLoop)
        async with probe(Flow.from_publisher(source).sample(3.0), request=9) as p:
            await p.expect_no_event(for_=100.0)
            assert [] == [timer for timer in loop._scheduled if not timer.cancelled()]
            source.next(1)
            await p.expect_next(1)
            assert 102.0 == now()
            p.cancel()

    run_virtual(main())


def test_a_period_of_sample_may_be_shorter_than_any_step_of_the_clock() -> None:
    assert "-a-b|" == run_virtual(record(from_marbles("-a-b|").sample(5e-324)))


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.3, 0.7])
@pytest.mark.parametrize("start", [0.0, 0.3, 0.7, 1.1])
def test_no_period_of_sample_is_empty_however_floats_are_rounded(start: float, seconds: float) -> None:
    async def main() -> None:
        await asyncio.sleep(start)
        loop, source, at = asyncio.get_running_loop(), TestPublisher[int](), list[float]()

        def note(n: int) -> None:
            at.append(now())
            loop.call_soon(source.next, n + 1)  # at the end of the period, so it belongs to the next one

        async with probe(Flow.from_publisher(source).sample(seconds).do_on_next(note), request=20) as p:
            await p.expect_no_event()
            source.next(0)
            for n in range(20):
                await p.expect_next(n)
            p.cancel()
        assert all(later - earlier > seconds / 2 for earlier, later in pairwise(at))

    run_virtual(main())


# -- demand


@every
def test_upstream_is_asked_for_everything_with_the_first_demand(build: Any) -> None:
    async def main() -> None:
        source = TestPublisher[int]()
        async with probe(build(Flow.from_publisher(source))) as p:
            await p.expect_no_event(for_=60.0)
            source.assert_requested(0)
            await p.request(1)
            await p.expect_no_event()
            source.assert_requested(UNBOUNDED)
            await p.request(1)
            await p.expect_no_event()
            source.assert_requested(UNBOUNDED)
            p.cancel()
        source.assert_cancelled()

    run_virtual(main())


@keeping
@pytest.mark.parametrize("end", ["complete", "error"])
def test_what_nobody_wants_in_its_time_waits_until_the_time_of_a_later_one(build: Any, end: str) -> None:
    async def main() -> None:
        source, discarded = TestPublisher[int](), list[Any]()
        with hooks.using(on_discard=discarded.append):
            async with probe(build(Flow.from_publisher(source)), request=1) as p:
                await p.expect_no_event()
                source.next(1)
                await p.expect_next(1)
                source.next(2)
                await p.expect_no_event(for_=5.0)
                source.next(3)
                await p.expect_no_event()
                assert [] == discarded, "2 waits, and the time of 3 has not come"
                await p.expect_no_event(for_=5.0)
                assert [2] == discarded
                source.next(4)
                if end == "complete":
                    source.complete()
                    await p.expect_no_event()
                    assert [2, 3] == discarded, "the end is the time of 4"
                    await p.request(1)
                    await p.expect_next(4)
                    await p.expect_complete()
                else:
                    source.error(OSError("down"))
                    await p.expect_no_event()
                    assert [2, 4] == discarded, "the time of 4 never comes"
                    await p.request(1)
                    await p.expect_next(3)
                    await p.expect_error(OSError)

    run_virtual(main())


@keeping
def test_the_figures_tell_what_waits_and_what_was_dropped_for_want_of_demand(build: Any) -> None:
    async def main() -> None:
        async with build(Flow.interval(5.0).take(60)).open() as items:
            await anext(items)
            await asyncio.sleep(100.0)
            (kept,) = [region.overflow for region in items.snapshot().regions if region.overflow is not None]
            assert (1, 1) == (kept.size, kept.buffered)
            assert kept.dropped > 9

    run_virtual(main())


def test_throttle_first_drops_what_nobody_wants_and_no_time_begins_with_it() -> None:
    async def main() -> None:
        source, discarded = TestPublisher[int](), list[Any]()
        with hooks.using(on_discard=discarded.append):
            async with probe(Flow.from_publisher(source).throttle_first(3.0), request=1) as p:
                await p.expect_no_event()
                source.next(1, 2)
                await p.expect_next(1)
                await p.expect_no_event(for_=4.0)
                source.next(3)
                await p.expect_no_event(for_=1.0)
                await p.request(2)
                await p.expect_no_event()
                source.next(4)
                await p.expect_next(4)
                p.cancel()
        assert [2, 3] == discarded

    run_virtual(main())


# -- the ends


@every
def test_a_cancel_leaves_no_timer_and_no_element(build: Any) -> None:
    async def main() -> None:
        source, discarded = TestPublisher[int](), list[Any]()
        with hooks.using(on_discard=discarded.append):
            async with no_leaks(), probe(build(Flow.from_publisher(source)), request=1) as p:
                await p.expect_no_event()
                source.next(1)
                for n in (2, 3, 4):
                    await asyncio.sleep(4.0)
                    source.next(n)
                p.cancel()
                assert 1 <= len(p.events)
                await p.expect_next(1)
        assert [2, 3, 4] == sorted(discarded)

    run_virtual(main())


@every
def test_every_element_is_emitted_or_told_to_the_hook(build: Any) -> None:
    async def main(seed: int) -> None:
        chance, made, got, discarded = random.Random(seed), list[int](), list[Any](), list[Any]()

        async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
            for n in range(40):
                await asyncio.sleep(chance.choice([0.0, 0.0, 1.0, 2.0, 4.0]))
                await emit(n)
                made.append(n)
            if seed % 2:
                raise OSError

        with hooks.using(on_discard=discarded.append):
            try:
                async with build(Flow.create(produce)).open() as items:
                    async for n in items:
                        got.append(n)
                        await asyncio.sleep(chance.choice([0.0, 0.5, 5.0]))
                        if chance.random() < 0.02:
                            break
            except OSError:
                assert seed % 2
        assert got == sorted(set(got))
        assert made == sorted(got + discarded)

    for seed in range(30):
        run_virtual(main(seed))


@pytest.mark.parametrize(("method", "kept"), [("debounce", 3), ("sample", 3), ("throttle_first", 0)])
def test_of_elements_that_come_at_one_time_one_is_emitted_and_the_others_go_to_the_hook(method: str, kept: int) -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        assert [kept] == run_virtual(ALL[method](Flow.range(4)).to_list())
    assert [n for n in range(4) if n != kept] == discarded


@pytest.mark.parametrize("method", ALL)
def test_bad_arguments_are_refused_when_the_flow_is_built(method: str) -> None:
    with pytest.raises(ValueError, match=rf"{method}\(seconds=0\): seconds must be a finite number above 0"):
        getattr(Flow.of(1), method)(0)
    with pytest.raises(TypeError, match="seconds is a number of seconds, not str"):
        getattr(Flow.of(1), method)("1")
