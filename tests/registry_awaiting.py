"""The entries of what awaits functions of the user's, and of what one makes by functions; see `tests.registry`, which takes them in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from reactive_aio import Flow
from tests.registry import failed, operator, raise_failure, source


async def same_later(item: Any) -> Any:
    """Change nothing, a turn later."""
    await asyncio.sleep(0)
    return item


async def yes_later(_: object) -> bool:
    """Agree, a turn later."""
    await asyncio.sleep(0)
    return True


operator("map_async", lambda flow: flow.map_async(same_later, max_concurrency=2))
operator(
    "map_async",
    # One key, so that the order is known.
    lambda flow: flow.map_async(same_later, max_concurrency=2, order=lambda _: "key"),
    variant="by-key",
)
operator("filter_when", lambda flow: flow.filter_when(yes_later, max_concurrency=2))


# -- sources

AT_ONCE = 1e-6


async def soon() -> str:
    """Return an element, a turn later."""
    await asyncio.sleep(0)
    return "soon"


@asynccontextmanager
async def lent(n: int) -> AsyncGenerator[range]:
    """Lend some numbers."""
    await asyncio.sleep(0)
    yield range(n)
    await asyncio.sleep(0)


source(
    "from_awaitable",
    lambda n, via, _: via(via(Flow.from_awaitable(soon)).repeat(n)),
    lambda _, via, __: via(Flow.from_awaitable(raise_failure)),
)
source(
    "from_callable",
    lambda n, via, _: via(via(Flow.from_callable(lambda: "called")).repeat(n)),
    lambda _, via, __: via(Flow.from_callable(raise_failure)),
)
source(
    "generate",
    lambda n, via, _: via(Flow.generate(lambda at: (at, at + 1) if at < n else None, 0)),
    lambda _, via, __: via(Flow.generate(raise_failure, 0)),
    ends_late=True,
)
source(
    "using",
    lambda n, via, _: via(Flow.using(lambda: lent(n), lambda numbers: via(Flow.from_iterable(numbers)))),
    lambda _, via, __: via(Flow.using(lambda: lent(0), lambda _: failed(via))),
)
source("timer", lambda n, via, _: via(via(Flow.timer(AT_ONCE)).repeat(n)))
