"""The limit: lists handed over by scheduled callbacks, with a request for each, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import islice

Call = Callable[..., object]


async def hand_over(n: int, size: int, call_there: Call, call_here: Call, lists: int = 1) -> int:
    """Make elements there and count them here, with so many lists under way at most."""
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    items = iter(range(n))
    total = 0

    def produce() -> None:
        call_here(consume, list(islice(items, size)))

    def consume(chunk: list[int]) -> None:
        nonlocal total
        count = 0
        for _ in chunk:
            count += 1
        total += count
        if len(chunk) == size:
            call_there(produce)
        elif not done.done():
            done.set_result(total)

    for _ in range(lists):
        call_there(produce)
    return await done


@asynccontextmanager
async def another_loop() -> AsyncGenerator[asyncio.AbstractEventLoop]:
    """Run a loop of the same kind in a thread."""
    other: asyncio.AbstractEventLoop = type(asyncio.get_running_loop())()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    try:
        yield other
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()
