"""A source that suspends appends its elements to a list of the combinator that reads it. None is lost, and none comes twice."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any
from weakref import WeakSet

import pytest

from reactive_aio import UNBOUNDED, BoundarySnapshot, Flow, hooks
from reactive_aio._arbiter.merging import SEVERAL
from tests.subscribers import Recorder, idle

LENGTH = 30
PREFETCH = 8
Element = tuple[int, int]
"""The number of the source, and that of the element."""


def merged(flows: list[Flow[Element]]) -> Flow[Any]:
    return flows[0].merge(*flows[1:], prefetch=PREFETCH)


def zipped(flows: list[Flow[Element]]) -> Flow[Any]:
    return flows[0].zip(*flows[1:], prefetch=PREFETCH)


BOTH = pytest.mark.parametrize("combined", [merged, zipped])


class Sources:
    """Several sources that suspend before each element, and note what they have yielded."""

    def __init__(self, before: Callable[[Element], object] = lambda _: None) -> None:
        self.before = before
        self.yielded: list[Element] = []

    async def source(self, number: int) -> AsyncGenerator[Element]:
        for n in range(LENGTH):
            await asyncio.sleep(0)
            self.before((number, n))
            self.yielded.append((number, n))
            yield number, n

    def flows(self) -> list[Flow[Element]]:
        return [Flow.from_async_iterable(self.source(number)) for number in range(SEVERAL)]


def each(items: Iterable[Any]) -> Iterator[Element]:
    """Yield the elements, also those in tuples of zip."""
    for item in items:
        yield from item if isinstance(item[0], tuple) else (item,)


def in_order(items: Iterable[Any]) -> list[list[int]]:
    """Return the elements of each source, as they come."""
    found: list[list[int]] = [[] for _ in range(SEVERAL)]
    for number, n in each(items):
        found[number].append(n)
    return found


@BOTH
@pytest.mark.parametrize("demand", [UNBOUNDED, 3, 1])
async def test_elements_come_once_and_in_the_order_of_their_source(
    combined: Callable[[list[Flow[Element]]], Flow[Any]], demand: int
) -> None:
    recorder = Recorder(demand)
    combined(Sources().flows()).subscribe(recorder)
    while not recorder.over.is_set():
        await asyncio.sleep(0)
        recorder.request(demand)

    assert [[*range(LENGTH)]] * SEVERAL == in_order(recorder.items)


@BOTH
@pytest.mark.parametrize("turns", range(2 * LENGTH))
async def test_each_element_is_emitted_or_discarded_wherever_the_flow_is_cancelled(
    combined: Callable[[list[Flow[Element]]], Flow[Any]], turns: int
) -> None:
    sources, recorder, discarded = Sources(), Recorder(UNBOUNDED), list[Any]()
    with hooks.using(on_discard=discarded.append):
        combined(sources.flows()).subscribe(recorder)
    for _ in range(turns):
        await asyncio.sleep(0)
    recorder.cancel()
    await idle()

    assert sorted(sources.yielded) == sorted(each([*recorder.items, *discarded]))


@BOTH
@pytest.mark.parametrize("last", [0, SEVERAL - 1])
async def test_an_element_that_comes_behind_the_end_is_discarded(
    combined: Callable[[list[Flow[Element]]], Flow[Any]], last: int
) -> None:
    def cancel(element: Element) -> None:
        if element == (last, 20):
            recorder.cancel()

    sources, recorder, discarded = Sources(cancel), Recorder(UNBOUNDED), list[Any]()
    with hooks.using(on_discard=discarded.append):
        combined(sources.flows()).subscribe(recorder)
    await idle()

    assert sorted(sources.yielded) == sorted(each([*recorder.items, *discarded]))
    assert (last, 20) in each(discarded)


async def test_a_failure_comes_behind_the_elements_that_have_been_appended() -> None:
    def fail(element: Element) -> None:
        if element == (1, 20):
            raise OSError("down")

    sources, recorder, discarded = Sources(fail), Recorder(UNBOUNDED), list[Any]()
    with hooks.using(on_discard=discarded.append):
        merged(sources.flows()).subscribe(recorder)
    await idle()

    assert "down" == str(recorder.error)
    assert [*range(20)] == in_order(recorder.items)[1]
    assert sorted(sources.yielded) == sorted([*recorder.items, *discarded])


async def test_more_is_requested_before_the_prefetch_is_used_up() -> None:
    turn, turns = 0, list[int]()

    def note(element: Element) -> None:
        if element[0] == 0:
            turns.append(turn)

    recorder = Recorder(UNBOUNDED)
    merged(Sources(note).flows()).subscribe(recorder)
    while not recorder.over.is_set():
        turn += 1
        await asyncio.sleep(0)

    assert [1] * (LENGTH - PREFETCH) == [after - before for before, after in pairwise(turns)][PREFETCH - 1 :]


async def test_a_snapshot_counts_what_has_been_appended() -> None:
    taken = PREFETCH + 2  # so it reads the second list
    first, second = Sources().flows()[0], Flow.from_async_iterable(few(taken))
    shown: list[BoundarySnapshot] = []
    async with first.zip(second, prefetch=PREFETCH).open() as items:
        assert taken == len([await anext(items) for _ in range(taken)])
        waiting = asyncio.ensure_future(anext(items))
        for _ in range(PREFETCH):
            await asyncio.sleep(0)
            boundary = items.snapshot().regions[0].inner[0].boundary
            assert boundary is not None
            shown.append(boundary)
        waiting.cancel()

    assert [1, 2, 3] == [each.buffered for each in shown][:3]
    assert [taken + each.buffered for each in shown] == [each.delivered for each in shown]
    assert all(each.delivered <= each.requested <= taken + PREFETCH for each in shown)


async def few(n: int) -> AsyncGenerator[None]:
    for _ in range(n):
        yield None
    await asyncio.Event().wait()


class Large:
    """An element that can be looked for by a weak reference."""


@pytest.mark.parametrize(
    "combined",
    [
        lambda flows: flows[0].merge(*flows[1:], prefetch=PREFETCH),
        lambda flows: flows[0].merge(flows[1], prefetch=PREFETCH),
        lambda flows: flows[0].zip(*flows[1:], prefetch=PREFETCH),
        lambda flows: Flow.of(*flows).concat_map(lambda flow: flow),
    ],
    ids=["merge of several", "merge of two", "zip", "concat_map"],
)
@pytest.mark.parametrize("length", [1, LENGTH])
async def test_no_element_is_kept_while_its_source_waits(
    combined: Callable[[list[Flow[Large]]], Flow[Any]], length: int
) -> None:
    alive: WeakSet[Large] = WeakSet()

    async def source() -> AsyncGenerator[Large]:
        for _ in range(length):
            await asyncio.sleep(0)
            element = Large()
            alive.add(element)
            yield element
            del element
        await asyncio.Event().wait()

    flows = [Flow.from_async_iterable(source()) for _ in range(SEVERAL)]
    counting = asyncio.create_task(combined(flows).count())
    await idle(2 * LENGTH)
    gc.collect()

    assert 0 == len(alive)
    counting.cancel()
