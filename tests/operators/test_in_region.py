"""map_async and filter_when as stages: a region that no event loop runs awaits on one of its own, beside it."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar
from math import inf
from time import perf_counter
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from reactive_aio import hooks
from reactive_aio._fusion import ChunkWork, Origin, Placed, RegionRun, Stage, Transform
from reactive_aio.operators.awaiting.in_region import FilterWhenInRegion, Gate, InRegion, MapAsyncInRegion
from reactive_aio.operators.awaiting.worker_loop import _LOOPS, WorkerLoop
from reactive_aio.operators.transforming.map import Map

SECONDS = 30.0
"""For what must not hang."""
VARIABLE: ContextVar[str] = ContextVar("variable", default="default")


class BrokenError(Exception):
    """How functions fail here."""


@pytest.fixture(autouse=True, scope="module")
def ends() -> Iterator[None]:
    """End the loop, which in a worker lasts as long as the process, and which a virtual clock would take for busy."""
    yield
    while _LOOPS:
        worker = _LOOPS.pop()
        worker.loop.call_soon_threadsafe(worker.loop.stop)
    for thread in threading.enumerate():
        if thread.name == "awaiting":
            thread.join(SECONDS)


def region(*stages: Stage[Any, Any]) -> RegionRun:
    placed = tuple(Placed(stage, Origin("here.py", 1)) for stage in stages)
    return RegionRun(placed, "partition 0", counted=False)


def passes(run: RegionRun, items: Iterable[Any], slice_: float = 0.0) -> Iterator[Any]:
    """Run a region as a worker does, pass by pass."""
    items, rest = iter(items), None
    while True:
        run.pace.deadline = perf_counter() + slice_
        yield from rest or run.over(items, run.pace.deadline)
        rest = run.rest()
        if rest is None and (run.pace.ended or run.done):
            break
    yield from run.finishing()


def given(*stages: Stage[Any, Any], items: Iterable[Any]) -> list[Any]:
    run = region(*stages)
    try:
        return list(passes(run, items))
    finally:
        run.close()


@define(eq=False)
class Work:
    """A function that goes on when the test says so, and what it has seen."""

    begun: list[int] = field(factory=list[int])
    cancelled: list[int] = field(factory=list[int])
    most: int = 0
    under_way: int = 0
    allowed: dict[int, threading.Event] = field(factory=dict[int, threading.Event])

    async def __call__(self, n: int) -> int:
        self.begun.append(n)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            event = self.allowed.setdefault(n, threading.Event())
            while not event.is_set():
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.cancelled.append(n)
            raise
        finally:
            self.under_way -= 1
        return n

    def until_begun(self, n: int) -> None:
        while len(self.begun) < n:
            time.sleep(0.001)

    def allow(self, *numbers: int) -> None:
        for n in numbers:
            self.allowed.setdefault(n, threading.Event()).set()


async def slower_first(n: int) -> int:
    await asyncio.sleep(0.003 * (n % 4 == 0))
    return n


async def at_once(n: int) -> int:
    return n


async def is_even(n: int) -> bool:
    await asyncio.sleep(0)
    return n % 2 == 0


@pytest.mark.parametrize("max_concurrency", [1, 3, 16, 100])
def test_results_come_in_the_order_of_the_elements(max_concurrency: int) -> None:
    assert list(range(50)) == given(MapAsyncInRegion(slower_first, max_concurrency), items=range(50))


@drawn(
    n=st.integers(0, 12),
    max_concurrency=st.integers(1, 5),
    fails_before=st.integers(0, 20),
    fails=st.integers(0, 20),
    slices=st.sampled_from([0.0, 0.001, inf]),
)
@settings(max_examples=40, deadline=None)
def test_results_are_in_order_up_to_the_first_failure_and_all_of_them_up_to_one_of_the_input(
    n: int, max_concurrency: int, fails_before: int, fails: int, slices: float
) -> None:
    def before(item: int) -> int:
        if item == fails_before:
            raise BrokenError("before")
        return item

    async def awaited(item: int) -> int:
        await asyncio.sleep(0.001 * (item % 3))
        if item == fails:
            raise BrokenError("awaited")
        return -item

    run, found, failure = region(Map(before), MapAsyncInRegion(awaited, max_concurrency)), list[int](), ""
    with hooks.using(on_error_dropped=lambda _: None):
        try:
            found.extend(passes(run, range(n), slices))
        except BrokenError as error:
            failure = str(error)
        run.close()

    if fails < min(n, fails_before):
        assert "awaited" == failure
        assert [-item for item in range(fails)][: len(found)] == found
    else:
        assert ("before" if fails_before < n else "") == failure
        assert [-item for item in range(min(n, fails_before))] == found


def test_a_failure_that_another_one_has_overtaken_goes_to_the_hook() -> None:
    late = threading.Event()

    def fail(n: int) -> int:
        if n == 2:
            late.set()
            raise BrokenError("late")
        return n

    async def fail_later(n: int) -> int:
        while not late.is_set():
            await asyncio.sleep(0.001)
        raise BrokenError("first")

    run, dropped = region(Map(fail), MapAsyncInRegion(fail_later, 4)), list[BaseException]()
    with hooks.using(on_error_dropped=dropped.append):
        with pytest.raises(BrokenError, match="first"):
            list(passes(run, range(5)))
        run.close()
    assert ["late"] == [str(error) for error in dropped if str(error) == "late"]


def test_no_element_is_no_result() -> None:
    assert [] == given(MapAsyncInRegion(at_once, 3), items=())


def test_what_the_predicate_turns_down_is_left_out() -> None:
    assert [0, 2, 4, 6, 8] == given(FilterWhenInRegion(is_even, 3), items=range(10))


def test_stages_follow_one_another() -> None:
    stages = (Map(abs), MapAsyncInRegion(slower_first, 4), FilterWhenInRegion(is_even, 2), Map(str))

    assert [str(n) for n in range(40) if n % 2 == 0] == given(*stages, items=range(0, -40, -1))


@define(eq=False)
class Held(Transform[int, int]):
    """A stage with elements of its own before the input and behind it, while there is news of another region."""

    def apply(self, items: Iterator[int]) -> Iterator[int]:
        return items

    def prelude(self) -> Iterator[int]:
        for n in range(20):
            WorkerLoop.of_process().news.set()
            yield n

    finish = prelude


class Holding(Stage[int, int]):
    needs_whole_stream = True

    def transform(self) -> Transform[int, int]:
        return Held()


@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_no_element_is_lost_that_a_stage_before_it_gives_of_itself(max_concurrency: int) -> None:
    run = region(Holding(), MapAsyncInRegion(slower_first, max_concurrency), FilterWhenInRegion(is_even, 2))
    evens = list(range(0, 20, 2))

    assert [*evens, 50, *evens] == [*run.starting(), *passes(run, [50, 51])]
    run.close()


@define(eq=False)
class Copies(Stage[int, int]):
    """A stage that repeats each element, and holds it in the iterator until then."""

    closed: list[int] = field(factory=list[int])

    def apply(self, items: Iterator[int]) -> Iterator[int]:
        try:
            for n in items:
                for _ in range(5):
                    yield n
        finally:
            self.closed.append(1)


@pytest.mark.parametrize("max_concurrency", [1, 3])
@pytest.mark.parametrize("slice_", [0.0, 0.002, inf])
def test_no_element_is_lost_that_a_stage_before_it_holds_when_a_pass_ends(max_concurrency: int, slice_: float) -> None:
    run = region(Copies(), MapAsyncInRegion(slower_first, max_concurrency), Copies(), MapAsyncInRegion(slower_first, 2))

    assert [n for n in range(8) for _ in range(25)] == list(passes(run, range(8), slice_))
    run.close()


def test_what_a_stage_before_it_holds_is_closed_with_the_region() -> None:
    copies, work = Copies(), Work()
    run = region(copies, MapAsyncInRegion(work, 2))
    iterator = run.over(iter(range(9)), perf_counter())

    assert [] == list(iterator)
    assert [] == copies.closed
    run.close()
    assert [1] == copies.closed


def test_no_more_is_taken_than_concurrency_without_a_result_handed_on() -> None:
    work, taken = Work(), list[int]()
    run = region(Map(lambda n: taken.append(n) or n), MapAsyncInRegion(work, 3))
    results = passes(run, range(100), inf)
    freed = threading.Thread(target=lambda: (work.until_begun(3), work.allow(*range(100))))
    freed.start()

    assert 0 == next(results)
    assert [0, 1, 2] == taken
    assert list(range(1, 100)) == list(results)
    assert 3 == work.most
    freed.join()
    run.close()


def test_one_at_a_time_touches_no_element_that_nobody_has_asked_for() -> None:
    taken: list[int] = []
    run = region(Map(lambda n: taken.append(n) or n), MapAsyncInRegion(at_once, 1))
    results = passes(run, range(100), inf)

    assert [0, 1, 2] == [next(results) for _ in range(3)]
    assert [0, 1, 2] == taken
    run.close()


def test_what_is_awaited_goes_on_while_the_worker_does_not() -> None:
    done = threading.Event()

    async def tell(n: int) -> int:
        await asyncio.sleep(0.001)
        if n == 1:
            done.set()
        return n

    run = region(MapAsyncInRegion(tell, 2))
    results = passes(run, range(2))

    assert 0 == next(results)
    assert done.wait(SECONDS)
    run.close()


def test_a_failure_comes_behind_the_results_before_it_and_when_the_others_have_ended() -> None:
    work = Work()

    async def fail(n: int) -> int:
        if n == 2:
            raise BrokenError(n)
        return await work(n)

    work.allow(0, 1)
    run, found = region(MapAsyncInRegion(fail, 5)), list[int]()
    with pytest.raises(BrokenError) as failed:
        found.extend(passes(run, range(10)))

    assert [0, 1] == found
    assert work.begun == [0, 1, *work.cancelled]
    run.locate(failed.value)
    first, second = failed.value.__notes__
    assert first == "in map_async(fail, 5) in this part of the stream, on element #2"
    assert second == "in map_async(fail, 5), chained at here.py:1 of partition 0"
    run.close()


def test_a_failure_before_it_comes_behind_the_results_of_the_elements_before() -> None:
    async def later_and_later(n: int) -> int:
        await asyncio.sleep(0.01 * n)
        return n

    def fail(n: int) -> int:
        if n == 5:
            raise BrokenError(n)
        return n

    run, found = region(Map(fail), MapAsyncInRegion(later_and_later, 4)), list[int]()
    with pytest.raises(BrokenError) as failed:
        found.extend(passes(run, range(10)))

    assert [0, 1, 2, 3, 4] == found
    run.locate(failed.value)
    assert failed.value.__notes__ == ["in map(fail), chained at here.py:1, on element #5 of partition 0"]
    run.close()


def test_an_end_cancels_what_is_under_way_and_waits_for_it() -> None:
    work = Work()
    run = region(MapAsyncInRegion(work, 3))
    work.allow(0)

    assert 0 == next(passes(run, range(9), inf))
    work.until_begun(3)
    run.close()
    assert (0, [1, 2]) == (work.under_way, work.cancelled)


@pytest.mark.parametrize("elements", [1, 2, 3])
def test_a_worker_that_waits_looks_about_now_and_then(elements: int) -> None:
    work = Work()
    run = region(MapAsyncInRegion(work, 2))
    items = iter(range(elements))

    for _ in range(4):
        assert [] == list(run.over(items, perf_counter()))
        assert not run.pace.ended
    assert 0.0 < run.pace.waited
    run.close()


def test_what_gives_nothing_to_await_is_named() -> None:
    not_async: Callable[[int], Awaitable[Any]] = lambda n: n  # type: ignore[return-value]  # noqa: E731
    with pytest.raises(TypeError, match="returned a value that can't be awaited, of type int"):
        given(MapAsyncInRegion(not_async, 2), items=range(3))


@pytest.mark.parametrize("failure", [asyncio.CancelledError, SystemExit])
def test_what_is_no_ordinary_exception_is_raised_in_the_region(failure: type[BaseException]) -> None:
    async def fail(n: int) -> int:
        raise failure(n)

    with pytest.raises(failure):
        given(MapAsyncInRegion(fail, 2), items=range(3))
    assert [1] == given(MapAsyncInRegion(at_once, 2), items=[1]), "the loop goes on"


def test_the_context_is_the_workers_and_each_call_has_its_own() -> None:
    async def change(n: int) -> str:
        seen = VARIABLE.get()
        VARIABLE.set(f"changed by {n}")
        return seen

    token = VARIABLE.set("the worker's")
    try:
        assert ["the worker's"] * 5 == given(MapAsyncInRegion(change, 2), items=range(5))
    finally:
        VARIABLE.reset(token)


def test_all_regions_of_a_process_await_on_one_loop() -> None:
    async def where(_: int) -> int:
        return id(asyncio.get_running_loop())

    stages = MapAsyncInRegion(where, 2), MapAsyncInRegion(where, 2)
    assert 1 == len({found for stage in stages for found in given(stage, items=range(3))})


def test_chunks_that_a_worker_has_in_hand_share_what_may_be_under_way() -> None:
    work = Work()
    origin = Origin("here.py", 1)
    chunks = ChunkWork("test", (Placed(MapAsyncInRegion(work, 3), origin),))
    first, second = chunks.begin([0, 1], 0), chunks.begin([2, 3, 4], 2)
    results: dict[int, list[Any]] = {0: [], 1: []}
    while len(work.begun) < 3:
        results[0] += first.part(9)
        results[1] += second.part(9)

    work.allow(*range(5))
    while not (first.over and second.over):
        results[0] += first.part(9)
        results[1] += second.part(9)
    assert {0: [0, 1], 1: [2, 3, 4]} == results
    assert 3 == work.most


def test_a_gate_that_has_travelled_is_another_one() -> None:
    stage: InRegion[int, int] = MapAsyncInRegion(at_once, 3)
    gate = stage.gate.of(3)
    travelled = pickle.loads(pickle.dumps(stage))

    assert travelled == stage
    assert isinstance(travelled.gate, Gate)
    assert travelled.gate.of(3) is not gate
