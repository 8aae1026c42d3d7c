"""Shared flows and hubs in orders of tasks and turns that asyncio does not promise: what holds does not rely on its order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress

from attrs import define, field

from reactive_aio import Flow, Hub, HubClosedError, SharedClosedError
from reactive_aio.testing import adversarial, no_leaks

SEEDS = 40


@define
class Numbers:
    """A source that takes its time to begin, to go on and to be cleaned up, and says when that is."""

    upto: int
    log: list[str] = field(factory=list)

    async def __aiter__(self) -> AsyncIterator[int]:
        self.log.append("begun")
        try:
            for n in range(self.upto):
                await asyncio.sleep(0)
                yield n
        finally:
            await asyncio.sleep(0)
            self.log.append("cleaned up")


@adversarial(seeds=SEEDS)
async def test_each_of_several_subscribers_is_given_all_elements_of_one_run() -> None:
    source = Numbers(50)
    shared = Flow.from_async_iterable(source).share(start=4, lag=3)

    async def one_by_one() -> list[int]:
        items: list[int] = []
        async for item in shared:
            await asyncio.sleep(0)
            items.append(item)
        return items

    ends = (
        shared.to_list(),
        one_by_one(),
        shared.buffer(7).flat_map_iterable(list).to_list(),
        shared.map(int).to_list(),
    )
    found = [*await asyncio.gather(*ends)]
    assert [list(range(50))] * 4 == found
    assert ["begun", "cleaned up"] == source.log


@adversarial(seeds=SEEDS)
async def test_runs_follow_each_other_and_each_subscriber_is_given_a_stretch() -> None:
    source = Numbers(20)
    shared = Flow.from_async_iterable(source).share(lag=2, replay=1)
    chance = random.Random(0)

    async def visit(wanted: int, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        items = await shared.take(wanted).to_list()
        assert list(range(items[0], items[0] + len(items))) == items
        assert wanted == len(items) or 19 == items[-1]

    async with no_leaks():
        await asyncio.gather(*[visit(chance.choice([1, 2, 5, 99]), chance.randrange(60)) for _ in range(12)])
    assert ["begun", "cleaned up"] * (len(source.log) // 2) == source.log
    assert 0 == shared.subscribers


@adversarial(seeds=SEEDS)
async def test_all_who_retry_come_to_the_same_end_and_no_two_runs_are_open() -> None:
    attempts: list[int] = []
    open_runs = [0]

    def attempt() -> Flow[int]:
        attempts.append(open_runs[0])
        open_runs[0] += 1
        made: Flow[int] = Flow.of(0).concat(Flow.error(OSError("down"))) if len(attempts) < 3 else Flow.of(1, 2)
        return made.do_finally(closed)

    def closed() -> None:
        open_runs[0] -= 1

    shared = Flow.defer(attempt).share(replay=2)
    all_of_them = await asyncio.gather(*[shared.retry().to_list() for _ in range(5)])

    assert [[1, 2]] * 5 == [items[-2:] for items in all_of_them]
    assert {0} == set(attempts)


@adversarial(seeds=SEEDS)
async def test_an_element_is_emitted_if_and_only_if_its_emitter_was_not_cancelled() -> None:
    hub: Hub[tuple[int, int]] = Hub(idle="wait", lag=2)
    emitted: list[tuple[int, int]] = []
    chance = random.Random(0)

    async def emit(number: int) -> None:
        for n in range(10):
            await hub.emit((number, n))
            emitted.append((number, n))

    async def cancel(task: asyncio.Task[None], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()

    reading = [asyncio.ensure_future(hub.flow.to_list()) for _ in range(2)]
    while hub.subscribers < 2:
        await asyncio.sleep(0)
    tasks = [asyncio.ensure_future(emit(number)) for number in range(5)]
    await asyncio.gather(*[cancel(task, chance.randrange(80)) for task in tasks[:4]])
    await asyncio.gather(*tasks, return_exceptions=True)
    hub.complete()
    one, two = await asyncio.gather(*reading)

    assert one == two
    assert sorted(emitted) == sorted(one)
    assert all(sorted(mine) == mine for mine in ([n for of, n in one if of == number] for number in range(5)))


@adversarial(seeds=SEEDS)
async def test_what_is_taken_while_the_hub_ends_is_delivered() -> None:
    hub: Hub[int] = Hub(idle="wait", lag=3)
    taken: list[int] = []

    async def emit() -> None:
        with suppress(HubClosedError):
            while True:
                await hub.emit(n := len(taken))
                taken.append(n)

    async def end() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        hub.complete()

    items, *_ = await asyncio.gather(hub.flow.to_list(), emit(), end())
    assert taken == items


@adversarial(seeds=SEEDS)
async def test_the_uses_of_a_multicast_are_given_all_elements() -> None:
    def sums(flow: Flow[int]) -> Flow[tuple[int, int]]:
        return flow.filter(lambda n: n % 2 == 0).zip(flow.filter(lambda n: n % 2 == 1))

    flow = Flow.from_async_iterable(Numbers(20)).multicast(sums, lag=4)
    assert [(n, n + 1) for n in range(0, 20, 2)] == await flow.to_list()


@adversarial(seeds=SEEDS)
async def test_who_still_reads_when_the_block_is_left_fails_and_the_cleanup_is_over() -> None:
    source = Numbers(1000)
    async with no_leaks():
        async with Flow.from_async_iterable(source).share(lag=2) as shared:
            reading = [asyncio.ensure_future(shared.to_list()) for _ in range(3)]
            while shared.subscribers < 3:  # one who comes behind the block begins a run of its own
                await asyncio.sleep(0)
            first, second = await shared.take(2).to_list()
            assert first + 1 == second  # who comes later may begin later
        assert ["begun", "cleaned up"] == source.log
        results = await asyncio.gather(*reading, return_exceptions=True)
    assert {SharedClosedError} == set(map(type, results))


@adversarial(seeds=SEEDS)
async def test_a_run_lingers_and_ends_once() -> None:
    source = Numbers(1000)
    async with Flow.from_async_iterable(source).share(linger=5.0) as shared:
        for absent in (4.0, 4.0, 6.0):
            await shared.take(1).to_list()
            await asyncio.sleep(absent)
        assert ["begun", "cleaned up"] == source.log
