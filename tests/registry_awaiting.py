"""The entries of the operators that await a function for each element; see `tests.registry`, which takes them in."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.registry import operator


async def same_later(item: Any) -> Any:
    """Change nothing, a turn later."""
    await asyncio.sleep(0)
    return item


async def yes_later(_: object) -> bool:
    """Agree, a turn later."""
    await asyncio.sleep(0)
    return True


operator("map_async", lambda flow: flow.map_async(same_later, 2), asks=lambda n: max(n, 2), holds=8)
operator(
    "map_async",
    # One key, so that the order is known.
    lambda flow: flow.map_async(same_later, 2, order=lambda _: "key"),
    variant="by-key",
    asks=lambda n: max(n, 2),
    holds=8,
)
operator("filter_when", lambda flow: flow.filter_when(yes_later, 2), asks=lambda n: max(n, 2), holds=8)
