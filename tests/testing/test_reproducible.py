"""Whatever runs on virtual time runs in the same order again: turns end by a count, and not by the clock of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from threading import Thread
from time import perf_counter
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._clocks.counted import CLOCK
from reactive_aio._core import budgets
from reactive_aio.testing import AdversarialLoop, VirtualTimeLoop, adversarial, run_virtual
from tests.registry import REGISTRY, Entry, Settings

Program = Callable[[list[Any]], Coroutine[Any, Any, object]]

RUNS = 6


async def small_flows(order: list[Any]) -> None:
    """Ask for pages that fail at first, each by a flow of its own, in twelve tasks."""

    async def page(i: int, tried: list[int]) -> None:
        order.append(i)
        tried.append(i)
        if len(tried) == 1:
            raise OSError

    async def visit(i: int) -> None:
        tried: list[int] = []
        await Flow.from_awaitable(lambda: page(i, tried)).timeout(2).retry(2).drain()

    await Flow.range(12).map_async(visit, max_concurrency=12).drain()


async def busy_flows(order: list[Any]) -> None:
    """Run flows side by side that could each hold the loop for long."""

    async def numbers(name: str) -> AsyncIterator[str]:
        for i in range(300):
            yield f"{name}{i}"

    async def run(name: str) -> None:
        await Flow.from_async_iterable(numbers(name)).map(str.upper).for_each(order.append)

    async with asyncio.TaskGroup() as tasks:
        for name in "abcdefgh":
            tasks.create_task(run(name))


async def shared(order: list[Any]) -> None:
    """Read one flow in several tasks, and merge it with groups of another."""
    source = Flow.range(2_000).share(lag=16, start=4)

    async def read(name: str) -> None:
        async for item in source.filter(lambda n: n % 50 == 0):
            order.append((name, item))  # noqa: PERF401 - the tasks append in turns

    async with asyncio.TaskGroup() as tasks:
        for name in "abc":
            tasks.create_task(read(name))
        groups = Flow.range(500).group_by(lambda n: n % 7).flat_map(lambda group: group.index())
        tasks.create_task(source.merge(groups).for_each(order.append))


PROGRAMS = pytest.mark.parametrize("program", [small_flows, busy_flows, shared])


@PROGRAMS
def test_on_virtual_time(program: Program) -> None:
    orders: list[list[Any]] = [[] for _ in range(RUNS)]
    for order in orders:
        run_virtual(program(order))

    assert orders[0]
    assert orders[:1] * RUNS == orders


@PROGRAMS
def test_by_a_seed(program: Program) -> None:
    orders: list[list[Any]] = []

    async def body() -> None:
        orders.append([])
        await program(orders[-1])

    for _ in range(RUNS):
        adversarial(seeds=4)(body)()

    assert orders[:4] * RUNS == orders
    assert orders[0] != orders[1]


class Watched(AdversarialLoop):
    """An adversarial loop that notes how many callbacks were ready in each of its turns."""

    def __init__(self) -> None:
        super().__init__(3)
        self.turns: list[int] = []

    def _run_once(self) -> None:
        self.turns.append(len(self._ready))
        super()._run_once()


@pytest.mark.parametrize("entry", [each for each in REGISTRY if not (each.threaded or each.pool)], ids=str)
def test_every_turn_of_every_operator(entry: Entry) -> None:
    def run() -> tuple[list[int], list[tuple[int, int]]]:
        taken: list[tuple[int, int]] = []

        async def read(reader: int) -> None:
            async for _ in flow:
                taken.append((reader, len(loop.turns)))  # noqa: PERF401 - the readers append in turns

        async def both() -> None:
            await asyncio.gather(read(0), read(1))

        loop = Watched()
        flow = entry.make(600, lambda flow: flow, Settings(prefetch=16))
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(both())
        return loop.turns, taken

    first = run()

    assert [] != first[1]
    assert first == run()


def test_each_thread_counts_for_itself_and_others_have_the_clock_of_the_machine() -> None:
    found: list[list[float]] = []

    async def looks() -> list[float]:
        other = Thread(target=lambda: found.append([budgets.clock()]))
        other.start()
        await asyncio.to_thread(other.join)
        return [budgets.clock() for _ in range(3)]

    before = perf_counter()
    first = Thread(target=lambda: found.append(run_virtual(looks())))
    first.start()
    mine = run_virtual(looks())
    first.join()
    after = perf_counter()

    real = [looks for looks in found if len(looks) == 1]
    counted = [looks for looks in found if len(looks) == 3]
    assert [mine] == counted
    assert all(before <= look <= after for (look,) in real)
    assert budgets.clock is perf_counter


def test_the_count_goes_on_in_the_next_run_of_a_loop() -> None:
    loop = VirtualTimeLoop()

    async def now() -> float:
        return budgets.clock()

    first, second = loop.run_until_complete(now()), loop.run_until_complete(now())
    loop.close()

    assert first < second


def test_a_running_loop_that_is_run_once_more_goes_on_counting() -> None:
    async def now() -> list[float]:
        before = budgets.clock()
        with pytest.raises(RuntimeError, match="already running"):
            asyncio.get_running_loop().run_forever()
        return [before, budgets.clock()]

    before, after = run_virtual(now())

    assert 0 < after - before < 1
    assert budgets.clock is perf_counter


def test_a_clock_that_a_test_has_put_there_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def now() -> float:
        return budgets.clock()

    monkeypatch.setattr(budgets, "clock", lambda: 7.0)
    assert 7.0 == run_virtual(now())
    assert CLOCK is not budgets.clock
