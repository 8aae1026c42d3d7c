"""The cost of an element in countable things, which is the same on every machine, however busy.

Counts are taken for so many elements and for twice as many, so that what a subscription costs once drops out. The clock
stands still meanwhile: else a slow machine would take more turns of the loop for the same work.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import math
import operator
import sys
import threading
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import Context
from typing import TypeVarTuple, cast

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._core import budgets

N = 20_000
GIVEN = Flow.of(1)
PREFETCH = 256
ROUNDS = N / PREFETCH
"""How often a whole prefetch of elements passes a boundary."""
ELEMENT = sys.getsizeof(10**6) + 4 * 8
"""Bytes of an element and of its places in the lists in which it travels. Some of these lists have room to grow."""

Ts = TypeVarTuple("Ts")
Counted = Callable[[Callable[[], object]], int]
Flows = Callable[[int], Flow[int]]


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that costs no Python call either."""
    monkeypatch.setattr(budgets, "clock", itertools.repeat(0.0).__next__)
    monkeypatch.setattr(sys.modules["reactive_aio.schedulers.thread"], "_new_event_loop", CountingLoop)


class CountingLoop(asyncio.SelectorEventLoop):
    """A loop that counts what is scheduled on it, from its own thread and from others."""

    scheduled = itertools.count()
    from_elsewhere = itertools.count()

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        next(CountingLoop.scheduled)
        return super().call_soon(callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        next(CountingLoop.from_elsewhere)
        return super().call_soon_threadsafe(callback, *args, context=context)


def run(flow: Flow[int]) -> object:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        return runner.run(flow.count())


@contextmanager
def uncollected() -> Generator[None]:
    """Finalize what other tests have left before something is counted, and nothing meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def python_calls(work: Callable[[], object]) -> int:
    """Count the calls of Python functions in this thread, and the times generators are resumed."""
    calls = itertools.count()

    def profile(frame: object, event: str, arg: object) -> None:
        if event == "call":
            next(calls)

    with uncollected():
        sys.setprofile(profile)
        try:
            work()
        finally:
            sys.setprofile(None)
    return next(calls)


def python_calls_in_all_threads(work: Callable[[], object]) -> int:
    """Count the calls in the threads that are started as well: some may be of others, whose tests have ended."""
    calls = itertools.count()

    def profile(frame: object, event: str, arg: object) -> None:
        if event == "call":
            next(calls)

    threading.setprofile(profile)
    try:
        here = python_calls(work)
    finally:
        threading.setprofile(None)
    return here + next(calls)


def callbacks(work: Callable[[], object]) -> int:
    """Count what is scheduled on a loop from its own thread."""
    before = next(CountingLoop.scheduled)
    work()
    return next(CountingLoop.scheduled) - before - 1


def wake_ups(work: Callable[[], object]) -> int:
    """Count what is scheduled on a loop from another thread, which interrupts its sleep."""
    before = next(CountingLoop.from_elsewhere)
    work()
    return next(CountingLoop.from_elsewhere) - before - 1


def for_more(counted: Counted, flow: Flows, n: int = N) -> int:
    """Return what ``n`` more elements add to a count."""
    counted(lambda: run(flow(n)))  # functions are generated, modules imported
    once, twice = counted(lambda: run(flow(n))), counted(lambda: run(flow(2 * n)))
    return twice - once


def beyond_one(counted: Counted, flow: Flows, n: int = N) -> int:
    """Return what elements add to the count for one of them.

    Between threads a count depends on which thread is quicker, and may be half of its maximum. So two long runs can't
    be compared: one of them may have had luck.
    """
    counted(lambda: run(flow(n)))  # functions are generated, modules imported
    return counted(lambda: run(flow(n))) - counted(lambda: run(flow(1)))


def increment(n: int) -> int:
    return n + 1


def even(n: int) -> bool:
    return n % 2 == 0


def here(n: int, prefetch: int = PREFETCH) -> Flow[int]:
    return Flow.range(n).publish_on(schedulers.current(), prefetch=prefetch)


def on_a_thread(n: int) -> Flow[int]:
    return Flow.range(n).subscribe_on(schedulers.thread("counted")).publish_on(schedulers.current(), prefetch=PREFETCH)


# --- calls of Python functions ---------------------------------------------------------------------------------------


def test_fused_operators_call_nothing_but_the_functions_of_the_user() -> None:
    assert for_more(python_calls, lambda n: Flow.range(n).map(increment).filter(even)) == 2 * N


def test_ten_fused_operators_call_nothing_but_the_functions_of_the_user() -> None:
    def ten(n: int) -> Flow[int]:
        flow = Flow.range(n)
        for _ in range(10):
            flow = flow.map(increment)
        return flow

    assert for_more(python_calls, ten) == 10 * N


def test_builtin_functions_in_a_fused_chain_cost_no_python_call() -> None:
    assert for_more(python_calls, lambda n: Flow.range(n).map(operator.neg)) == 0


def test_a_boundary_in_one_loop_costs_no_call_for_an_element_and_30_for_256() -> None:
    assert for_more(python_calls, here) <= 30 * ROUNDS


def test_functions_on_both_sides_of_a_boundary_cost_their_calls_and_one_more_for_a_list_to_travel_in() -> None:
    def both(n: int) -> Flow[int]:
        return Flow.range(n).map(increment).publish_on(schedulers.current(), prefetch=PREFETCH).map(increment)

    assert for_more(python_calls, both) - 3 * N <= 30 * ROUNDS


def test_an_element_at_a_time_over_a_boundary_in_one_loop_costs_31_calls() -> None:
    async def read(n: int) -> None:
        async for _ in here(n, prefetch=1):
            pass

    def counted(n: int) -> int:
        return python_calls(lambda: asyncio.run(read(n)))

    counted(100)  # functions are generated, modules imported
    assert counted(2_000) - counted(1_000) <= 31 * 1_000


def test_a_boundary_between_threads_costs_no_call_for_an_element_and_about_60_for_256() -> None:
    # On a busy machine a thread goes to sleep more often, and its wake-up takes calls. So the least of three counts.
    assert min(beyond_one(python_calls_in_all_threads, on_a_thread) for _ in range(3)) <= 65 * ROUNDS


def shared_by(readers: int) -> int:
    """Count the calls for ``N`` more elements that are counted by so many, on one loop."""

    async def all_count(n: int) -> None:
        flow = Flow.range(n).share(lag=PREFETCH, start=readers)
        await asyncio.gather(*[flow.count() for _ in range(readers)])

    def counted(n: int) -> int:
        return python_calls(lambda: asyncio.run(all_count(n)))

    counted(N)  # functions are generated, modules imported
    return counted(2 * N) - counted(N)


def test_a_shared_flow_costs_its_one_subscriber_26_calls_for_256_elements() -> None:
    assert shared_by(1) <= 27 * ROUNDS


def test_each_further_subscriber_of_a_shared_flow_costs_11_calls_for_256_elements() -> None:
    assert shared_by(8) - shared_by(1) <= 7 * 11.5 * ROUNDS


def test_one_of_eight_who_await_an_element_at_a_time_takes_12_calls_for_it() -> None:
    async def read(flow: Flow[int]) -> None:
        async for _ in flow:
            pass

    async def all_read(n: int) -> None:
        flow = Flow.range(n).share(start=8)
        await asyncio.gather(*[read(flow) for _ in range(8)])

    def counted(n: int) -> int:
        return python_calls(lambda: asyncio.run(all_read(n)))

    counted(100)  # functions are generated, modules imported
    assert counted(400) - counted(200) <= 12 * 8 * 200


# --- calls of Python functions for a subscription ---------------------------------------------------------------------


def runs(n: int, once: Callable[[], object]) -> int:
    """Count the calls for ``n`` more runs of a flow in one task."""

    async def many(n: int) -> None:
        for _ in range(n):
            await cast(Awaitable[object], once())

    def counted(n: int) -> int:
        return python_calls(lambda: asyncio.run(many(n)))

    counted(1)  # functions are generated, modules imported
    return counted(2 * n) - counted(n)


def test_a_run_of_a_small_flow_costs_42_calls_and_no_turn_of_the_loop() -> None:
    flow = Flow.of(1).map(increment)

    assert runs(1_000, flow.to_list) <= 42 * 1_000  # a turn of the loop each millisecond adds some


def test_a_small_flow_that_is_built_for_each_run_costs_60_calls() -> None:
    assert runs(1_000, lambda: Flow.of(1).map(increment).to_list()) <= 60 * 1_000


def test_a_flow_that_needs_a_plan_is_planned_once_however_often_it_is_run() -> None:
    flow = Flow.of(1).merge(Flow.of(2))

    assert runs(100, flow.to_list) <= 318 * 100  # the plan would take ten more


def test_a_group_of_two_with_an_end_of_its_own_costs_no_driver() -> None:
    async def counted(n: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            async for group in Flow.range(2 * n).group_by(lambda item: item // 2, max_groups=n):
                tasks.create_task(group.count())

    def calls(n: int) -> int:
        return python_calls(lambda: asyncio.run(counted(n)))

    calls(10)  # functions are generated, modules imported

    assert calls(1_000) - calls(500) <= 136 * 500  # with a driver some 350


def test_a_group_of_two_that_another_combinator_reads_costs_no_driver() -> None:
    def calls(n: int) -> int:
        groups = Flow.range(2 * n).group_by(lambda item: item // 2, max_groups=n)
        flat = groups.flat_map(lambda group: group.map(increment), max_concurrency=n)
        return python_calls(lambda: asyncio.run(flat.count()))

    calls(10)  # functions are generated, modules imported

    assert calls(1_000) - calls(500) <= 165 * 500  # with a driver some 250


def test_an_end_of_a_window_that_is_complete_takes_no_turn_of_the_loop() -> None:
    async def each_counted(n: int) -> None:
        async for window in Flow.range(2 * n).window(2):
            assert await window.count() == 2

    def scheduled(n: int) -> int:
        with asyncio.Runner(loop_factory=CountingLoop) as runner:
            return callbacks(lambda: runner.run(each_counted(n)))

    assert scheduled(2_000) - scheduled(1_000) <= 10


def test_building_a_small_flow_costs_20_calls() -> None:
    built = python_calls(lambda: [Flow.of(n).map(increment) for n in range(1_000)])

    assert built <= 20 * 1_000


@pytest.mark.parametrize(
    ("flow", "calls"),
    [
        (lambda n: Flow.range(n).flat_map(lambda _: GIVEN), 10),
        (lambda n: Flow.range(n).concat_map(lambda _: GIVEN), 13),
        (lambda n: Flow.range(n).concat_map_eager(lambda _: GIVEN), 19),
        (GIVEN.repeat, 20),
    ],
    ids=["flat_map", "concat_map", "concat_map_eager", "repeat"],
)
def test_an_inner_flow_of_given_elements_costs_no_assembly(flow: Flows, calls: int) -> None:
    assert for_more(python_calls, flow, 2_000) <= calls * 2_000


@pytest.mark.parametrize(
    ("flow", "calls"),
    [
        (lambda n: Flow.range(n // 2).merge(Flow.range(n // 2)), 26),
        (lambda n: Flow.range(n // 2).merge(Flow.range(n // 2)).map(increment), 43),
        (lambda n: Flow.range(n).zip(Flow.range(n)), 31),
        (lambda n: Flow.range(n).concat_map(lambda _: GIVEN), 49),
        (lambda n: Flow.range(n).flat_map(lambda _: GIVEN), 69),
        (lambda n: Flow.range(n).concat_map_eager(lambda _: GIVEN), 83),
    ],
    ids=["merge", "merge and map", "zip", "concat_map", "flat_map", "concat_map_eager"],
)
def test_an_element_of_a_combinator_that_is_read_by_async_for_costs_few_calls(flow: Flows, calls: int) -> None:
    async def read(n: int) -> None:
        async for _ in flow(n):
            pass

    def counted(n: int) -> int:
        return python_calls(lambda: asyncio.run(read(n)))

    counted(10)  # functions are generated, modules imported
    assert counted(2_000) - counted(1_000) <= calls * 1_000


async def ready(n: int) -> AsyncGenerator[int]:
    for item in range(n):
        yield item


async def suspended(n: int) -> AsyncGenerator[int]:
    for item in range(n):
        await asyncio.sleep(0)
        yield item


def test_an_element_of_async_for_that_suspends_costs_38_calls() -> None:
    # 17 of them are those of the loop without a flow.
    async def read(n: int) -> None:
        async for _ in Flow.from_async_iterable(suspended(n)):
            pass

    def counted(n: int) -> int:
        return python_calls(lambda: asyncio.run(read(n)))

    counted(100)  # functions are generated, modules imported
    assert counted(1_000) - counted(500) <= 39 * 500


def fail(_: int) -> int:
    raise LookupError


def test_an_attempt_of_a_retry_costs_no_note_on_a_failure_that_nobody_sees() -> None:
    # 29 calls fewer than with a note.
    assert for_more(python_calls, lambda n: GIVEN.map(fail).retry(n).on_error_complete(), 500) <= 15 * 500


def test_a_combinator_that_another_one_reads_costs_no_region() -> None:
    def given(n: int) -> Flow[int]:
        return Flow.range(n).concat_map(lambda _: GIVEN.retry(1))

    def guarded(n: int) -> Flow[int]:
        return Flow.range(n).flat_map(
            lambda item: Flow.from_awaitable(lambda: later(item)).timeout(5).retry(2).on_error_return(0)
        )

    # With regions 273 and 775.
    assert for_more(python_calls, given, 300) <= 175 * 300
    assert for_more(python_calls, guarded, 300) <= 500 * 300


def test_an_inner_async_generator_that_does_not_wait_costs_neither_a_region_nor_a_task() -> None:
    def flat_mapped(n: int) -> Flow[int]:
        return Flow.range(n).flat_map(lambda _: Flow.from_async_iterable(ready(3)))

    def concat_mapped(n: int) -> Flow[int]:
        return Flow.range(n).concat_map(lambda _: Flow.from_async_iterable(ready(3)))

    # With a task for each 101.
    assert for_more(python_calls, flat_mapped, 500) <= 75 * 500
    assert for_more(python_calls, concat_mapped, 500) <= 69 * 500


def test_stateless_stages_of_an_inner_flow_cost_no_region() -> None:
    def of_results(n: int) -> Flow[int]:
        return Flow.range(n).flat_map(lambda item: Flow.from_awaitable(lambda: later(item)).map(increment))

    def of_generators(n: int) -> Flow[int]:
        return Flow.range(n).concat_map(lambda _: Flow.from_async_iterable(ready(3)).map(increment))

    def of_given(n: int) -> Flow[int]:
        return Flow.range(n).concat_map(lambda _: Flow.of(1, 2, 3).map(increment))

    def of_combinators(n: int) -> Flow[int]:
        return Flow.range(n).flat_map(lambda item: Flow.from_awaitable(lambda: later(item)).timeout(5).map(increment))

    # With a region for each 209, 210, 159 and 364.
    assert for_more(python_calls, of_results, 500) <= 108 * 500
    assert for_more(python_calls, of_generators, 500) <= 101 * 500
    assert for_more(python_calls, of_given, 500) <= 91 * 500
    assert for_more(python_calls, of_combinators, 500) <= 285 * 500


def test_an_inner_result_costs_neither_a_region_nor_a_task() -> None:
    def flat_mapped(n: int) -> Flow[int]:
        return Flow.range(n).flat_map(lambda item: Flow.from_awaitable(lambda: later(item)))

    def awaited(n: int) -> Flow[int]:
        return Flow.range(n).flat_map(lambda item: Flow.from_awaitable(lambda: asyncio.sleep(0, item)))

    # With a region and a task for each 234 and 246.
    assert for_more(python_calls, flat_mapped, 500) <= 80 * 500
    assert for_more(python_calls, awaited, 500) <= 145 * 500


async def later(item: int) -> int:
    return item


@pytest.mark.parametrize(
    ("flow", "calls"),
    [
        (lambda n: _suspended(n, 8)[0].merge(*_suspended(n, 8)[1:]), 21),
        (lambda n: _suspended(n, 1)[0].zip(_suspended(n, 1)[0]), 47),
        (lambda n: _suspended(n, 2)[0].combine_latest(_suspended(n, 2)[0]), 28),
    ],
    ids=["merge", "zip", "combine_latest"],
)
def test_an_element_of_sources_that_suspend_costs_few_calls_more_than_its_turn_of_the_loop(
    flow: Flows, calls: int
) -> None:
    # Of the calls 14 are asyncio's or the generator's own, and 28 where two elements make one.
    assert for_more(python_calls, flow, 1_600) <= calls * 1_600


def _suspended(n: int, sources: int) -> list[Flow[int]]:
    return [Flow.from_async_iterable(suspended(n // sources)) for _ in range(sources)]


@pytest.mark.parametrize(
    ("apply", "calls"),
    [(lambda flow: flow.timeout(60), 32), (lambda flow: flow.debounce(60), 27)],
    ids=["timeout", "debounce"],
)
def test_an_element_that_puts_a_timer_off_costs_two_calls_for_it(
    apply: Callable[[Flow[int]], Flow[int]], calls: int
) -> None:
    # The start of the timer and a look at the clock. By `now` and `start_at` it would be three more.
    assert for_more(python_calls, lambda n: apply(Flow.from_async_iterable(suspended(n))), 500) <= calls * 500


def test_a_flow_of_ten_elements_that_suspend_costs_no_driver() -> None:
    def once() -> object:
        return Flow.from_async_iterable(suspended(10)).map(increment).sum()

    assert runs(200, once) <= 400 * 200


# --- callbacks and wake-ups ------------------------------------------------------------------------------------------


def test_a_region_without_a_boundary_takes_one_turn_whatever_its_length() -> None:
    assert for_more(callbacks, lambda n: Flow.range(n).map(increment)) == 0


async def _behind_turns(n: int) -> AsyncGenerator[int]:
    for item in range(n):
        await asyncio.sleep(0)
        yield item


async def _behind_futures(n: int) -> AsyncGenerator[int]:
    loop = asyncio.get_running_loop()
    for item in range(n):
        wait = loop.create_future()
        loop.call_soon(wait.set_result, None)
        await wait
        yield item


async def _read_on(flow: Flow[int]) -> AsyncGenerator[int]:
    async for item in flow:
        yield item


@pytest.mark.parametrize(
    ("apply", "more"),
    [
        (lambda flow: flow, 0),
        (lambda flow: flow.retry(1), 1),
        (lambda flow: Flow.from_async_iterable(_read_on(flow)), 0),
    ],
    ids=["source", "combinator", "flow in a source"],
)
@pytest.mark.parametrize("source", [_behind_turns, _behind_futures])
def test_an_element_behind_a_wait_costs_one_callback_more_than_by_hand_at_most(
    source: Callable[[int], AsyncGenerator[int]], apply: Callable[[Flow[int]], Flow[int]], more: int
) -> None:
    async def read(items: AsyncIterable[int]) -> None:
        async for _ in items:
            pass

    def scheduled(n: int, *, by_hand: bool) -> int:
        with asyncio.Runner(loop_factory=CountingLoop) as runner:
            items = source(n) if by_hand else apply(Flow.from_async_iterable(source(n)))
            return callbacks(lambda: runner.run(read(items)))

    # The one more is the consumer's. The step of the source's own task would be another.
    ours, by_hand = (scheduled(400, by_hand=each) - scheduled(200, by_hand=each) for each in (False, True))
    assert ours - by_hand <= more * 200 + 5


def test_a_boundary_in_one_loop_costs_no_callback_until_the_time_of_one_is_up() -> None:
    assert for_more(callbacks, here) == 0


def test_a_boundary_in_one_loop_costs_two_callbacks_at_most_for_256_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "TURN", 0)
    assert for_more(callbacks, here) == 2 * (2 * N // PREFETCH - N // PREFETCH)


def test_a_boundary_in_one_loop_never_interrupts_the_sleep_of_the_loop() -> None:
    assert for_more(wake_ups, here) == 0


def test_stop_and_wait_costs_two_callbacks_at_most_for_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "TURN", 0)
    assert for_more(callbacks, lambda n: here(n, prefetch=1), 1_000) == 2 * 1_000


def test_a_boundary_between_threads_costs_two_wake_ups_at_most_for_256_elements() -> None:
    assert beyond_one(wake_ups, on_a_thread) <= 2 * math.ceil(ROUNDS) + 3  # one of these three signals the end


# --- allocations -----------------------------------------------------------------------------------------------------


def peak(work: Callable[[], object]) -> int:
    """Return the most memory, in bytes, that is held at a time."""
    gc.collect()
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.costly
@pytest.mark.parametrize(
    "flow", [lambda n: Flow.range(n).map(increment), here, on_a_thread], ids=["fused", "in one loop", "between threads"]
)
def test_what_is_held_at_a_time_does_not_grow_with_the_elements(flow: Flows) -> None:
    # A thread that lags behind has a prefetch of elements waiting, and as many in hand: about a byte for each of all.
    assert beyond_one(peak, flow, 2 * N) <= 3 * PREFETCH * ELEMENT


def test_a_boundary_holds_no_more_than_its_prefetch() -> None:
    more = PREFETCH * 3

    def held(prefetch: int) -> int:
        return peak(lambda: run(here(N, prefetch)))

    held(PREFETCH)
    assert held(PREFETCH + more) - held(PREFETCH) <= more * ELEMENT


@pytest.mark.costly
@pytest.mark.parametrize(
    "flow", [lambda n: Flow.range(n).map(increment), here, on_a_thread], ids=["fused", "in one loop", "between threads"]
)
def test_a_flow_leaves_nothing_behind(flow: Flows) -> None:
    def left() -> int:
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(100):
            run(flow(1_000))
        gc.collect()
        return sys.getallocatedblocks() - before

    left()
    assert left() < 100


# --- many flows at a time: the last, since so many objects at once leave the allocator in no state to be measured -------


def test_a_group_costs_as_much_however_many_are_open() -> None:
    async def each_counted(n: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            async for group in Flow.range(2 * n).group_by(lambda item: item // 2, max_groups=n):
                tasks.create_task(group.count())

    def cost(n: int) -> int:
        return python_calls(lambda: asyncio.run(each_counted(n)))

    cost(500)  # functions are generated, modules imported
    few, more, many = cost(500), cost(1_000), cost(2_000)

    assert many - more <= 1.05 * 2 * (more - few)


def collections_for(flow: Flow[object]) -> int:
    """Count the runs of the garbage collector while elements are made and counted."""
    runs: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        runs.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        asyncio.run(flow.for_each(lambda _: None))
    finally:
        gc.callbacks.remove(note)
    return runs.count("start")


def test_elements_that_are_new_objects_do_not_make_the_collector_run_between_two_regions() -> None:
    assert collections_for(Flow.range(N).materialize()) - collections_for(Flow.range(1).materialize()) <= 2
