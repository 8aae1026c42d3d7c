"""A million sources that end at once: a stack that does not grow, memory that stays flat, and a loop that goes on."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from attrs import define, field

from reactive_aio import Flow

# One loop will do: what a million subscriptions need is no matter of the loop.
pytestmark = [pytest.mark.stress, pytest.mark.asyncio(loop_factories=["asyncio"])]

MANY = 10**6
FRAMES = 60
"""How many frames the stack may have beyond those of the test, for each combinator."""
BLOCKS = 20_000
"""How many objects may come to be: those of one turn of the loop."""
TURNS = 50
"""How many turns the others must have: far fewer than the hundreds that they do have, one about every millisecond."""


@define
class Watch:
    """Another task: the turns that it has had, and the numbers of objects that it has counted."""

    turns: int = 0
    blocks: list[int] = field(factory=list)


@asynccontextmanager
async def watched(combinators: int = 1, turns: int = TURNS) -> AsyncGenerator[Watch]:
    """Bound the stack, and look from another task at how many objects there are."""
    watch = Watch()

    async def look() -> None:
        while True:
            watch.turns += 1
            if watch.turns % (turns // 2) == 0:
                gc.collect()  # of a failure remains what only the garbage collector frees
                watch.blocks.append(sys.getallocatedblocks())
            await asyncio.sleep(0)

    gc.collect()
    gc.freeze()  # what the other tests have left is not to be gone through again and again
    before = sys.getallocatedblocks()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + combinators * FRAMES)
    looking = asyncio.create_task(look())
    try:
        yield watch
    finally:
        looking.cancel()
        sys.setrecursionlimit(limit)
        gc.unfreeze()
    assert watch.turns >= turns
    assert max(watch.blocks) - before <= BLOCKS


@pytest.mark.costly
async def test_a_million_empty_runs() -> None:
    async with watched():
        assert [] == await Flow.empty().repeat(MANY).to_list()


@pytest.mark.long
async def test_a_million_failing_attempts() -> None:
    async with watched():
        with pytest.raises(OSError, match="down"):
            await Flow.error(OSError("down")).retry(MANY - 1).to_list()


async def test_a_hundred_thousand_empty_flows_in_a_row() -> None:
    empty = Flow.empty()
    row = empty.concat(*[empty] * (MANY // 10 - 2), Flow.of("at last"))

    async with watched():
        assert ["at last"] == await row.to_list()


async def test_a_hundred_thousand_runs_of_one_element() -> None:
    async with watched():
        assert MANY // 10 == await Flow.of(1).repeat(MANY // 10).count()


@pytest.mark.costly
async def test_ten_thousand_runs_by_combinators_in_each_other() -> None:
    runs = Flow.defer(Flow.empty).repeat(10).on_error_resume_next(Flow.error).repeat(10).retry(0)
    flow = runs.repeat(MANY // 10_000)

    async with watched(combinators=5):
        assert [] == await flow.to_list()


@pytest.mark.costly
async def test_a_hundred_thousand_functions_that_fail() -> None:
    def fail(n: int) -> int:
        raise ValueError(n)

    async with watched():
        with pytest.raises(ValueError, match="7"):
            await Flow.of(7).map(fail).retry(MANY // 10).to_list()
