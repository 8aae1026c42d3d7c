"""The queue bounds of the specification: at any time no more than P - B - N may come, and no more is made than that."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from attrs import define
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_aio import UNBOUNDED, Flow, FlowIterator, Snapshot, hooks, schedulers
from reactive_aio._core import budgets
from reactive_aio._runtime.snapshot import snapshot
from tests.registry import AnyFlow
from tests.subscribers import Recorder, idle


@define
class Books:
    """Counts what is made, what is left out on the way, and what arrives; checked whenever a function is called."""

    prefetches: int = 0
    asked: int = 0
    made: int = 0
    left_out: int = 0
    arrived: int = 0
    checks: int = 0
    look: Callable[[], Snapshot] | None = None
    widest: int = 0
    """The most elements that were ever in the system."""

    def source(self, n: int) -> Iterator[int]:
        for item in range(n):
            self.made += 1
            self.check()
            yield item

    def seen(self, item: int) -> int:
        self.check()
        return item

    def unwanted(self, item: int) -> bool:
        self.check()
        if item % 3:
            return True
        self.left_out += 1
        return False

    def lost(self, _: object) -> None:
        self.left_out += 1

    def check(self) -> None:
        self.checks += 1
        inside = self.made - self.left_out - self.arrived
        self.widest = max(self.widest, inside)
        assert inside <= (self.asked - self.arrived) + self.prefetches
        if self.look is not None:
            for boundary in self.look().boundaries:
                assert 0 <= boundary.outstanding
                assert 0 <= boundary.buffered <= boundary.delivered <= boundary.requested
                # P - B - N, with N as the elements that the region has begun with.
                assert boundary.outstanding == boundary.requested - boundary.buffered - boundary.processed
                if boundary.prefetch is not None:
                    assert boundary.outstanding + boundary.buffered <= boundary.prefetch


def build(books: Books, n: int, row: list[tuple[str, int]]) -> AnyFlow:
    flow: AnyFlow = Flow.defer(lambda: Flow.from_iterable(books.source(n)))
    for kind, k in row:
        if kind == "boundary":
            books.prefetches += k
            flow = flow.publish_on(schedulers.current(), prefetch=k)
        elif kind == "map":
            flow = flow.map(books.seen)
        elif kind == "filter":
            flow = flow.filter(books.unwanted)
        elif kind == "flat":
            flow = flow.flat_map_iterable(lambda item: (item,))
        elif kind == "concat":
            flow = flow.concat(Flow.empty())
        elif kind == "apart":
            flow = Flow.from_publisher(flow)
        else:
            books.prefetches += k
            flow = flow.on_backpressure_buffer(k, overflow="drop_latest")
    return flow.map(books.seen)


kinds = st.sampled_from(["boundary", "map", "filter", "flat", "concat", "apart"])
rows = st.lists(st.tuples(kinds, st.integers(1, 9)), max_size=7)


@settings(max_examples=60, deadline=None)
@given(rows, st.lists(st.tuples(st.integers(1, 20), st.integers(0, 30)), max_size=6))
def test_no_more_is_in_a_flow_than_was_asked_for_and_the_declared_prefetches(
    row: list[tuple[str, int]], requests: list[tuple[int, int]]
) -> None:
    async def main() -> None:
        books = Books()
        recorder = Arriving(books)
        with hooks.using(on_discard=books.lost):
            build(books, 100, row).subscribe(recorder)
        books.look = lambda: snapshot(recorder.subscription)
        for n, turns in requests:
            books.asked += n
            recorder.request(n)
            await idle(turns)
            books.check()
        recorder.cancel()
        await idle(100)
        assert books.made == books.left_out + books.arrived

    asyncio.run(main())


class Arriving(Recorder):
    def __init__(self, books: Books) -> None:
        super().__init__()
        self.books = books

    def on_next(self, item: Any) -> None:
        self.books.arrived += 1
        self.books.check()


@settings(max_examples=60, deadline=None)
@given(rows, st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_an_iterator_asks_for_one_element_and_no_more_is_made_for_it(
    row: list[tuple[str, int]], pauses: list[int]
) -> None:
    async def main() -> None:
        books = Books()
        with hooks.using(on_discard=books.lost):
            async with build(books, 50, row).open() as items:
                for pause in pauses:
                    books.asked += 1
                    try:
                        await anext(items)
                    except StopAsyncIteration:
                        break
                    books.arrived += 1
                    await idle(pause)
                    books.look = items.snapshot
                    books.check()
        await idle(100)  # the contract has no word by which a publisher could be waited for
        assert books.made == books.left_out + books.arrived

    asyncio.run(main())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), rows, st.lists(st.integers(1, 7), min_size=1, max_size=10))
def test_with_a_source_that_cannot_be_slowed_no_more_waits_than_the_buffer_declares(
    size: int, row: list[tuple[str, int]], requests: list[int]
) -> None:
    async def main() -> None:
        books, bell = Books(), list[Any]()
        flow = Flow.from_callback(bell.append, max_size=size, overflow="drop_oldest")
        books.prefetches += size
        for kind, k in row:
            if kind == "boundary":
                books.prefetches += k
                flow = flow.publish_on(schedulers.current(), prefetch=k)
            elif kind == "map":
                flow = flow.map(books.seen)
        recorder = Arriving(books)
        with hooks.using(on_discard=books.lost):
            flow.subscribe(recorder)
        books.look = lambda: snapshot(recorder.subscription)
        await idle()
        for n in requests:
            books.asked += n
            recorder.request(n)
            for item in range(n * 2):
                bell[0].next(item)
                books.made += 1
                books.check()
            await idle()
            books.check()

    asyncio.run(main())


@pytest.mark.parametrize("end", ["iterator", "for_each", "subscriber"])
async def test_stop_and_wait_has_exactly_one_element_in_flight(end: str) -> None:
    in_flight: list[int] = []
    made = processed = 0

    def source() -> Iterator[int]:
        nonlocal made
        for n in range(100):
            made += 1
            in_flight.append(made - processed)
            yield n

    def process(n: int) -> int:
        nonlocal processed
        in_flight.append(made - processed)
        processed += 1
        return n

    flow = Flow.from_iterable(source()).publish_on(schedulers.current(), prefetch=1).map(process)
    if end == "iterator":
        assert list(range(100)) == [n async for n in flow]
    elif end == "for_each":
        await flow.for_each(lambda _: None)
    else:
        recorder = Recorder(UNBOUNDED)
        flow.subscribe(recorder)
        await recorder.over.wait()

    assert {1} == set(in_flight)
    assert 100 == made == processed


async def test_stop_and_wait_over_a_thread_too() -> None:
    in_flight: list[int] = []
    made = processed = 0

    def source() -> Iterator[int]:
        nonlocal made
        for n in range(300):
            made += 1
            in_flight.append(made - processed)
            yield n

    def process(n: int) -> int:
        nonlocal processed
        in_flight.append(made - processed)
        processed += 1
        return n

    flow = Flow.from_iterable(source()).publish_on(schedulers.thread("far"), prefetch=1).map(process)
    assert 300 == await flow.count()

    assert {1} == set(in_flight)


async def test_the_figures_of_each_boundary_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", itertools.count(step=0).__next__)  # a turn takes all that there is
    flow = (
        Flow.range(100)
        .map(str)
        .publish_on(schedulers.current(), prefetch=4)
        .map(str)
        .publish_on(schedulers.current(), prefetch=16)
    )
    async with flow.map(str).open() as items:
        await anext(items)
        await idle()
        first, second = items.snapshot().boundaries

    assert (4, 16) == (first.prefetch, second.prefetch)
    # The second has asked for 16, which came; its region has begun with one.
    assert (16, 16, 15, 1, 0) == figures(second)
    # Of the first, 16 were processed for the second; it holds what it reads ahead.
    assert (20, 20, 4, 16, 0) == figures(first)


async def test_what_was_asked_for_and_has_not_come_is_outstanding() -> None:
    async def three(emit: Callable[[int], Awaitable[None]]) -> None:
        for n in range(3):
            await emit(n)
        await asyncio.Event().wait()

    created: AnyFlow = Flow.create(three)
    async with created.publish_on(schedulers.current(), prefetch=8).map(str).open() as items:
        await anext(items)
        await idle()
        boundary = items.snapshot().boundaries[-1]

    assert (8, 3, 2, 1, 5) == figures(boundary)


def figures(boundary: Any) -> tuple[int, ...]:
    return boundary.requested, boundary.delivered, boundary.buffered, boundary.processed, boundary.outstanding


@pytest.mark.costly
async def test_the_figures_hold_while_threads_go_on() -> None:
    flow = (
        Flow.range(200_000)
        .publish_on(schedulers.thread("a"), prefetch=8)
        .map(str)
        .publish_on(schedulers.thread("b"), prefetch=32)
    )
    looks = 0
    chance = random.Random(1)

    async def watch(items: FlowIterator[str]) -> None:
        nonlocal looks
        while True:
            for boundary in items.snapshot().boundaries:
                looks += 1
                assert 0 <= boundary.buffered <= boundary.delivered <= boundary.requested
                assert boundary.prefetch is not None
                assert boundary.buffered <= boundary.prefetch
            await asyncio.sleep(0)

    async with flow.map(len).open() as items:
        watching = asyncio.ensure_future(watch(items))
        seen = 0
        async for _ in items:
            seen += 1
            if chance.random() < 0.01:
                await asyncio.sleep(0)
            if seen == 20_000:
                break
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    assert looks > 100
