"""Very many inner flows: a stack that does not grow, memory that stays flat, and a loop that goes on."""

from __future__ import annotations

import pytest

from reactive_aio import Flow
from tests.arbiter.test_many import BLOCKS, MANY, watched

# One loop will do: what many subscriptions need is no matter of the loop.
pytestmark = [pytest.mark.stress, pytest.mark.asyncio(loop_factories=["asyncio"])]

OPERATORS = ["flat_map", "concat_map", "concat_map_eager", "switch_map", "exhaust_map"]


@pytest.mark.costly
@pytest.mark.parametrize("name", OPERATORS)
async def test_four_thousand_empty_flows(name: str) -> None:
    async with watched(turns=5):  # a fast machine needs some 15 ms for them all
        assert [] == await getattr(Flow.range(MANY // 250), name)(lambda _: Flow.empty()).to_list()


@pytest.mark.costly
@pytest.mark.parametrize("name", OPERATORS[:3])
async def test_of_thirty_thousand_flows_not_one_object_each_is_left(name: str) -> None:
    number = 3 * BLOCKS // 2
    async with watched(turns=20):
        assert number == await getattr(Flow.range(number), name)(Flow.of).count()
