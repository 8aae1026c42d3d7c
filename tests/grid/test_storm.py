"""Random flows over nested threads, left to run or cancelled anywhere: each comes to its end, and no thread is left."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator

import pytest

from reactive_aio import Flow, hooks, schedulers
from reactive_aio.schedulers.base import Scheduler

FLOWS = 400
PATIENCE = 60
"""Seconds after which a flow is taken to hang; those that don't end within milliseconds."""
NAMES = ["storm-a", "storm-b", "storm-c"]


class StormError(Exception):
    """How the flows fail."""


async def slowly(n: int) -> AsyncIterator[int]:
    try:
        for i in range(n):
            await asyncio.sleep(0)
            yield i
    finally:
        await asyncio.sleep(0)


def fragile(n: int) -> int:
    if n % 7 == 3:
        raise StormError(n)
    return n


class Storm:
    """Makes flows of any shape, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def below(self, n: int) -> int:
        return self.random.randrange(n)

    def place(self) -> Scheduler:
        name = self.random.choice([None, *NAMES])
        return schedulers.current() if name is None else schedulers.thread(name)

    def source(self, depth: int) -> Flow[int]:
        n = self.below(20)
        inner = self.flow(depth - 1) if depth else Flow.of(1, 2, 3)
        sources: list[Flow[int]] = [
            Flow.range(self.below(600)),
            Flow.range(n),
            Flow.defer(lambda: Flow.from_async_iterable(slowly(n))),
            Flow.defer(lambda: inner),
            Flow.empty(),
            Flow.error(StormError(0)),
        ]
        return self.random.choice(sources)

    def flow(self, depth: int) -> Flow[int]:
        flow = self.source(depth)
        for _ in range(self.below(4)):
            flow = self.step(flow, depth)
        return flow

    def step(self, flow: Flow[int], depth: int) -> Flow[int]:
        steps = [
            lambda: flow.map(fragile),
            lambda: flow.filter(lambda n: n % 2),
            lambda: flow.take(self.below(30)),
            lambda: flow.publish_on(self.place(), prefetch=self.random.choice([1, 2, 16, 256])),
            lambda: flow.publish_on(schedulers.threads(2), prefetch=self.random.choice([1, 2, 16, 256])),
            lambda: flow.subscribe_on(self.place()),
            lambda: flow.retry(self.below(3)),
            lambda: flow.repeat(1 + self.below(2)),
        ]
        if depth:
            steps += [
                lambda: flow.concat(self.flow(depth - 1), self.flow(depth - 1)),
                lambda: flow.on_error_resume_next(self.flow(depth - 1)),
            ]
        return self.random.choice(steps)()


@pytest.mark.parametrize("seed", range(2))
async def test_every_flow_comes_to_its_end_and_leaves_no_thread(seed: int) -> None:
    storm = Storm(seed)
    kinds: set[str] = set()
    before = set(threading.enumerate())

    # A failure behind elements that are no longer wanted has nobody else to go to.
    with hooks.using(on_error_dropped=lambda _: None):
        for _ in range(FLOWS):
            flow = storm.flow(3)
            ending = asyncio.ensure_future(flow.to_list() if storm.below(3) else flow.first(default=-1))
            if storm.below(2):
                for _ in range(storm.below(30)):
                    await asyncio.sleep(0)
                ending.cancel()
            await asyncio.wait([ending], timeout=PATIENCE)
            assert ending.done(), f"hangs: {flow!r}\n{flow.describe()}"
            if ending.cancelled():
                kinds.add("cancelled")
            else:
                kinds.add(type(ending.exception()).__name__)
            assert set(threading.enumerate()) <= before

    assert {"cancelled", "NoneType", "StormError"} == kinds
