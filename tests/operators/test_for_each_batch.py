"""for_each_batch: a function is given lists of elements, one after another, and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from reactive_aio import Flow, SourceCancelledError, hooks, schedulers
from reactive_aio.testing import from_marbles, run_virtual
from tests.subscribers import ByHand, idle


async def test_an_ordinary_function_is_given_lists_and_what_is_left_is_one() -> None:
    given: list[list[int]] = []

    await Flow.range(5).for_each_batch(given.append, 2)

    assert [[0, 1], [2, 3], [4]] == given


async def test_nothing_is_given_of_no_elements() -> None:
    given: list[list[int]] = []

    await Flow.empty().for_each_batch(given.append, 2)

    assert [] == given


def test_a_list_is_given_when_the_call_before_has_ended() -> None:
    begun: list[tuple[list[int], float]] = []

    async def write(items: list[int]) -> None:
        begun.append((items, asyncio.get_running_loop().time()))
        await asyncio.sleep(len(items))

    run_virtual(Flow.range(5).for_each_batch(write, 2))

    assert [([0, 1], 0.0), ([2, 3], 2.0), ([4], 4.0)] == begun


def test_seconds_after_its_first_element_a_list_is_given_as_it_is() -> None:
    begun: list[tuple[float, list[str]]] = []
    flow = from_marbles("abc-d------e|")

    run_virtual(flow.for_each_batch(lambda items: begun.append((_now(), items)), 3, seconds=5.0))

    assert [(2.0, ["a", "b", "c"]), (9.0, ["d"]), (12.0, ["e"])] == begun


def _now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("seconds", [None, 1e6])
async def test_one_list_is_wanted_at_a_time(seconds: float | None) -> None:
    publisher, ended = ByHand(), asyncio.Event()

    async def write(items: list[int]) -> None:
        await ended.wait()

    task = asyncio.ensure_future(Flow.from_publisher(publisher).for_each_batch(write, 3, seconds=seconds))
    await idle()
    assert 3 == sum(publisher.requests)
    publisher.next(1, 2, 3)
    await idle()
    assert 3 == sum(publisher.requests)
    ended.set()
    await idle()
    assert 6 == sum(publisher.requests)
    publisher.complete()
    await task


async def test_no_more_than_a_list_is_outstanding_and_held_where_the_time_cuts_one_short() -> None:
    publisher, ended, given = ByHand(), asyncio.Event(), list[list[int]]()
    begun = asyncio.Event()

    async def write(items: list[int]) -> None:
        given.append(items)
        begun.set()
        await ended.wait()

    task = asyncio.ensure_future(Flow.from_publisher(publisher).for_each_batch(write, 4, seconds=1e-9))
    await idle()
    publisher.next(1)
    await begun.wait()
    publisher.next(2, 3, 4)
    await idle()
    assert [[1]] == given
    assert 4 == sum(publisher.requests)
    publisher.complete()
    ended.set()
    await task
    assert [[1], [2, 3, 4]] == given


@pytest.mark.parametrize("later", [False, True])
async def test_a_failure_names_the_end_and_the_batch_and_cancels_the_flow(later: bool) -> None:
    def fail(items: list[int]) -> None:
        if 4 in items:
            raise ZeroDivisionError

    async def fail_later(items: list[int]) -> None:
        await asyncio.sleep(0)
        fail(items)

    closed: list[bool] = []

    def numbers() -> Any:
        try:
            yield from range(100)
        finally:
            closed.append(True)

    function = fail_later if later else fail
    with pytest.raises(ZeroDivisionError) as caught:
        await Flow.from_iterable(numbers).for_each_batch(function, 2)

    assert caught.value.__notes__[0].startswith(f"in for_each_batch({function.__name__}, 2), on batch #2 of from_iter")
    assert [True] == closed


async def test_a_cancelled_error_of_the_function_is_a_failure() -> None:
    def fail(_: list[int]) -> None:
        raise asyncio.CancelledError

    with pytest.raises(SourceCancelledError):
        await Flow.range(5).for_each_batch(fail, 2)


async def test_a_failure_of_the_flow_discards_the_list_that_is_not_full() -> None:
    given, discarded = list[list[int]](), list[Any]()

    with hooks.using(on_discard=discarded.append), pytest.raises(OSError, match="gone"):
        await Flow.range(3).concat(Flow.error(OSError("gone"))).for_each_batch(given.append, 2)

    assert [[0, 1]] == given
    assert [2] == discarded


async def test_a_cancel_comes_to_the_function_and_discards_what_is_kept() -> None:
    publisher, discarded, cancelled = ByHand(), list[Any](), list[list[int]]()
    begun = asyncio.Event()

    async def write(items: list[int]) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(items)

    with hooks.using(on_discard=discarded.append):
        task = asyncio.ensure_future(Flow.from_publisher(publisher).for_each_batch(write, 3, seconds=1e-9))
        await idle()
        publisher.next(1)
        await begun.wait()
        publisher.next(2)
        await idle()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    assert [[1]] == cancelled
    assert [2] == discarded
    assert 1 == publisher.cancels


async def test_the_function_is_called_on_the_loop_that_awaits() -> None:
    here, loops = asyncio.get_running_loop(), list[object]()

    await (
        Flow.range(5)
        .publish_on(schedulers.thread("elsewhere"))
        .for_each_batch(lambda _: loops.append(asyncio.get_running_loop()), 2)
    )

    assert [here] * 3 == loops


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (lambda flow: flow.for_each_batch(3, 2), TypeError, "takes a function, not int"),
        (lambda flow: flow.for_each_batch(print, 0), ValueError, "size must be at least 1"),
        (lambda flow: flow.for_each_batch(print, 2, seconds=0), ValueError, "seconds must be a finite number above 0"),
    ],
)
async def test_bad_arguments_are_refused(run: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        await run(Flow.range(3))
