"""Fused or apart, or over boundaries, on any loop: the same elements, the same failure, the same order of effects."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow, hooks, schedulers
from reactive_aio._catalogue import TRAITS, Traits
from reactive_aio.testing import AdversarialLoop, VirtualTimeLoop
from tests.conftest import LOOPS
from tests.grid.oracles import SOURCES
from tests.grid.points import HERE
from tests.grid.test_oracle import Chain, chains
from tests.registry import AnyFlow, Entry, Settings, Via

# A clock can't be slowed, so it fails where the next step takes its ticks by the contract, a few at a time.
ENTRIES = [entry for entry in HERE if entry.method != "interval"]

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
FACTORIES: list[LoopFactory] = [*LOOPS.values(), *(partial(AdversarialLoop, seed) for seed in range(3))]
PREFETCHES = [1, 2, 256]
ELEMENTS = 5


def fused(flow: AnyFlow) -> AnyFlow:
    return flow


def over_a_boundary(prefetch: int) -> Via:
    return lambda flow: flow.publish_on(schedulers.current(), prefetch=prefetch)


def handed_over(flow: AnyFlow) -> AnyFlow:
    """The elements of an async iterator that suspends before each, so that none is had on the spot."""

    async def read() -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        async for item in flow:
            turn = loop.create_future()
            loop.call_soon(turn.set_result, None)
            await turn
            yield item

    return Flow.from_async_iterable(read)


WAYS: list[Via] = [fused, Flow.from_publisher, *map(over_a_boundary, PREFETCHES), handed_over]


@define(eq=False)
class Run:
    """One run of a flow: what its functions did, what it gave, and how it failed."""

    way: Via
    fails_at: tuple[int, int] = (-1, -1)
    """The flow, of those that an entry puts in a row, and its element, at which a function raises."""
    effects: list[tuple[int, str]] = field(init=False, factory=list[tuple[int, str]])
    taken: list[Any] = field(init=False, factory=list[Any])
    failure: str = field(init=False, default="")
    flows: int = field(init=False, default=0)

    def via(self, flow: AnyFlow) -> AnyFlow:
        """Note the elements of a flow, and have the next step take them in its way."""
        place, self.flows = self.flows, self.flows + 1
        passed = 0

        def note(item: Any) -> Any:
            nonlocal passed
            passed += 1
            self.effects.append((place, repr(item)))
            if (place, passed) == self.fails_at:
                raise OSError(f"element {passed} of flow {place}")
            return item

        return self.way(flow.map(note))

    async def one_by_one(self, flow: AnyFlow) -> None:
        try:
            async for item in flow:
                self.taken.append(item)
        except Exception as error:
            self.failure = repr(error)

    @property
    def outcome(self) -> tuple[str, str]:
        return repr(self.taken), self.failure


def run(make: Callable[[Via], AnyFlow], one: Run, factory: LoopFactory) -> Run:
    with hooks.using(on_error_dropped=lambda error: None), asyncio.Runner(loop_factory=factory) as runner:
        runner.run(one.one_by_one(make(one.via)))
    return one


def making(entry: Entry, prefetch: int = PREFETCHES[-1]) -> Callable[[Via], AnyFlow]:
    return lambda via: entry.make(ELEMENTS, via, Settings(prefetch))


def failing(entry: Entry, prefetch: int = PREFETCHES[-1]) -> Callable[[Via], AnyFlow]:
    return lambda via: entry.fail(ELEMENTS, via, Settings(prefetch))


@pytest.mark.parametrize("make", [making, failing], ids=["elements", "failure"])
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_elements_and_failure_are_the_same_in_every_way_on_every_loop(entry: Entry, make: Any) -> None:
    expected = run(make(entry), Run(fused), asyncio.new_event_loop).outcome

    for factory in FACTORIES:
        for way in WAYS:
            for prefetch in PREFETCHES if entry.prefetches else PREFETCHES[-1:]:
                assert run(make(entry, prefetch), Run(way), factory).outcome == expected


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_a_failure_in_the_middle_comes_behind_the_same_elements(entry: Entry) -> None:
    make = making(entry, prefetch=1)
    whole = run(make, Run(fused), VirtualTimeLoop)

    for place in range(whole.flows):
        for element in (1, 2, ELEMENTS):
            expected = run(make, Run(fused, (place, element)), VirtualTimeLoop)
            apart = run(make, Run(Flow.from_publisher, (place, element)), VirtualTimeLoop)
            assert apart.failure == expected.failure
            assert repr(apart.taken) == repr(expected.taken) or entry.mixes


def reads_ahead(method: str) -> bool:
    """Whether more is asked for and kept than is wanted."""
    traits = TRAITS.get(method, Traits())
    return traits.keeps != "0" and not re.search(r"\bd\b", traits.demand)


# Some ask for more at a time than the next step wants, which hears of as much of it as has come within one turn.
@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if not reads_ahead(entry.method)], ids=str)
def test_effects_come_in_the_same_order_where_nothing_is_read_ahead(entry: Entry) -> None:
    expected = run(making(entry), Run(fused), VirtualTimeLoop).effects

    for factory in FACTORIES:
        assert run(making(entry), Run(Flow.from_publisher), factory).effects == expected


@settings(max_examples=100, deadline=None)
@given(chains, st.integers(0, 2**32))
def test_random_chains_are_the_same_in_every_way(chain_of: Chain, seed: int) -> None:
    source, numbers, row = chain_of

    def make(via: Via) -> AnyFlow:
        flow: AnyFlow = via(SOURCES[source](numbers))
        for step in row:
            flow = via(step.on_flow(flow))
        return flow

    expected = run(make, Run(fused), asyncio.new_event_loop)
    for way in WAYS:
        one = run(make, Run(way), partial(AdversarialLoop, seed))
        assert one.outcome == expected.outcome
        if way is Flow.from_publisher and not any(reads_ahead(step.name.partition("(")[0]) for step in row):
            assert one.effects == expected.effects
