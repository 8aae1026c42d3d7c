"""A consumer of one element at a time asks a combinator without a turn of its region, and lets others have their turns."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import pytest
from attrs import Factory, define, frozen

from reactive_aio import Flow
from reactive_aio._core import budgets
from reactive_aio._fusion import Stage, Template, Transform
from reactive_aio._plan import Inlet, Pushed
from reactive_aio._plan.nodes import FlowLike
from reactive_aio.extend import Gathering, Inner, flow_of
from reactive_aio.spec import Subscription


@define(eq=False)
class Doubling(Gathering):
    """Emits each element twice, and so more than is wanted."""

    def step(self) -> bool:
        for inner in tuple(self.inners):
            if inner.kept and self.demand:
                self.emit(2 * inner.take(1))
                if inner.spent:
                    self.on_spent(inner)
                return True
        return False

    def on_spent(self, inner: Inner) -> None:
        super().on_spent(inner)
        self.complete()


@frozen
class Doubled(Pushed[int]):
    flow: FlowLike

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        doubling = Doubling(inlet)
        doubling.start((self.flow,), 4)
        return doubling


@pytest.mark.parametrize("staged", [False, True])
async def test_what_a_combinator_emits_beyond_the_demand_is_not_lost_when_it_has_ended(staged: bool) -> None:
    flow = flow_of(Doubled(Flow.of(1, 2, 3)))
    flow = flow.filter(lambda _: True) if staged else flow

    assert [1, 1, 2, 2, 3, 3] == [item async for item in flow]


async def test_a_region_whose_stages_discard_elements_asks_on() -> None:
    flow = Flow.range(1000).zip(Flow.range(1000)).filter(lambda pair: pair[0] % 100 == 99).take(5).buffer(2)

    found = [[left for left, _ in pairs] async for pairs in flow]

    assert [[99, 199], [299, 399], [499]] == found


@define
class Framing(Transform[int, int]):
    """Emits elements before any input, and may be told to read no more."""

    before: list[int]
    told: list[object]

    template = Template("$rest")

    def prelude(self) -> Iterable[int]:
        return self.before

    @property
    def done(self) -> bool:
        return bool(self.told)


@frozen
class Framed(Stage[int, int]):
    before: list[int] = Factory(list[int])
    told: list[object] = Factory(list[object])

    def transform(self) -> Transform[int, int]:
        return Framing(self.before, self.told)


def and_never(*items: int) -> Flow[int]:
    return Flow.of(*items).merge(Flow[int].never())


async def test_a_stage_that_is_told_between_two_elements_to_read_no_more_ends_the_flow() -> None:
    told: list[object] = []
    items = aiter(and_never(1).then(Framed(told=told)))
    assert 1 == await anext(items)

    told.append("enough")

    assert "over" == await asyncio.wait_for(anext(items, "over"), 20.0)


@pytest.mark.parametrize("n", [1, 2])
async def test_a_stage_that_has_enough_with_the_elements_before_any_input_ends_the_flow(n: int) -> None:
    items = aiter(and_never().start_with(1, 2).take(n))

    taken = [await asyncio.wait_for(anext(items, "over"), 20.0) for _ in range(n + 1)]

    assert [*range(1, n + 1), "over"] == taken


async def test_elements_of_a_stage_before_any_input_come_though_each_ends_a_turn(looks: None) -> None:
    items = aiter(and_never().then(Framed(before=[1, 2, 3])))

    assert [1, 2, 3] == [await asyncio.wait_for(anext(items), 20.0) for _ in range(3)]


async def test_a_flow_ends_though_the_time_is_up_with_the_last_element_that_its_stages_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1.0
    monkeypatch.setattr(budgets, "clock", lambda: now)

    def slowly(group: list[int]) -> bool:
        nonlocal now
        now += 2 * budgets.TURN
        return group != [2]

    flow = and_never(1, 1, 2, 9).take_while(lambda n: n < 9).buffer_until_changed().filter(slowly)
    items = aiter(flow)

    taken = [await asyncio.wait_for(anext(items, "over"), 20.0) for _ in range(2)]

    assert [[1, 1], "over"] == taken


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock ends a turn."""
    monkeypatch.setattr(budgets, "clock", itertools.count(0.0, 2 * budgets.TURN).__next__)


async def counting() -> AsyncGenerator[int]:
    for n in range(9):
        yield n


async def read_on() -> AsyncGenerator[int]:
    async for n in Flow.from_async_iterable(counting):
        yield n


@pytest.mark.parametrize("turns", range(14))
async def test_an_iterator_that_is_closed_while_its_source_lets_others_go_first_ends(turns: int, looks: None) -> None:
    items = aiter(Flow.from_async_iterable(read_on))

    async def close() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await items.aclose()

    async def consume() -> list[int]:
        return [item async for item in items]

    closing, consuming = asyncio.ensure_future(close()), asyncio.ensure_future(consume())
    await asyncio.wait_for(closing, 20.0)
    taken = await asyncio.wait_for(consuming, 20.0)

    assert list(range(len(taken))) == taken
