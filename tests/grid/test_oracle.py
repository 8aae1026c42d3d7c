"""Random chains give what plain lists give: fused, apart, over boundaries, under any pattern of demand, whenever the time is up."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import Flow
from reactive_aio._core import budgets
from tests.grid import oracles
from tests.grid.oracles import SOURCES, Numbers, Step, anew, plain, several, small, stages, steps
from tests.jumping import Jumping
from tests.registry import REGISTRY
from tests.subscribers import Recorder, idle

T = TypeVar("T")

A_MATTER_OF_TIME = {"debounce", "sample", "throttle_first"}
"""The elements of these are compared with the expected ones on virtual time, in the tests of each operator."""

ALONE = [step for k in (0, 3) for row in (plain, anew, stages, several) for step in row(k)]
chains = st.tuples(st.sampled_from(list(SOURCES)), st.lists(small, max_size=12), st.lists(steps, max_size=6))
Chain = tuple[str, Numbers, list[Step]]
clocks = st.builds(Jumping, st.sampled_from([0.0, 0.05, 0.3, 1.0]), st.integers(0, 1000))


def run(main: Coroutine[Any, Any, T], clock: Jumping) -> T:
    """Run a test; what most chains do only when their time is up, they do at some looks at the clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "clock", clock.now)
        return asyncio.run(main)


def built(source: str, numbers: Numbers, row: list[Step]) -> tuple[Flow[int], Numbers]:
    flow = SOURCES[source](numbers)
    for step in row:
        flow, numbers = step.on_flow(flow), step.on_list(numbers)
    return flow, numbers


def test_every_operator_is_a_step() -> None:
    named = {
        node.attr for node in ast.walk(ast.parse(Path(oracles.__file__).read_text())) if isinstance(node, ast.Attribute)
    }
    sliced = {"__getitem__"}

    assert {entry.method for entry in REGISTRY} - named - sliced == A_MATTER_OF_TIME


@pytest.mark.parametrize("step", ALONE, ids=repr)
async def test_alone_a_step_gives_what_it_gives_to_a_list(step: Step) -> None:
    for numbers in ([], [4], [2, 1, 1, 3, 7, 0, 6, 5]):
        assert step.on_list(numbers) == await step.on_flow(Flow.from_iterable(numbers)).to_list()


@pytest.mark.parametrize("source", SOURCES)
async def test_a_source_gives_what_is_in_the_list(source: str) -> None:
    for numbers in ([], [4], [2, 1, 1, 3, 7, 0, 6, 5]):
        assert numbers == await SOURCES[source](numbers).to_list()


@settings(max_examples=300, deadline=None)
@given(chains, clocks)
def test_a_chain_gives_what_lists_give(chain_of: Chain, clock: Jumping) -> None:
    flow, expected = built(*chain_of)

    async def ends() -> tuple[Any, ...]:
        iterated = [n async for n in flow]
        return await flow.to_list(), iterated, await flow.count(), await flow.first(default=None)

    # A retried part has used up its failure when the first end has run; what it gives stays the same.
    listed, iterated, count, first = run(ends(), clock)

    assert listed == expected
    assert iterated == expected
    assert count == len(expected)
    assert first == (expected[0] if expected else None)


async def until_idle(recorder: Recorder, count: int) -> None:
    """Wait for so many elements, and see whether more come."""
    async with asyncio.timeout(60):
        while len(recorder.items) < count:
            assert recorder.kinds[-1] in {"subscribe", "next"}
            await asyncio.sleep(0)
    await idle()


@settings(max_examples=200, deadline=None)
@given(chains, st.lists(st.integers(1, 4), min_size=1, max_size=8), clocks)
def test_demand_is_never_exceeded_and_nothing_is_lost(chain_of: Chain, requests: list[int], clock: Jumping) -> None:
    flow, expected = built(*chain_of)

    async def main() -> None:
        recorder = Recorder()
        flow.subscribe(recorder)
        asked = 0
        for n in requests:
            recorder.request(n)
            asked += n
            await until_idle(recorder, len(expected[:asked]))
            assert recorder.items == expected[:asked]
        recorder.request(1_000_000)
        await asyncio.wait_for(recorder.over.wait(), 60)
        assert recorder.items == expected
        assert recorder.kinds[-1] == "complete"

    run(main(), clock)
