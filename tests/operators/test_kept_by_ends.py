"""The hook of discarded elements gets the elements that an end has kept and returns to nobody, and no others."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import pytest

from reactive_aio import Flow, LimitExceededError, hooks, schedulers
from reactive_aio._catalogue import Fails, operators
from tests.subscribers import ByHand, idle

End = Callable[[Flow[Any]], Awaitable[Any]]

# Each with what it keeps of 2, 3, 1.
KEEPING: dict[str, tuple[End, list[int]]] = {
    "to_list": (Flow.to_list, [2, 3, 1]),
    "to_set": (Flow.to_set, [1, 2, 3]),
    "to_dict": (lambda flow: flow.to_dict(lambda n: n % 2), [1, 2]),
    "to_sorted_list": (Flow.to_sorted_list, [1, 2, 3]),
    "top_k": (lambda flow: flow.top_k(3), [1, 2, 3]),
    "for_each_batch": (lambda flow: flow.for_each_batch(len, 5), [1, 2, 3]),
    "last": (Flow.last, [1]),
    "min": (Flow.min, [1]),
    "max": (Flow.max, [3]),
    "min-by-key": (lambda flow: flow.min(key=lambda n: -n), [3]),
    "max-by-key": (lambda flow: flow.max(key=lambda n: -n), [1]),
}
NOT_KEEPING: dict[str, End] = {
    "count": Flow.count,
    "sum": lambda flow: flow.sum(),
    "reduce": lambda flow: flow.reduce(max),
    "reduce, from a start": lambda flow: flow.reduce(max, 0),
    "collect": lambda flow: flow.collect(list, list.append),
    "count_by_key": lambda flow: flow.count_by_key(str),
    "reduce_by_key": lambda flow: flow.reduce_by_key(str, operator.add, 0),
    "to_dict-value": lambda flow: flow.to_dict(str, value=str),
    "all": lambda flow: flow.all(bool),
    "is_empty": lambda flow: flow.filter(lambda _: False).is_empty(),
    "drain": Flow.drain,
}


def by_name(ends: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", ends)


def test_the_page_says_so_of_each_end_that_keeps_elements() -> None:
    told = {each.name for each in operators() if each.is_end and each.traits.fails is Fails.DISCARDS}

    assert {"single", "run_sync", *(name.partition("-")[0] for name in KEEPING)} == told
    assert not told & set(NOT_KEEPING)


async def failed(end: End, items: Iterable[int]) -> list[Any]:
    """Run an end of a flow that fails behind these elements, and give what was discarded."""
    source, discarded = ByHand(), list[Any]()
    with hooks.using(on_discard=discarded.append):
        running = asyncio.ensure_future(end(Flow.from_publisher(source)))
    await idle()
    for item in items:  # one at a time: some ends ask for no more at once
        source.next(item)
        await idle()
    source.error(OSError("down"))
    with pytest.raises(OSError, match="down"):
        await running
    return discarded


async def cancelled(end: End, items: Iterable[int]) -> list[Any]:
    """The same where the wait is cancelled."""
    source, discarded = ByHand(), list[Any]()
    with hooks.using(on_discard=discarded.append):
        running = asyncio.ensure_future(end(Flow.from_publisher(source)))
    await idle()
    for item in items:  # one at a time: some ends ask for no more at once
        source.next(item)
        await idle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    return discarded


@by_name(KEEPING)
async def test_what_is_kept_is_discarded_when_the_flow_fails(name: str) -> None:
    end, kept = KEEPING[name]

    assert sorted(await failed(end, [2, 3, 1])) == sorted(kept)


@by_name(KEEPING)
async def test_what_is_kept_is_discarded_when_the_wait_is_cancelled(name: str) -> None:
    end, kept = KEEPING[name]

    assert sorted(await cancelled(end, [2, 3, 1])) == sorted(kept)


@by_name(NOT_KEEPING)
async def test_what_a_function_has_made_of_elements_is_not(name: str) -> None:
    assert await failed(NOT_KEEPING[name], [2, 3, 1]) == []
    assert await cancelled(NOT_KEEPING[name], [2, 3, 1]) == []


@by_name(KEEPING)
async def test_of_no_elements_nothing_is_discarded(name: str) -> None:
    assert await cancelled(KEEPING[name][0], []) == []


@by_name(KEEPING)
async def test_what_is_given_is_not_discarded(name: str) -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append):
        await KEEPING[name][0](Flow.of(2, 3, 1))

    assert discarded == []


# -- the flow has given its value, and is being cleaned up

VALUES = {**KEEPING, "first": (Flow.first, [2]), "element_at": (lambda flow: flow.element_at(1), [3])}
TAKEN = {"first": 1, "element_at": 2}
"""The number of elements that an end takes, if it does not take them all."""
PLACED: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "here": lambda flow: flow,
    "behind a boundary": lambda flow: flow.publish_on(schedulers.current(), prefetch=1),
    "in a group": lambda flow: flow.group_by(lambda _: "all").concat_map(lambda group: group),
}


class Cleaning:
    """A source whose cleanup waits until it may go on, and then fails."""

    def __init__(self) -> None:
        self.begun, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def rows(self) -> AsyncIterator[int]:
        try:
            for n in (2, 3, 1):
                yield n
        finally:
            self.begun.set()
            await self.may_go_on.wait()
            raise OSError("commit failed")


async def cleaned_up(name: str, end: End, placed: str, *, cancel: bool) -> list[Any]:
    """Cancel the wait for the cleanup, or let that fail, and give what was discarded of the value."""
    source, discarded = Cleaning(), list[Any]()
    with hooks.using(on_discard=discarded.append, on_error_dropped=lambda _: None):
        running = asyncio.ensure_future(
            end(PLACED[placed](Flow.from_async_iterable(source.rows).take(TAKEN.get(name, 3))))
        )
    await source.begun.wait()
    await idle()
    if cancel:
        running.cancel()
    source.may_go_on.set()
    with pytest.raises(asyncio.CancelledError if cancel else OSError):
        await running
    return discarded


@pytest.mark.parametrize("cancel", [False, True], ids=["fails", "cancelled"])
@pytest.mark.parametrize("placed", PLACED)
@by_name(VALUES)
async def test_what_is_in_the_value_is_discarded_when_nobody_gets_that_because_of_the_cleanup(
    name: str, placed: str, cancel: bool
) -> None:
    end, kept = VALUES[name]
    if name == "for_each_batch":
        kept = []  # they have been in a call

    assert sorted(await cleaned_up(name, end, placed, cancel=cancel)) == sorted(kept)


@pytest.mark.parametrize("cancel", [False, True], ids=["fails", "cancelled"])
@pytest.mark.parametrize("placed", PLACED)
@by_name(NOT_KEEPING)
async def test_a_value_that_functions_have_made_goes_to_no_hook_either(name: str, placed: str, cancel: bool) -> None:
    assert await cleaned_up(name, NOT_KEEPING[name], placed, cancel=cancel) == []


@by_name(VALUES)
def test_nor_is_it_lost_where_the_source_is_an_ordinary_generator(name: str) -> None:
    end, kept = VALUES[name]
    discarded: list[Any] = []

    def rows() -> Iterator[int]:
        try:
            yield from (2, 3, 1)
        finally:
            raise OSError("commit failed")

    with hooks.using(on_discard=discarded.append), pytest.raises(OSError, match="commit failed"):
        Flow.from_iterable(rows).take(TAKEN.get(name, 3)).run_sync(end)
    assert sorted(discarded) == sorted([] if name == "for_each_batch" else kept)


async def test_what_single_keeps_is_discarded() -> None:
    assert await failed(Flow.single, [2]) == await cancelled(Flow.single, [2]) == [2]


async def test_of_too_many_for_single_both_are_discarded() -> None:
    discarded: list[Any] = []
    with hooks.using(on_discard=discarded.append), pytest.raises(LimitExceededError):
        await Flow.of(2, 3).single()

    assert sorted(discarded) == [2, 3]


@pytest.mark.parametrize("name", ["last", "to_set", "to_sorted_list", "top_k", "min"])
async def test_what_is_kept_is_given_or_discarded_whenever_the_wait_is_cancelled(name: str) -> None:
    async def one() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        made.append(5)
        yield 5
        await asyncio.sleep(0)

    turns, ended, discards = 0, False, 0
    while not ended:
        made: list[int] = []
        discarded: list[Any] = []
        with hooks.using(on_discard=discarded.append):
            task = asyncio.ensure_future(KEEPING[name][0](Flow.from_async_iterable(one())))
        await idle(turns)
        turns, ended = turns + 1, not task.cancel()
        await asyncio.wait([task])
        given = [] if task.cancelled() else [task.result()] if name in {"last", "min"} else [*task.result()]
        discards += len(discarded)
        assert [*given, *discarded] == made

    assert discards > 0
