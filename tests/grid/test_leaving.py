"""Every operator, left early at every turn of the loop or at every element: nothing is left, and no element is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio._core.budgets import Budget
from reactive_aio.testing import settle
from tests.grid.points import HERE, Books, around, left_since
from tests.registry import AnyFlow, Entry, Settings

ELEMENTS = 5
MOST_TURNS = 60
"""More turns of the loop than any entry takes for the elements, where no thread takes part."""


def fused(flow: AnyFlow) -> AnyFlow:
    return flow


ways = pytest.mark.parametrize("way", [fused, Flow.from_publisher], ids=["fused", "apart"])
entries = pytest.mark.parametrize("entry", HERE, ids=str)
passing = pytest.mark.parametrize("entry", [entry for entry in HERE if entry.passes], ids=str)


async def nothing_left(before: set[int], way: object) -> None:
    if way is not fused:
        await settle()  # the contract has no word by which a publisher could be waited for
    assert left_since(before) == []


async def turns(n: int) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each flow begin as on a loop that others keep busy. On a quiet one it may end in the step that awaits it."""
    monkeypatch.setattr(Budget, "turn_now", lambda _: False)


class Clock:
    """Moves the clock of asyncio's loop, so that a timeout is over in the turn that a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self.ahead, real = 0.0, loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + self.ahead)


async def timed_out(entry: Entry, way: Any, after: int) -> bool:
    """Have ``asyncio.timeout`` expire in a certain turn, and tell whether that was before the end."""
    scope = asyncio.timeout(None)

    async def main() -> Any:
        async with scope:
            return await entry.make(ELEMENTS, way, Settings(prefetch=2)).to_list()

    task = asyncio.create_task(main())
    await turns(after)
    if not task.done():
        scope.reschedule(0)
    try:
        assert len(await task) == ELEMENTS
    except TimeoutError:
        assert task.cancelling() == 0
        return True
    return False


@pytest.mark.usefixtures("busy")
@ways
@entries
async def test_a_timeout_at_any_turn_is_a_timeout_error_and_leaves_nothing(entry: Entry, way: Any) -> None:
    before, after = around(), 1

    while await timed_out(entry, way, after):
        await nothing_left(before, way)
        after += 1
        assert after < MOST_TURNS, "it does not end"

    assert after > 1, "no timeout came before the end"


@pytest.mark.asyncio(loop_factories=["asyncio"])  # the clock of uvloop can't be moved
@pytest.mark.usefixtures("busy")
@ways
@entries
async def test_wait_for_at_any_turn_is_a_timeout_error_and_leaves_nothing(
    entry: Entry, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, before, after, ended = Clock(monkeypatch), around(), 0, False

    while not ended:
        after += 1
        flow = entry.make(ELEMENTS, way, Settings(prefetch=2))
        task = asyncio.create_task(asyncio.wait_for(flow.to_list(), 3600))
        await turns(after)
        clock.ahead += 7200
        try:
            assert len(await task) == ELEMENTS
            ended = True
        except TimeoutError:
            assert after < MOST_TURNS, "it does not end"
        await nothing_left(before, way)

    assert after > 1, "no timeout came before the end"


# -- an iterator, at every element


@ways
@entries
async def test_a_block_left_at_any_element_leaves_nothing(entry: Entry, way: Any) -> None:
    before = around()

    for left in range(ELEMENTS + 2):
        async with entry.make(ELEMENTS, way, Settings(prefetch=2)).open() as items:
            for _ in range(left):
                await anext(items, None)
        del items
        await nothing_left(before, way)


@ways
@entries
async def test_break_at_any_element_leaves_nothing(entry: Entry, way: Any) -> None:
    before = around()

    for left in range(ELEMENTS):
        seen = 0
        async for _ in entry.make(ELEMENTS, way, Settings(prefetch=2)):
            seen += 1
            if seen > left:
                break
        await settle()  # break can't wait
        assert left_since(before) == []


@ways
@entries
async def test_a_next_that_is_cancelled_at_any_turn_loses_no_element(entry: Entry, way: Any) -> None:
    before, after, ended = around(), -1, False
    whole = await entry.make(ELEMENTS, way, Settings(prefetch=2)).to_list()

    async def take(items: Any, got: list[Any]) -> None:
        async for item in items:
            got.append(item)  # noqa: PERF401 - it is kept though the loop be cancelled

    while not ended:
        after += 1
        got: list[Any] = []
        async with entry.make(ELEMENTS, way, Settings(prefetch=2)).open() as items:
            task = asyncio.create_task(take(items, got))
            await turns(after)
            ended = not task.cancel()
            await asyncio.wait([task])
            await take(items, got)
        assert got == whole
        del items, task
        await nothing_left(before, way)
        assert after < MOST_TURNS, "it does not end"

    assert after > 0


# -- elements: each is taken, or goes to the hook


def balanced(books: Books) -> None:
    assert books.lost == {}, "neither taken nor told to on_discard; if the entry changes elements, enter passes=False"
    assert books.twice == {}
    assert books.dropped == []


async def left_by(leave: Callable[[AnyFlow, Books], Any], entry: Entry, way: Any) -> None:
    books = Books()
    with books.open():
        await leave(entry.make(ELEMENTS, lambda flow: way(books.via(flow)), Settings(prefetch=2)), books)
    await settle()
    balanced(books)


async def cancelled_at_every_turn(end: Callable[[AnyFlow, Books], Any], entry: Entry, way: Any) -> None:
    """Cancel an end in one turn of the loop after another, until it comes to its end."""
    after, ended = -1, False

    async def leave(flow: AnyFlow, books: Books) -> None:
        nonlocal ended
        task = asyncio.ensure_future(end(flow, books))
        await turns(after)
        ended = not task.cancel()
        await asyncio.wait([task])

    while not ended:
        after += 1
        await left_by(leave, entry, way)
        assert after < MOST_TURNS, "it does not end"

    assert after > 0


@ways
@passing
def test_every_element_is_taken_or_told_to_the_hook_whenever_the_end_is_cancelled(entry: Entry, way: Any) -> None:
    asyncio.run(cancelled_at_every_turn(lambda flow, books: flow.for_each(books.take), entry, way))


@ways
@passing
def test_every_element_is_taken_or_told_to_the_hook_whenever_a_next_is_cancelled(entry: Entry, way: Any) -> None:
    async def take(flow: AnyFlow, books: Books) -> None:
        async with flow.open() as items:
            async for item in items:
                books.take(item)

    asyncio.run(cancelled_at_every_turn(take, entry, way))


@ways
@passing
def test_the_first_element_is_given_or_told_to_the_hook_whenever_it_is_cancelled(entry: Entry, way: Any) -> None:
    async def take(flow: AnyFlow, books: Books) -> None:
        books.take(await flow.first())

    asyncio.run(cancelled_at_every_turn(take, entry, way))


@ways
@passing
async def test_every_element_is_taken_or_told_to_the_hook_wherever_a_block_is_left(entry: Entry, way: Any) -> None:
    for left in range(ELEMENTS + 1):

        async def leave(flow: AnyFlow, books: Books, left: int = left) -> None:
            async with flow.open() as items:
                for _ in range(left):
                    books.take(await anext(items))

        await left_by(leave, entry, way)
