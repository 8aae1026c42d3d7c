"""The readers of one event loop take together, and are given what was taken one after another."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from types import FrameType
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, Hub, hooks, schedulers
from reactive_aio._core import budgets
from reactive_aio.operators.sharing.delivery import AT_ONCE
from reactive_aio.operators.sharing.taking import Taken, TaskReader
from tests.sharing.driven import Hot, reads
from tests.subscribers import Recorder, idle


def as_it_is() -> Any:
    """Return the function of a subscription that changes nothing."""

    def one(item: int) -> Sequence[int]:
        return (item,)

    return one


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still until a test changes it."""
    now = [0.0]
    monkeypatch.setattr(budgets, "clock", lambda: now[0])
    return now


@pytest.mark.parametrize("readers", [2, AT_ONCE, 2 * AT_ONCE + 1])
@pytest.mark.usefixtures("hurried")
async def test_all_are_given_all_however_short_the_turns_are(readers: int) -> None:
    flow = Flow.range(30).share(lag=4, start=readers)

    assert [list(range(30))] * readers == await asyncio.gather(*[flow.to_list() for _ in range(readers)])


async def test_readers_that_the_end_of_a_turn_has_parted_come_together_again(clock: list[float]) -> None:
    had: list[int] = []
    shared = Flow.range(30).share(start=4)

    async def read(number: int) -> None:
        async for item in shared:
            had.append(item)
            if (number, item) == (1, 5):
                clock[0] += 1  # too long: the third and the fourth get their element in a later turn

    await asyncio.gather(*[read(number) for number in range(4)])
    assert [item for item in range(20, 30) for _ in range(4)] == had[-40:]


async def test_one_who_is_cancelled_by_another_in_the_same_turn_is_given_nothing() -> None:
    hub: Hub[int] = Hub(idle="drop")
    second = Recorder(UNBOUNDED)
    first = reads(hub.flow.do_on_next(lambda _: second.cancel()), UNBOUNDED)
    hub.subscribe(second)
    await idle()
    await hub.emit(1)
    await idle()

    assert ([1], []) == (first.items, second.items)


async def produce(emit: Callable[[int], Awaitable[None]]) -> None:
    for item in range(3):
        await emit(item)


async def iterate() -> AsyncGenerator[int]:
    for item in range(3):
        yield item


@pytest.mark.parametrize(
    "source",
    [
        Flow.range(3),
        Flow.range(3).publish_on(schedulers.current()),
        Flow.create(produce),
        Flow.from_async_iterable(iterate),
    ],
    ids=["range", "boundary", "producer", "async generator"],
)
async def test_no_subscriber_is_given_an_element_inside_the_code_or_the_task_of_the_source(source: Flow[int]) -> None:
    inside: list[bool] = []

    def look(_: int) -> None:
        frame: FrameType | None = sys._getframe()
        names: list[str] = []
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        inside.append("produce" in names or asyncio.current_task() is not None)

    shared = source.share(start=2)
    both = [reads(shared.do_on_next(look), UNBOUNDED) for _ in range(2)]
    for each in both:
        await each.over.wait()

    assert [False] * 6 == inside


async def cancelled_when_taken(hot: Hot, first: Taken[int], items: Taken[int], clock: list[float]) -> None:
    """Cancel a wait for an element that has been taken for it, while its task can't go on: another one takes long."""
    (_, reader) = hot.readers
    assert isinstance(reader, TaskReader)

    async def take_long() -> int:
        item = await anext(first)
        clock[0] += 1
        return item

    before, wait = asyncio.ensure_future(take_long()), asyncio.ensure_future(anext(items))
    await idle()
    hot.publisher.next(1)
    while not reader.items:
        await asyncio.sleep(0)
    wait.cancel()
    await asyncio.wait([wait])
    assert wait.cancelled()
    assert 1 == await before


async def test_an_element_is_not_lost_with_a_wait_that_is_cancelled_when_it_has_been_taken(clock: list[float]) -> None:
    hot = Hot.of()
    async with Taken[int](hot.shared, as_it_is) as first, Taken[int](hot.shared, as_it_is) as items:
        await cancelled_when_taken(hot, first, items, clock)

        assert 1 == await anext(items)


async def test_an_element_for_which_the_task_does_not_come_is_discarded(clock: list[float]) -> None:
    discarded: list[object] = []
    hot = Hot.of()
    with hooks.using(on_discard=discarded.append):
        async with Taken[int](hot.shared, as_it_is) as first, Taken[int](hot.shared, as_it_is) as items:
            await cancelled_when_taken(hot, first, items, clock)

    assert [1] == discarded


async def take_one(hot: Hot) -> int:
    async with Taken[int](hot.shared, as_it_is) as items:
        return await anext(items)


@pytest.mark.usefixtures("hurried")
async def test_an_element_taken_for_one_who_leaves_before_it_is_given_is_discarded() -> None:
    discarded: list[object] = []
    hot = Hot.of()
    with hooks.using(on_discard=discarded.append):
        first, second = (asyncio.ensure_future(take_one(hot)) for _ in range(2))
        await idle()
        (_, leaver) = hot.readers
        hot.publisher.next(1)
        while not leaver.delivery.taken:
            await asyncio.sleep(0)
        second.cancel()
        await idle()

    assert 1 == await first
    assert second.cancelled()
    assert [1] == discarded
