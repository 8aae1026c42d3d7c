"""The budget of time: those that work on one event loop share the time of a turn. The clock goes by what is worked."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, schedulers
from reactive_aio._core import budgets
from reactive_aio._core.budgets import SHARES, TURN, Budget

STEP: float = TURN / 100
"""What each element costs."""


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
        """Have the flows run until the loop has had so many turns, of which the first few are for the beginning."""
        self.turn()
        tasks = [asyncio.ensure_future(flow.count()) for flow in flows]
        while len(self.at_turns) < turns:
            await asyncio.sleep(0)
        self.handle.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def steps(self) -> list[int]:
        """Give how much was worked in each turn of the loop, once all flows had begun."""
        times = [now for now, _ in self.at_turns[20:]]
        return [round((after - before) / STEP) for before, after in itertools.pairwise(times)]


async def counting() -> AsyncIterator[int]:
    for n in itertools.count():
        yield n


KINDS: dict[str, Callable[[Callable[[Any], Any]], Flow[Any]]] = {
    "a source": lambda work: Flow.range(10**9).map(work),
    "a boundary": lambda work: Flow.range(10**9).map(work).publish_on(schedulers.current()),
    "an async generator": lambda work: Flow.from_async_iterable(counting()).map(work),
    "a combinator": lambda work: Flow.range(10**9).flat_map(lambda n: Flow.range(3).map(work), max_concurrency=4),
}


def worked(still: list[float], flows: int) -> Worked:
    return Worked(still, [0] * flows)


@pytest.mark.parametrize("kind", KINDS)
async def test_ten_busy_flows_hold_their_loop_for_about_a_millisecond_together(kind: str, still: list[float]) -> None:
    bed = worked(still, 10)
    await bed.run([KINDS[kind](bed.work(who)) for who in range(10)], 60)

    assert 100 <= max(bed.steps()) <= 250  # a hundred are a millisecond; each flow may finish a slice


async def test_ten_busy_flows_go_on_evenly(still: list[float]) -> None:
    bed = worked(still, 10)
    await bed.run([Flow.range(10**9).map(bed.work(who)) for who in range(10)], 60)

    for (_, before), (_, after) in itertools.pairwise(bed.at_turns[20:]):
        progress = [now - then for then, now in zip(before, after, strict=True)]
        assert 0 < min(progress)
        assert max(progress) <= 2 * min(progress)


async def test_a_flow_that_is_alone_has_all_the_time(still: list[float]) -> None:
    bed = worked(still, 1)
    await bed.run([Flow.range(10**9).map(bed.work(0))], 60)

    assert 100 <= min(bed.steps()) <= max(bed.steps()) <= 164  # a slice may go on behind the end


async def test_a_flow_has_all_the_time_again_when_the_others_have_gone(still: list[float]) -> None:
    bed = worked(still, 3)
    await bed.run([Flow.range(10**9).map(bed.work(who)) for who in range(2)], 30)
    again = worked(still, 1)
    await again.run([Flow.range(10**9).map(again.work(0))], 60)

    assert 100 <= min(again.steps())


# -- the budget by itself


@pytest.mark.parametrize(("waiting", "parts"), [(0, 1), (1, 2), (9, 10), (99, SHARES)])
def test_a_turn_is_divided_among_those_that_wait(waiting: int, parts: int, still: list[float]) -> None:
    budget = Budget()
    budget.waiting.update(object() for _ in range(waiting))

    assert TURN / parts == budget.deadline() == budget.begin(None) == budget.until
    assert min(budgets.SHORT, TURN / parts) == budget.short


def test_who_begins_does_not_wait_any_more(still: list[float]) -> None:
    budget, taker = Budget(), object()
    budget.waiting.add(taker)

    assert TURN == budget.begin(taker)
    assert set() == budget.waiting


async def test_a_loop_has_one_budget() -> None:
    loop = asyncio.get_running_loop()
    other = asyncio.new_event_loop()
    try:
        assert Budget.of(loop) is Budget.of(loop) is not Budget.of(other)
    finally:
        other.close()


def test_a_loop_that_takes_no_attributes_shares_nothing() -> None:
    assert Budget.of(object()) is not Budget.of(object())  # type: ignore[arg-type]
