"""The limit: lists handed over by scheduled callbacks, with a request for each, and nothing else."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import islice, pairwise
from time import perf_counter

Call = Callable[..., object]


def counted(chunk: list[int]) -> int:
    """Count by looking at each element."""
    count = 0
    for _ in chunk:
        count += 1
    return count


def counted_in_slices(chunk: list[int]) -> int:
    """Count as one who looks at the clock now and then."""
    items, count = iter(chunk), 0
    while True:
        before = count
        for _ in islice(items, 64):
            count += 1
        perf_counter()
        if count == before:
            return count


async def hand_over(
    n: int, size: int, call_there: Call, call_here: Call, lists: int = 1, count: Callable[[list[int]], int] = counted
) -> int:
    """Make elements there and count them here, with so many lists under way at most."""
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    items = iter(range(n))
    total = 0

    def produce() -> None:
        call_here(consume, list(islice(items, size)))

    def consume(chunk: list[int]) -> None:
        nonlocal total
        total += count(chunk)
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


class Stage:
    """A region between two boundaries: works on a list when there is one and the next stage has asked for it."""

    def __init__(self, call: Call, size: int, work: Callable[[list[int]], list[int]]) -> None:
        self.call = call
        self.size = size
        self.work = work
        self.before: Stage | None = None
        self.after: Stage | None = None
        self._chunk: list[int] | None = None
        self._wanted = False
        self._ended = False

    def request(self) -> None:
        """Hear that the next stage wants a list."""
        self._wanted = True
        self._go()

    def take(self, chunk: list[int]) -> None:
        """Take a list from the stage before."""
        self._chunk = chunk
        self._go()

    def _go(self) -> None:
        if self._chunk is None or not self._wanted or self._ended:
            return
        out = self.work(self._chunk)
        self._ended = len(out) < self.size
        if self.before is not None:
            self._chunk = None
            self.before.call(self.before.request)
        if self.after is not None:
            self._wanted = False
            self.after.call(self.after.take, out)


async def through_stages(n: int, size: int, loops: Sequence[asyncio.AbstractEventLoop]) -> int:
    """Increment and hand on from loop to loop, one list under way over each boundary; sum up at the end."""
    home = asyncio.get_running_loop()
    done: asyncio.Future[int] = home.create_future()
    items = iter(range(n))
    total = 0

    def increment(n: int) -> int:
        return n + 1

    def first(_: list[int]) -> list[int]:
        return [increment(item) for item in islice(items, size)]

    def middle(chunk: list[int]) -> list[int]:
        return [increment(item) for item in chunk]

    def last(chunk: list[int]) -> list[int]:
        nonlocal total
        count = total
        for item in chunk:
            count = operator.add(count, increment(item))
        total = count
        if len(chunk) < size:
            home.call_soon_threadsafe(done.set_result, total)
        return chunk

    alone = len(set(loops)) == 1
    stages = [Stage(loop.call_soon if alone else loop.call_soon_threadsafe, size, middle) for loop in loops]
    stages[0].work, stages[-1].work = first, last
    for before, after in pairwise(stages):
        before.after, after.before = after, before
    stages[0].take([])
    stages[-1].request()
    for stage in stages[:-1]:
        stage.call(stage.request)
    return await done
