"""The budget of time: those that work on one event loop share the time of a turn. The clock goes by what is worked."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Any, cast

import pytest
from attrs import define, field

from reactive_aio import Flow, schedulers
from reactive_aio._core import budgets
from reactive_aio._core.budgets import QUICK, SHARES, TURN, Budget, Later, Stride, Taker
from tests.runtime.by_turns import ByTurns

STEP: float = TURN / 100
"""The time that each element takes."""


@define(eq=False)
class Worked:
    """A clock that only work moves, and what has been worked at by each turn of the event loop."""

    now: list[float]
    counts: list[int]
    at_turns: list[tuple[float, list[int]]] = field(factory=list)
    handle: asyncio.Handle = field(init=False)

    def work(self, who: int) -> Callable[[Any], Any]:
        def one(item: Any) -> Any:
            self.now[0] += STEP
            self.counts[who] += 1
            return item

        return one

    def turn(self) -> None:
        self.at_turns.append((self.now[0], self.counts.copy()))
        self.handle = asyncio.get_running_loop().call_soon(self.turn)

    async def run(self, flows: list[Flow[Any]], turns: int) -> None:
        """Run the flows until the loop has had so many turns. The first few are for the beginning."""
        await self.run_all([flow.count() for flow in flows], turns)

    async def run_all(self, ends: list[Coroutine[Any, Any, Any]], turns: int) -> None:
        self.turn()
        tasks = [asyncio.ensure_future(end) for end in ends]
        while len(self.at_turns) < turns:
            await asyncio.sleep(0)
        self.handle.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def steps(self, since: int = 20) -> list[int]:
        """Return how much was worked in each turn of the loop, once all flows had begun."""
        times = [now for now, _ in self.at_turns[since:]]
        return [round((after - before) / STEP) for before, after in itertools.pairwise(times)]


async def counting() -> AsyncIterator[int]:
    for n in itertools.count():
        yield n


async def count_up(emit: Callable[[int], Awaitable[None]]) -> None:
    for n in itertools.count():
        await emit(n)


KINDS: dict[str, Callable[[Callable[[Any], Any]], Flow[Any]]] = {
    "a source": lambda work: Flow.range(10**9).map(work),
    "a boundary": lambda work: Flow.range(10**9).map(work).publish_on(schedulers.current()),
    "an async generator": lambda work: Flow.from_async_iterable(counting()).map(work),
    "a producer": lambda work: Flow.create(count_up).map(work),
    "a combinator": lambda work: Flow.range(10**9).flat_map(lambda n: Flow.range(3).map(work), max_concurrency=4),
}


def worked(still: list[float], flows: int) -> Worked:
    return Worked(still, [0] * flows)


@pytest.mark.parametrize("flows", [10, 100])
@pytest.mark.parametrize("kind", KINDS)
async def test_any_number_of_busy_flows_hold_their_loop_for_about_a_millisecond_together(
    kind: str, flows: int, still: list[float]
) -> None:
    bed = worked(still, flows)
    await bed.run([KINDS[kind](bed.work(who)) for who in range(flows)], 100)

    assert 100 <= max(bed.steps()) <= 150  # a hundred are a millisecond; the last may finish its part, and one slice


@pytest.mark.parametrize("kind", KINDS)
async def test_busy_flows_hold_their_loop_no_longer_when_they_begin(kind: str, still: list[float]) -> None:
    bed = worked(still, 100)
    await bed.run([KINDS[kind](bed.work(who)) for who in range(100)], 30)

    assert (
        max(bed.steps(since=0)) <= 300
    )  # what has been lent to tasks is used in the next turn of the loop, and slices go on


@pytest.mark.parametrize("kind", KINDS)
async def test_each_of_a_hundred_busy_flows_has_its_turn_once_a_round(kind: str, still: list[float]) -> None:
    bed = worked(still, 100)
    await bed.run([KINDS[kind](bed.work(who)) for who in range(100)], 100)

    for (_, before), (_, after) in itertools.pairwise(bed.at_turns[20::25]):  # a round takes some fifteen turns
        progress = [now - then for then, now in zip(before, after, strict=True)]
        assert 0 < min(progress)
        assert max(progress) <= 3 * min(progress)


@pytest.mark.parametrize("flows", [10, 100])
async def test_consumers_that_never_suspend_hold_their_loop_for_about_a_millisecond_together(
    flows: int, still: list[float]
) -> None:
    async def take(flow: Flow[Any]) -> int:
        return len([item async for item in flow])

    bed = worked(still, flows)
    await bed.run_all([take(Flow.range(10**9).map(bed.work(who))) for who in range(flows)], 60)

    assert 100 <= max(bed.steps()) <= 200
    assert max(bed.counts) <= 2 * min(bed.counts)


async def test_a_flow_that_has_little_to_do_waits_for_a_round_at_most(still: list[float]) -> None:
    bed = worked(still, 99)
    queue: asyncio.Queue[int] = asyncio.Queue()
    heard: list[tuple[int, int]] = []

    async def put() -> None:
        for _ in range(5):
            put_at = len(bed.at_turns)
            await queue.put(put_at)
            while len(heard) == 0 or heard[-1][0] != put_at:
                await asyncio.sleep(0)

    async def taken() -> AsyncIterator[int]:
        while True:
            yield await queue.get()

    def hear(put_at: int) -> None:
        heard.append((put_at, len(bed.at_turns)))

    little = Flow.from_async_iterable(taken()).publish_on(schedulers.current()).for_each(hear)
    busy = [Flow.range(10**9).map(bed.work(who)).count() for who in range(99)]
    await bed.run_all([*busy, little, put()], 150)

    assert 5 == len(heard)
    assert max(at - put_at for put_at, at in heard[1:]) <= 20


async def test_ten_busy_flows_go_on_evenly(still: list[float]) -> None:
    bed = worked(still, 10)
    await bed.run([Flow.range(10**9).map(bed.work(who)) for who in range(10)], 60)

    for (_, before), (_, after) in itertools.pairwise(bed.at_turns[20::3]):
        progress = [now - then for then, now in zip(before, after, strict=True)]
        assert 0 < min(progress)
        assert max(progress) <= 2 * min(progress)


@pytest.mark.parametrize("kind", ["a source", "a boundary"])
async def test_a_flow_that_is_alone_has_all_the_time(kind: str, still: list[float]) -> None:
    bed = worked(still, 1)
    await bed.run([KINDS[kind](bed.work(0))], 60)

    # A slice may go on behind the end. The task of an end waits for its turn in one turn of the loop, and works in the next.
    working = [step for step in bed.steps() if step]
    assert 100 <= min(working) <= max(working) <= 164
    assert len(bed.steps()) <= 2 * len(working) + 1


async def test_a_flow_has_all_the_time_again_when_the_others_have_gone(still: list[float]) -> None:
    bed = worked(still, 3)
    await bed.run([Flow.range(10**9).map(bed.work(who)) for who in range(2)], 30)
    again = worked(still, 1)
    await again.run([Flow.range(10**9).map(again.work(0))], 60)

    assert 100 <= min(step for step in again.steps() if step)


# -- the budget by itself


@define(eq=False)
class Waiting(Taker):
    """Writes down when it has come, and until when it may stay; works for so long."""

    budget: Budget
    clock: list[float]
    seconds: float
    came: list[tuple[float, float]] = field(factory=list)
    stranded: list[RuntimeError] = field(factory=list)

    def come(self) -> None:
        self.came.append((self.clock[0], self.budget.until))
        self.clock[0] += self.seconds

    def strand(self, closed: RuntimeError) -> None:
        self.stranded.append(closed)


def in_a_row(still: list[float], loop: ByTurns, seconds: list[float]) -> list[Waiting]:
    budget = Budget(cast("asyncio.AbstractEventLoop", loop))
    takers = [Waiting(budget, still, each) for each in seconds]
    for taker in takers:
        budget.add(taker)
    return takers


@pytest.mark.parametrize(("waiting", "part"), [(1, TURN), (2, TURN / 2), (10, TURN / 10), (100, TURN / SHARES)])
def test_a_turn_is_divided_among_those_that_wait(waiting: int, part: float, still: list[float]) -> None:
    loop = ByTurns()
    first, *_ = in_a_row(still, loop, [0.0] * waiting)
    loop.turn()

    assert [(0.0, part)] == first.came


def test_however_many_wait_one_callback_is_scheduled(still: list[float]) -> None:
    loop = ByTurns()
    takers = in_a_row(still, loop, [0.0] * 3)

    assert 1 == loop.turn()
    assert [1, 1, 1] == [len(taker.came) for taker in takers]
    assert 0 == loop.turn()


def test_those_for_whom_there_was_no_time_come_first_in_the_next_callback(still: list[float]) -> None:
    loop = ByTurns()
    takers = in_a_row(still, loop, [TURN, 0.0, 0.0])
    first, second, third = takers
    loop.turn()
    assert [1, 0, 0] == [len(taker.came) for taker in takers]

    first.budget.add(first)
    assert 1 == loop.turn()
    assert [2, 1, 1] == [len(taker.came) for taker in takers]
    assert second.came[0][0] <= third.came[0][0] <= first.came[1][0]


def test_who_waits_again_comes_again_behind_the_others_as_long_as_there_is_time(still: list[float]) -> None:
    order: list[Waiting] = []

    @define(eq=False)
    class Again(Waiting):
        def come(self) -> None:
            super().come()
            order.append(self)
            self.budget.add(self)

    loop = ByTurns()
    budget = Budget(cast("asyncio.AbstractEventLoop", loop))
    first, second = takers = [Again(budget, still, TURN * 0.3) for _ in range(2)]
    for taker in takers:
        budget.add(taker)

    assert 1 == loop.turn()
    assert [first, second, first, second] == order
    assert 1 == loop.turn()


def test_who_comes_late_has_a_tenth_of_a_turn_all_the_same(still: list[float]) -> None:
    loop = ByTurns()
    _, late = in_a_row(still, loop, [TURN * 0.99, 0.0])
    loop.turn()

    ((at, until),) = late.came
    assert pytest.approx(TURN / SHARES) == until - at


def test_what_a_turn_lends_is_not_used_in_the_same_callback(still: list[float]) -> None:
    @define(eq=False)
    class Lending(Waiting):
        def come(self) -> None:
            super().come()
            self.budget.lend()

    loop = ByTurns()
    budget = Budget(cast("asyncio.AbstractEventLoop", loop))
    takers = [Lending(budget, still, 0.0) for _ in range(25)]
    for taker in takers:
        budget.add(taker)

    came: list[int] = []
    while loop.turn():
        came.append(sum(len(taker.came) for taker in takers))
    assert [10, 20, 25] == came


def test_other_threads_wake_the_loop_once(still: list[float]) -> None:
    loop = ByTurns()
    budget = Budget(cast("asyncio.AbstractEventLoop", loop))
    takers = [Waiting(budget, still, 0.0) for _ in range(200)]
    with ThreadPoolExecutor(4) as threads:
        for taker in takers:
            threads.submit(budget.add, taker, loop.call_soon_threadsafe)

    assert 1 == loop.woken == loop.turn()
    assert 200 == sum(len(taker.came) for taker in takers)


def test_who_is_added_by_another_thread_while_the_callback_ends_has_a_turn(still: list[float]) -> None:
    loop = ByTurns()
    budget = Budget(cast("asyncio.AbstractEventLoop", loop))
    late = Waiting(budget, still, 0.0)

    class Seen(deque[Taker]):
        """Another thread adds one just behind the look that finds nobody."""

        def __bool__(self) -> bool:
            found = len(self) > 0
            if not found and not late.came:
                budget.add(late, loop.call_soon_threadsafe)
            return found

    budget._waiting = Seen()
    budget.add(Waiting(budget, still, 0.0))
    loop.turn()
    budget._waiting = deque(budget._waiting)
    loop.rest()

    assert 1 <= len(late.came)


@pytest.mark.parametrize("by", ["add", "post"])
def test_who_waits_at_a_loop_that_is_closed_gives_up(still: list[float], by: str) -> None:
    loop = ByTurns()
    (before,) = in_a_row(still, loop, [0.0])
    loop.closed = True
    late = Waiting(before.budget, still, 0.0)
    if by == "add":
        before.budget.add(late, loop.call_soon_threadsafe)
    else:
        before.budget.post(late)

    assert 1 == len(late.stranded)


def test_who_is_posted_by_another_thread_has_one_turn_whether_or_not_a_callback_is_due(still: list[float]) -> None:
    loop = ByTurns()
    budget = Budget(cast("asyncio.AbstractEventLoop", loop))
    first, second, third = (Waiting(budget, still, 0.0) for _ in range(3))
    budget.post(first)
    loop.rest()
    budget.add(second)
    budget.post(third)
    loop.rest()

    assert [1, 1, 1] == [len(each.came) for each in (first, second, third)]


@pytest.mark.parametrize("wait", [Budget.turn, Budget.breath])
async def test_a_task_goes_on_when_the_others_have_had_their_turns(wait: Callable[[Budget], Awaitable[float]]) -> None:
    budget = Budget.of(asyncio.get_running_loop())
    log: list[str] = []

    async def work(name: str) -> None:
        for _ in range(4):
            log.append(name)
            await wait(budget)

    await asyncio.gather(work("first"), work("second"))

    assert [{"first", "second"}] * 4 == [set(log[at : at + 2]) for at in range(0, 8, 2)]


async def test_a_task_that_is_cancelled_while_it_waits_takes_no_turn() -> None:
    budget = Budget.of(asyncio.get_running_loop())
    task = asyncio.ensure_future(budget.turn())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert 0.0 < await budget.turn()


async def test_a_task_that_is_alone_goes_on_behind_one_turn_of_the_loop() -> None:
    budget = Budget.of(asyncio.get_running_loop())
    log: list[str] = []
    asyncio.get_running_loop().call_soon(
        lambda: asyncio.get_running_loop().call_soon(log.append, "the turn after that")
    )

    await budget.breath()
    log.append("the task")
    await asyncio.sleep(0)

    assert ["the task", "the turn after that"] == log


async def test_a_task_that_was_alone_goes_on_for_its_part_where_others_have_come(still: list[float]) -> None:
    budget = Budget.of(asyncio.get_running_loop())
    ends: list[float] = []

    async def work() -> None:
        ends.append(await budget.breath())

    await asyncio.gather(*(work() for _ in range(4)))

    assert [pytest.approx(TURN / 4)] * 4 == ends


async def test_a_task_that_was_alone_waits_where_others_have_used_up_the_time(still: list[float]) -> None:
    budget = Budget.of(asyncio.get_running_loop())
    log: list[str] = []

    def slow(_: None) -> None:
        log.append("slow")
        still[0] += TURN

    async def work() -> None:
        await budget.breath()
        log.append("task")

    def latest_first(waiting: deque[Taker]) -> int:
        waiting.reverse()
        return len(waiting)

    budget.arrange = latest_first
    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    budget.add(Later(slow, Context()))
    await asyncio.wait_for(task, 20.0)

    assert ["slow", "task"] == log


async def test_turns_go_on_though_a_task_that_has_let_them_go_first_is_never_resumed() -> None:
    budget = Budget.of(asyncio.get_running_loop())
    left = budget.breath()
    left.send(None)  # as an iterator whose reader has left

    async with asyncio.timeout(20.0):
        assert 0.0 < await budget.turn()
    left.close()


async def test_a_task_that_was_alone_has_the_rest_of_the_turn_behind_others_that_are_quick(still: list[float]) -> None:
    budget = Budget.of(asyncio.get_running_loop())
    task = asyncio.ensure_future(budget.breath())
    await asyncio.sleep(0)
    for _ in range(20):
        budget.add(Later(lambda _: None, Context()))

    assert pytest.approx(TURN) == await task


@pytest.mark.parametrize("leaves", [True, False], ids=["cancelled", "goes on"])
async def test_those_who_come_while_a_task_is_alone_have_their_turns(leaves: bool) -> None:
    budget = Budget.of(asyncio.get_running_loop())
    called = asyncio.Event()
    alone = asyncio.ensure_future(budget.breath())
    await asyncio.sleep(0)
    budget.add(Later(lambda _: called.set(), Context()))
    if leaves:
        alone.cancel()

    async with asyncio.timeout(20.0):
        await called.wait()
        await asyncio.wait([alone])

    assert leaves == alone.cancelled()


async def test_a_loop_has_one_budget() -> None:
    loop = asyncio.get_running_loop()
    other = asyncio.new_event_loop()
    try:
        assert Budget.of(loop) is Budget.of(loop) is not Budget.of(other)
    finally:
        other.close()


def test_a_loop_that_takes_no_attributes_shares_nothing() -> None:
    assert Budget.of(object()) is not Budget.of(object())  # type: ignore[arg-type]


def test_a_stride_doubles_while_it_is_quick_and_then_becomes_what_has_been_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(budgets, "clock", lambda: now[0])
    stride = Stride(128)
    stride.begin()

    def after(of_an_element: float) -> int:
        now[0] += stride.length * of_an_element
        stride.is_over(1.0)
        return stride.length

    assert [after(QUICK / 200) for _ in range(8)] == [2, 4, 8, 16, 32, 64, 128, 128]
    assert after(QUICK / 99.5) == 99
    assert after(QUICK * 3) == 1
