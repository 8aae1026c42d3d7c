"""Code without the library where elements are awaited: `async for`, tasks, and a deque between them."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count

LINE = b"a line\n"
LINES = 16
"""How many lines arrive at once."""


def increment(n: int) -> int:
    return n + 1


def even(n: int) -> bool:
    return n % 2 == 0


async def increment_later(n: int) -> int:
    return n + 1


# --- sources ---------------------------------------------------------------------------------------------------------


async def ready(n: int) -> AsyncGenerator[int]:
    """Yield numbers without ever waiting."""
    for item in range(n):
        yield item


async def suspended(n: int) -> AsyncGenerator[int]:
    """Yield numbers, each after a turn of the loop."""
    for item in range(n):
        await asyncio.sleep(0)
        yield item


async def behind_futures(n: int) -> AsyncGenerator[int]:
    """Yield numbers, each after a wait for a future, as for a socket or a queue."""
    loop = asyncio.get_running_loop()
    for item in range(n):
        future = loop.create_future()
        loop.call_soon(future.set_result, None)
        await future
        yield item


async def endless() -> AsyncGenerator[int]:
    """Yield numbers, each after a turn of the loop, and never end."""
    for item in count():
        await asyncio.sleep(0)
        yield item


@asynccontextmanager
async def lines(n: int) -> AsyncGenerator[asyncio.StreamReader]:
    """Yield a reader of ``n`` lines, which a task writes at the other end of a socket."""
    here, there = socket.socketpair()
    reader, closing = await asyncio.open_connection(sock=here)
    _, writer = await asyncio.open_connection(sock=there)

    async def write() -> None:
        for start in range(0, n, LINES):
            writer.write(LINE * min(LINES, n - start))
            await writer.drain()
        writer.close()

    writing = asyncio.create_task(write())
    try:
        yield reader
    finally:
        await writing
        closing.close()


# --- one source ------------------------------------------------------------------------------------------------------


async def summed(items: AsyncIterator[int]) -> int:
    total = 0
    async for item in items:
        total += item
    return total


async def chained(items: AsyncIterator[int]) -> int:
    """Increment, leave out what is odd, and sum up."""
    total = 0
    async for item in items:
        after = increment(item)
        if even(after):
            total += after
    return total


async def chained_until(items: AsyncGenerator[int], size: int) -> int:
    """Do the same until there were so many, and close what gave them."""
    total = taken = 0
    async for item in items:
        after = increment(item)
        if even(after):
            total += after
            taken += 1
            if taken == size:
                break
    await items.aclose()
    return total


async def handed(items: AsyncIterator[int], use: Callable[[int], object]) -> None:
    async for item in items:
        use(item)


async def counted(items: AsyncIterator[object]) -> int:
    number = 0
    async for _ in items:
        number += 1
    return number


# --- several sources -------------------------------------------------------------------------------------------------


async def merged(sources: Sequence[AsyncIterator[int]], size: int) -> int:
    """Count what tasks put into one deque, each at most ``size`` before it waits for a turn of the loop."""
    items: deque[int] = deque()
    come = asyncio.Event()
    running = len(sources)

    async def read(source: AsyncIterator[int]) -> None:
        nonlocal running
        taken = 0
        async for item in source:
            items.append(item)
            come.set()
            taken += 1
            if taken == size:
                taken = 0
                await asyncio.sleep(0)
        running -= 1
        come.set()

    tasks = [asyncio.create_task(read(source)) for source in sources]
    number = 0
    while running or items:
        await come.wait()
        come.clear()
        while items:
            items.popleft()
            number += 1
    await asyncio.gather(*tasks)
    return number


async def zipped(left: AsyncIterator[int], right: AsyncIterator[int]) -> int:
    """Count the pairs."""
    number = 0
    while True:
        try:
            pair = (await anext(left), await anext(right))
        except StopAsyncIteration:
            return number
        number += len(pair) - 1


async def latest(sources: Sequence[AsyncIterator[int]], size: int) -> int:
    """Count the tuples of the latest elements. Each task keeps its own, and puts a copy of all into a bounded queue."""
    values: list[int | None] = [None] * len(sources)
    queue: asyncio.Queue[tuple[int | None, ...] | None] = asyncio.Queue(size)

    async def read(place: int, source: AsyncIterator[int]) -> None:
        async for item in source:
            values[place] = item
            if None not in values:
                await queue.put(tuple(values))
        await queue.put(None)

    tasks = [asyncio.create_task(read(*each)) for each in enumerate(sources)]
    number, running = 0, len(sources)
    while running:
        if await queue.get() is None:
            running -= 1
        else:
            number += 1
    await asyncio.gather(*tasks)
    return number


# --- groups ----------------------------------------------------------------------------------------------------------


async def grouped(n: int, key: Callable[[int], int], size: int) -> int:
    """Have a task with a queue for each key count its elements; give the number of groups."""
    queues: dict[int, asyncio.Queue[int | None]] = {}
    tasks: list[asyncio.Task[int]] = []

    async def count_all(queue: asyncio.Queue[int | None]) -> int:
        number = 0
        while await queue.get() is not None:
            number += 1
        return number

    for item in range(n):
        of = key(item)
        queue = queues.get(of)
        if queue is None:
            queue = queues[of] = asyncio.Queue(size)
            tasks.append(asyncio.create_task(count_all(queue)))
        await queue.put(item)
    for queue in queues.values():
        await queue.put(None)
    assert sum(await asyncio.gather(*tasks)) == n
    return len(tasks)
