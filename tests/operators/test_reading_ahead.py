"""Where what is asked for is read ahead anyway, an async iterator's elements come in lists; all else stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from reactive_aio.operators.sourcing.ahead import QUICK, Ahead, noticing
from tests.subscribers import Recorder, idle


class Taking:
    """Takes lists, as many elements as it is told."""

    def __init__(self, wanted: int = UNBOUNDED) -> None:
        self.wanted = wanted
        self.lists: list[list[Any]] = []
        self.more = asyncio.Event()

    async def resume(self, iterator: AsyncIterator[Any]) -> list[Any]:
        while not self.wanted:
            self.more.clear()
            await self.more.wait()
        return []

    def deliver(self, items: list[Any]) -> None:
        assert len(items) <= self.wanted
        if self.wanted != UNBOUNDED:
            self.wanted -= len(items)
        self.lists.append(items)


async def read(taking: Taking, items: AsyncIterator[Any]) -> None:
    with pytest.raises(StopAsyncIteration):
        await Ahead(taking, items).read()


@pytest.mark.usefixtures("still")
async def test_what_comes_without_waiting_comes_in_lists() -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(1000):
            yield n

    taking = Taking()
    await read(taking, numbers())

    assert [*range(1000)] == [item for items in taking.lists for item in items]
    assert len(taking.lists) < 500


async def test_nothing_that_is_there_waits_for_what_is_not() -> None:
    gate, taking = asyncio.Event(), Taking()

    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2
        await gate.wait()
        yield 3

    task = asyncio.create_task(read(taking, numbers()))
    await idle()
    assert [1, 2] == [item for items in taking.lists for item in items]

    gate.set()
    await task
    assert [3] == taking.lists[-1]


async def test_elements_that_are_slow_to_make_go_on_one_by_one(still: list[float]) -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(50):
            still[0] += 2 * QUICK
            yield n

    taking = Taking()
    await read(taking, numbers())

    assert [[n] for n in range(50)] == taking.lists


async def test_no_more_is_made_than_is_wanted() -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            made.append(n)
            yield n

    taking = Taking(10)
    task = asyncio.create_task(read(taking, numbers()))
    await idle()
    assert [*range(10)] == made

    taking.wanted = 7
    taking.more.set()
    await idle()
    assert [*range(17)] == made == [item for items in taking.lists for item in items]
    taking.wanted = UNBOUNDED
    taking.more.set()
    await task


async def test_a_failure_comes_behind_what_was_made_before_it() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2
        raise OSError("down")

    taking = Taking()
    with pytest.raises(OSError, match="down"):
        await Ahead(taking, numbers()).read()

    assert [1, 2] == [item for items in taking.lists for item in items]


async def test_a_coroutine_that_is_noticed_is_cancelled_as_any() -> None:
    seen: list[str] = []

    async def waiting() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            seen.append("cleaned up")
            raise

    async def main() -> None:
        await noticing(waiting(), lambda: seen.append("suspends"))

    task = asyncio.create_task(main())
    await idle(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ["suspends", "cancelled", "suspends", "cleaned up"] == seen


# -- in a flow


async def test_over_a_boundary_no_element_waits_for_the_next() -> None:
    gate = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2
        await gate.wait()

    recorder = Recorder(UNBOUNDED)
    Flow.from_async_iterable(numbers()).publish_on(schedulers.current()).subscribe(recorder)
    await idle()

    assert [1, 2] == recorder.items
    recorder.cancel()


async def test_no_more_than_the_prefetch_is_made() -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            made.append(n)
            yield n

    recorder = Recorder()
    Flow.from_async_iterable(numbers()).publish_on(schedulers.current(), prefetch=6).subscribe(recorder)
    await idle()

    assert [*range(6)] == made
    recorder.cancel()


@pytest.mark.parametrize("place", ["before a boundary", "merged"])
async def test_effects_interleave_where_a_stage_follows(place: str) -> None:
    effects: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(3):
            effects.append(f"made {n}")
            yield n

    flow = Flow.from_async_iterable(numbers()).map(lambda n: effects.append(f"mapped {n}"))
    await (flow.publish_on(schedulers.current()) if place != "merged" else flow.merge(Flow.empty())).to_list()

    assert [f"{verb} {n}" for n in range(3) for verb in ("made", "mapped")] == effects


async def test_what_stops_early_before_the_boundary_is_exactly_lazy() -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            made.append(n)
            yield n

    flow = Flow.from_async_iterable(numbers()).take_until(lambda n: n == 2)

    assert [0, 1, 2] == await flow.merge(Flow.empty()).to_list()
    assert [0, 1, 2] == made


async def test_a_generator_keeps_its_task_and_its_context() -> None:
    place: ContextVar[str] = ContextVar("place")
    tasks: set[Any] = set()

    async def numbers() -> AsyncIterator[int]:
        place.set("inside")
        try:
            for n in range(100):
                tasks.add(asyncio.current_task())
                assert "inside" == place.get()
                yield n
        finally:
            tasks.add(asyncio.current_task())
            assert "inside" == place.get()

    flow = Flow.from_async_iterable(numbers()).merge(Flow.never())

    assert [*range(50)] == await flow.take(50).to_list()
    assert 1 == len(tasks)


async def test_a_timeout_of_the_generator_s_own_is_its_own_while_nobody_asks() -> None:
    async def numbers() -> AsyncIterator[Any]:
        try:
            async with asyncio.timeout(0.001):
                yield 1
                await asyncio.Event().wait()
        except TimeoutError:
            yield "timed out"

    recorder = Recorder()
    Flow.from_async_iterable(numbers()).publish_on(schedulers.current(), prefetch=1).subscribe(recorder)
    await asyncio.sleep(0.01)
    recorder.request(UNBOUNDED)
    await recorder.over.wait()

    assert [1, "timed out"] == recorder.items


async def test_cancelled_what_was_made_is_told_to_the_hook_and_the_generator_ends() -> None:
    discarded, ended = list[object](), list[str]()

    async def numbers() -> AsyncIterator[int]:
        try:
            for n in range(10**6):
                yield n
        finally:
            ended.append("ended")

    recorder = Recorder()
    with hooks.using(on_discard=discarded.append):
        Flow.from_async_iterable(numbers()).publish_on(schedulers.current(), prefetch=20).subscribe(recorder)
    await idle()
    recorder.cancel()
    await idle()

    assert [*range(20)] == discarded
    assert ["ended"] == ended
