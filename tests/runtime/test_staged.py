"""Stateless stages between a source and the combinator that reads it: no region is made, and all is as with one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from itertools import count
from typing import Any, TypeAlias

import pytest

from reactive_aio import Flow, hooks
from reactive_aio._core import budgets
from reactive_aio._fusion import RegionRun
from reactive_aio._runtime import assemble
from tests.subscribers import Recorder, idle

Made: TypeAlias = Callable[[], Flow[int]]


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> list[RegionRun]:
    """Those that get a driver."""
    made: list[RegionRun] = []
    driver: Any = assemble._driver  # pyright: ignore[reportPrivateUsage]

    def noted(plan: object, region: object, run: RegionRun, *others: Any) -> Any:
        made.append(run)
        return driver(plan, region, run, *others)

    monkeypatch.setattr(assemble, "_driver", noted)
    return made


async def ready(n: int = 4) -> AsyncGenerator[int]:
    for item in range(n):
        yield item


async def suspended() -> AsyncGenerator[int]:
    for item in range(4):
        await asyncio.sleep(0)
        yield item


def is_odd(n: int) -> bool:
    return n % 2 == 1


SOURCES: dict[str, Made] = {
    "a ready async generator": lambda: Flow.from_async_iterable(ready),
    "a suspended one": lambda: Flow.from_async_iterable(suspended),
    "given elements": lambda: Flow.of(0, 1, 2, 3),
    "a combinator": lambda: Flow.from_async_iterable(ready).timeout(5),
}


@pytest.mark.parametrize("source", SOURCES)
async def test_stateless_stages_take_no_region(source: str, regions: list[RegionRun]) -> None:
    flow = Flow.range(3).concat_map(lambda _: SOURCES[source]().filter(is_odd).map(lambda n: 10 * n))

    assert 3 * [10, 30] == await flow.to_list()
    assert not [run for run in regions if run.transforms and not run.mute]


async def test_those_of_a_result_take_none_either(regions: list[RegionRun]) -> None:
    async def three() -> int:
        return 3

    flow = Flow.range(3).flat_map(lambda _: Flow.from_awaitable(three).map(str))

    assert 3 * ["3"] == await flow.to_list()
    assert not [run for run in regions if run.transforms and not run.mute]


async def test_stages_with_state_take_one(regions: list[RegionRun]) -> None:
    flow = Flow.range(3).concat_map(lambda _: Flow.from_async_iterable(ready).skip(2).map(str))

    assert ["2", "3"] * 3 == await flow.to_list()
    assert 3 == len([run for run in regions if run.transforms and not run.mute])


@pytest.mark.parametrize("source", SOURCES)
async def test_a_dropped_element_is_made_up_for(source: str) -> None:
    recorder = Recorder()
    SOURCES[source]().filter(is_odd).concat(Flow.of(5)).subscribe(recorder)

    for taken in ([1], [1, 3], [1, 3, 5]):
        recorder.request(1)
        await idle()
        assert taken == recorder.items
    assert "complete" == recorder.kinds[-1]


@pytest.mark.parametrize("source", SOURCES)
async def test_no_more_is_made_than_is_requested(source: str) -> None:
    recorder, made = Recorder(), list[int]()

    def noted(n: int) -> int:
        made.append(n)
        return n

    SOURCES[source]().map(noted).concat(Flow.of(4)).subscribe(recorder)

    for taken in ([0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
        recorder.request(2)
        await idle()
        assert taken == recorder.items
        assert taken[:4] == made


@pytest.mark.parametrize("source", ["a ready async generator", "given elements", "a combinator"])
async def test_a_short_inner_flow_that_begins_late_is_not_cut_in_two(source: str, still: list[float]) -> None:
    turns, over = [0], asyncio.Event()

    async def count() -> None:
        while not over.is_set():
            turns[0] += 1
            await asyncio.sleep(0)

    def late(n: int) -> Flow[tuple[int, int]]:
        still[0] += 1
        return SOURCES[source]().map(lambda _: (n, turns[0]))

    counting = asyncio.create_task(count())
    seen = await Flow.range(3).flat_map(late).to_list()
    over.set()
    await counting

    assert [0, 1, 2] == sorted({n for n, _ in seen})
    assert 3 == len(set(seen))


@pytest.mark.parametrize("given", [False, True], ids=["a ready async generator", "given elements"])
async def test_dropped_elements_cost_no_look_at_the_clock_each_if_few_are_wanted(
    given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[None]()

    def clock() -> float:
        looks.append(None)
        return 1.0

    monkeypatch.setattr(budgets, "clock", clock)
    source = Flow.of(*range(5000)) if given else Flow.from_async_iterable(lambda: ready(5000))
    recorder = Recorder(1)
    source.filter(lambda n: n >= 4990).retry(0).subscribe(recorder)
    await idle()

    assert [4990] == recorder.items
    assert len(looks) < 100


@pytest.mark.parametrize("demand", [1, 7, 8, 9])
@pytest.mark.parametrize("source", SOURCES)
async def test_a_failure_names_its_stage_and_element_for_any_demand(source: str, demand: int) -> None:
    recorder = Recorder(demand)
    SOURCES[source]().filter(lambda n: n != 1).map(lambda n: 6 // (2 - n)).retry(0).subscribe(recorder)
    await idle()
    if demand == 1:
        recorder.request(1)
        await recorder.over.wait()

    assert [3] == recorder.items
    located, *_ = recorder.error.__notes__
    assert located.startswith("in map(<lambda>)")
    assert "element #2 of" in located


@pytest.mark.parametrize("source", SOURCES)
async def test_elements_before_the_failure_of_a_function_come_first(source: str) -> None:
    recorder = Recorder(9)
    SOURCES[source]().map(lambda n: 6 // (2 - n)).retry(0).subscribe(recorder)

    await recorder.over.wait()

    assert [3, 6] == recorder.items
    assert isinstance(recorder.error, ZeroDivisionError)
    located, *_ = recorder.error.__notes__
    assert located.startswith("in map(<lambda>)")
    assert "element #2 of" in located


class Resource:
    """Yields elements, and notes what happens to it."""

    def __init__(self, log: list[str], turns: int = 0) -> None:
        self.log = log
        self.turns = turns
        """How many turns of the event loop its cleanup takes."""

    async def __call__(self) -> AsyncGenerator[int]:
        self.log.append("opened")
        try:
            for item in range(4):
                yield item
        finally:
            for _ in range(self.turns):
                await asyncio.sleep(0)
            self.log.append("closed")


async def test_a_quick_cleanup_comes_before_the_next_attempt() -> None:
    log: list[str] = []
    flow = Flow.from_async_iterable(Resource(log)).map(lambda n: 1 // n).retry(1)

    with pytest.raises(ZeroDivisionError):
        await flow.to_list()

    assert ["opened", "closed"] * 2 == log


async def test_the_end_waits_for_a_slow_cleanup() -> None:
    log: list[str] = []
    flow = Flow.from_async_iterable(Resource(log, 2)).map(lambda n: 1 // n).on_error_return(7)

    assert [7] == await flow.to_list()
    assert ["opened", "closed"] == log


@pytest.mark.parametrize("source", ["a ready async generator", "given elements", "a combinator"])
async def test_a_failure_behind_a_cancel_goes_to_the_hook(source: str) -> None:
    recorder, dropped = Recorder(9), list[BaseException]()

    def leave(n: int) -> int:
        if n == 1:
            recorder.cancel()
            raise LookupError(n)
        return n

    with hooks.using(on_error_dropped=dropped.append):
        Flow.of(0).concat_map(lambda _: SOURCES[source]().map(leave)).subscribe(recorder)
        await idle()

    assert ["subscribe"] == [kind for kind in recorder.kinds if kind in ("subscribe", "error", "complete")]
    assert [LookupError] == [type(error) for error in dropped]


async def test_a_generator_may_catch_what_it_awaits_in_the_middle_of_a_pass() -> None:
    async def guarded() -> AsyncGenerator[int]:
        yield 1
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(3600)
        except TimeoutError:
            yield 2
        yield 3

    flow = Flow.range(2).concat_map(lambda _: Flow.from_async_iterable(guarded).map(str))

    assert 2 * ["1", "2", "3"] == await flow.to_list()


async def test_an_element_that_answers_a_cancel_passes_the_stages() -> None:
    reading: list[asyncio.Task[Any] | None] = []

    async def stubborn() -> AsyncGenerator[int]:
        reading.append(asyncio.current_task())
        try:
            yield 1
        except asyncio.CancelledError:
            yield 2
        yield 3

    recorder = Recorder(1)
    Flow.from_async_iterable(stubborn).map(str).concat(Flow.of("4")).subscribe(recorder)
    await idle()
    task = reading[0]
    assert task is not None
    task.cancel()
    await idle()
    recorder.request(9)
    await recorder.over.wait()

    assert ["1", "2", "3", "4"] == recorder.items


@pytest.fixture
def slow(still: list[float]) -> Callable[[int], int]:
    """A function for which the time is up after each call."""

    def spend(n: int) -> int:
        still[0] += 1
        return n

    return spend


async def test_the_end_of_a_combinator_stands_behind_its_elements_when_the_time_is_up(
    slow: Callable[[int], int],
) -> None:
    seen: list[object] = []
    flow = Flow.of(0, 1, 2, 3).do_finally(lambda: seen.append("finally")).map(slow).retry(1)

    await flow.do_on_next(seen.append).drain()

    assert [0, 1, 2, 3, "finally"] == seen


async def test_a_failure_of_a_combinator_stands_behind_its_elements_when_the_time_is_up(
    slow: Callable[[int], int],
) -> None:
    recorder = Recorder(9)
    Flow.of(0, 1, 2).concat(Flow.error(OSError("down"))).map(slow).retry(0).subscribe(recorder)

    await recorder.over.wait()

    assert [0, 1, 2] == recorder.items
    assert isinstance(recorder.error, OSError)


@pytest.mark.parametrize("leaves", ["by a cancel", "by a failure"])
async def test_elements_that_wait_for_a_turn_go_to_the_hook(leaves: str, slow: Callable[[int], int]) -> None:
    recorder, discarded = Recorder(9), list[int]()

    def leave(n: int) -> int:
        if n == 1 and leaves == "by a failure":
            raise LookupError(n)
        if n == 1:
            recorder.cancel()
        return slow(n)

    with hooks.using(on_discard=discarded.append):
        Flow.of(0, 1, 2, 3).timeout(5).map(leave).retry(0).subscribe(recorder)
        await idle()

    assert [0] == recorder.items
    assert {2, 3} <= set(discarded)


async def test_elements_of_a_combinator_that_come_while_others_wait_are_behind_them(slow: Callable[[int], int]) -> None:
    flow = Flow.of(0, 1).concat(Flow.of(2, 3)).map(slow)

    assert [0, 1, 2, 3] == await flow.retry(0).to_list()
    with pytest.raises(ZeroDivisionError) as failed:
        await flow.map(lambda n: 1 // (3 - n)).retry(0).to_list()
    assert "element #3 of" in failed.value.__notes__[0]


async def test_a_failure_that_waits_behind_elements_nobody_wants_goes_to_the_hook(slow: Callable[[int], int]) -> None:
    recorder, dropped = Recorder(9), list[BaseException]()

    def leave(n: int) -> int:
        if n == 1:
            recorder.cancel()
        return slow(n)

    with hooks.using(on_error_dropped=dropped.append):
        Flow.of(0, 1, 2).concat(Flow.error(OSError("down"))).map(leave).retry(0).subscribe(recorder)
        await idle()

    assert [0] == recorder.items
    assert [OSError] == [type(error) for error in dropped]


async def test_the_end_waits_for_the_cleanup_of_a_combinator_that_is_cancelled_late(slow: Callable[[int], int]) -> None:
    seen: list[str] = []
    quiet = Flow.range(9).do_finally(lambda: seen.append("finally")).retry(1)

    assert [0] == await quiet.do_on_cancel(lambda: seen.append("cancelled")).map(slow).take(1).to_list()
    assert ["cancelled", "finally"] == seen


CHANGED: ContextVar[int] = ContextVar("changed", default=0)


@pytest.mark.parametrize("stateful", [False, True], ids=["no region", "a region"])
@pytest.mark.parametrize("source", SOURCES)
async def test_the_functions_of_one_subscription_share_a_context_that_is_its_own(
    source: str, stateful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Behind a combinator the functions run in the context of the source. When a turn has no time left, the rest runs in another one.
    monkeypatch.setattr(budgets, "clock", lambda: 1.0)

    def count(_: int) -> int:
        CHANGED.set(CHANGED.get() + 1)
        return CHANGED.get()

    def inner(_: int) -> Flow[int]:
        flow = SOURCES[source]().map(count)
        return flow.skip(0).filter(bool).scan(lambda _, n: n) if stateful else flow

    assert 2 * [1, 2, 3, 4] == await Flow.range(2).concat_map(inner).to_list()
    assert 0 == CHANGED.get()


async def test_a_snapshot_shows_how_far_inner_flows_with_stages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", count(step=0).__next__)  # both are read in one turn
    flow = Flow.merge(*(Flow.range(9).map(str) for _ in range(2)), prefetch=4)

    async with flow.open() as items:
        assert "0" == await anext(items)
        (region,) = items.snapshot().regions

        assert [4, 4] == [inner.regions[0].delivered for inner in region.inner]
