"""Shared flows and hubs in great numbers: of subscribers, of subscriptions, and of elements from several threads."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, Hub, schedulers
from reactive_aio.operators.sharing.emission import Emission
from reactive_aio.operators.sharing.log import Log
from reactive_aio.operators.sharing.mutex import Mutex
from reactive_aio.operators.sharing.reader import Reader
from tests.subscribers import Recorder, idle

stress = pytest.mark.stress


@define(eq=False)
class Visitor:
    """As much of a region as a reader speaks to, so that tens of thousands of them take seconds."""

    loop: asyncio.AbstractEventLoop
    context: Context = field(factory=copy_context)
    items: list[int] = field(factory=list)
    where: str = "a visitor"
    released: int = 0
    asked: int = 0
    reader: Reader = field(init=False)
    first: int = field(init=False)

    def hold(self) -> Callable[[], None]:
        return self._release

    def _release(self) -> None:
        self.released += 1

    def on_chunk(self, items: list[int]) -> None:
        self.items += items

    def visit(self, emission: Emission, asked: int) -> None:
        """Begin to read."""
        self.asked = asked
        self.reader = emission.join(Reader, self)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as much of an Inlet as it takes
        self.first = self.reader.cursor.at
        self.reader.request(asked)

    def leave(self) -> None:
        """Leave; what has been given is a stretch from where it began, and no more than was asked for."""
        self.reader.cancel()
        assert list(range(self.first, self.first + len(self.items))) == self.items
        assert (True, 1) == (len(self.items) <= self.asked, self.released)


# -- subscribers at once


@pytest.mark.costly
@pytest.mark.parametrize("number", [1000, pytest.param(10_000, marks=stress)])
async def test_so_many_subscribers_at_once_are_given_each_element(number: int) -> None:
    shared = Flow.range(10).share(lag=8, start=number)

    assert [45] * number == await asyncio.gather(*[shared.sum() for _ in range(number)])


@pytest.mark.parametrize("number", [1000, pytest.param(10_000, marks=stress)])
async def test_so_many_subscribers_of_a_hub_are_given_each_element(number: int) -> None:
    hub: Hub[int] = Hub(idle="drop", lag=8)
    sums = [asyncio.ensure_future(hub.flow.sum()) for _ in range(number)]
    while hub.subscribers < number:
        await asyncio.sleep(0)
    await hub.feed(Flow.range(10))
    hub.complete()

    assert [45] * number == await asyncio.gather(*sums)


# -- subscriptions one after another


async def test_thousands_of_subscriptions_one_after_another_leave_nothing() -> None:
    shared = Flow.range(3).share(replay=1)
    hub: Hub[int] = Hub(idle="drop")
    for _ in range(200):
        await shared.take(1).to_list()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(2000):
        await shared.take(1).to_list()
        recorder = Recorder(1)
        hub.subscribe(recorder)
        await asyncio.sleep(0)
        recorder.cancel()
    await idle()
    gc.collect()

    assert sys.getallocatedblocks() - before < 5_000


@pytest.mark.costly
@stress
async def test_tens_of_thousands_of_readers_one_after_another_leave_nothing() -> None:
    emission = Emission(4, Log(1), Mutex(), "drop")
    loop = asyncio.get_running_loop()

    async def visits(number: int) -> None:
        for n in range(number):
            emission.offer(emission.log.made)
            visitor = Visitor(loop)
            visitor.visit(emission, 1 + n % 2)
            await asyncio.sleep(0)
            visitor.leave()
        await idle()
        gc.collect()

    await visits(1000)
    before = sys.getallocatedblocks()
    await visits(20_000)

    assert sys.getallocatedblocks() - before < 1_000


# -- threads


@pytest.mark.parametrize("visits", [15, pytest.param(250, marks=stress)])
def test_subscribers_come_and_go_on_threads_and_each_is_given_a_stretch_to_its_end(visits: int) -> None:
    shared = Flow.range(2000).subscribe_on(schedulers.thread("feed")).share(lag=16, replay=3)

    async def visit(chance: random.Random) -> None:
        for _ in range(visits):
            wanted = chance.choice([1, 5, 100, 10_000])
            items = await shared.take(wanted).to_list()
            assert items == list(range(items[0], items[0] + len(items)))
            assert len(items) == wanted or items[-1] == 1999

    on_threads(visit)
    assert 0 == shared.subscribers


@pytest.mark.parametrize(
    "visits", [250, pytest.param(5_000, marks=stress), pytest.param(25_000, marks=[stress, pytest.mark.long])]
)
def test_readers_join_and_leave_at_random_on_four_threads_while_elements_come(visits: int) -> None:
    emission = Emission(8, Log(3), Mutex(), "drop")

    async def visit(chance: random.Random) -> None:
        loop, there = asyncio.get_running_loop(), list[Visitor]()
        for _ in range(visits):
            visitor = Visitor(loop)
            visitor.visit(emission, chance.choice([1, 3, 1000]))
            there.append(visitor)
            if chance.random() < 0.5:
                await asyncio.sleep(0)
            while len(there) > chance.randrange(4):
                there.pop(chance.randrange(len(there))).leave()
        for visitor in there:
            visitor.leave()
        await idle()

    def emit(until: threading.Event) -> None:
        while not until.is_set():
            emission.submit(emission.log.made, 60.0)

    over = threading.Event()
    emitting = threading.Thread(target=emit, args=(over,))
    emitting.start()
    try:
        on_threads(visit)
    finally:
        over.set()
        emitting.join()
    log = emission.log
    assert (0, 0, {}, 8) == (log.readers, log.window, emission.deliveries, emission._room)


def on_threads(visit: Callable[[random.Random], Any], threads: int = 4) -> None:
    """Have several threads visit, each with an event loop of its own."""
    failures: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            asyncio.run(asyncio.wait_for(visit(random.Random(seed)), 60.0))
        except BaseException as failure:
            failures.append(failure)

    visiting = [threading.Thread(target=run, args=(seed,)) for seed in range(threads)]
    for thread in visiting:
        thread.start()
    for thread in visiting:
        thread.join()
    assert [] == failures


@pytest.mark.parametrize(
    ("each", "lag"),
    [
        (200, 1),
        (200, 64),
        pytest.param(10_000, 4096, marks=stress),
        pytest.param(100_000, 4096, marks=[stress, pytest.mark.long]),
    ],
)
async def test_each_of_eight_threads_keeps_its_order_and_nothing_is_lost_or_comes_twice(each: int, lag: int) -> None:
    hub: Hub[tuple[int, int]] = Hub(idle="wait", lag=lag)
    following = [0] * 8

    def take(item: tuple[int, int]) -> None:
        thread, n = item
        assert following[thread] == n
        following[thread] += 1

    def submit(thread: int) -> None:
        for n in range(each):
            hub.submit((thread, n), timeout=60.0)

    reading = [asyncio.ensure_future(end) for end in (hub.flow.for_each(take), hub.flow.count())]
    while hub.subscribers < 2:
        await asyncio.sleep(0)
    await asyncio.gather(*[asyncio.to_thread(submit, thread) for thread in range(8)])
    hub.complete()
    _, count = await asyncio.gather(*reading)

    assert ([each] * 8, 8 * each) == (following, count)
