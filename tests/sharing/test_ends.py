"""Shared flows: the end, which is that of all, and who comes behind it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, Hub, SharedClosedError, SourceCancelledError, hooks
from tests.sharing.driven import Counted, Hot, reads
from tests.subscribers import ByHand, Recorder, idle


async def test_the_end_is_behind_what_is_kept_for_each() -> None:
    shared = Flow.of(1, 2, 3).share()
    fast, slow = reads(shared, UNBOUNDED), reads(shared, 1)
    await idle()
    assert ("complete", [1]) == (fast.kinds[-1], slow.items)

    slow.request(1)
    await idle()
    assert ("next", [1, 2]) == (slow.kinds[-1], slow.items)

    slow.request(1)
    await idle()
    assert ("complete", [1, 2, 3]) == (slow.kinds[-1], slow.items)


async def test_one_who_comes_behind_the_end_begins_anew_though_another_has_not_heard_of_it() -> None:
    source = Counted(Flow.of(1, 2, 3))
    shared = source.flow().share()
    fast, slow = reads(shared, UNBOUNDED), reads(shared)
    await idle()
    assert [1, 2, 3] == await shared.to_list()

    slow.request(9)
    await idle()
    assert (2, fast.signals) == (source.runs, slow.signals)


async def test_one_who_comes_behind_the_end_of_an_empty_flow_begins_anew() -> None:
    source = Counted(Flow.empty())
    shared = source.flow().share()

    assert [[], []] == [await shared.to_list(), await shared.to_list()]
    assert 2 == source.runs


def failing(n: int) -> int:
    raise OSError(f"down at {n}")


async def iterated(flow: Flow[Any]) -> None:
    async for _ in flow:
        pass


@pytest.mark.parametrize("end", [Flow.to_list, iterated], ids=["awaited", "iterated"])
async def test_who_raises_the_failure_adds_nothing_to_what_others_raise(
    end: Callable[[Flow[Any]], Awaitable[object]],
) -> None:
    shared = Flow.range(3).map(failing).share(start=8, restart="never")
    told: list[tuple[str, ...]] = []

    async def read() -> None:
        try:
            await end(shared.map(str))
        except OSError as error:
            told.append(tuple(traceback.format_exception(error)))

    await asyncio.gather(*[read() for _ in range(8)])
    for _ in range(8):  # who come behind the end
        await read()
    assert (16, 1) == (len(told), len(set(told)))
    assert 1 == "".join(told[0]).count("in map(failing)")


async def test_the_failure_is_that_of_all() -> None:
    failure = OSError("down")
    shared = Flow.of(1).concat(Flow.error(failure)).share(start=2)
    both: list[object] = [*await asyncio.gather(shared.to_list(), shared.count(), return_exceptions=True)]

    assert [failure, failure] == both


async def test_a_failure_that_nobody_has_heard_goes_to_the_hook_once() -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        hot = Hot.of()
        one, two = reads(hot.shared, 1), reads(hot.shared, 1)
        await idle()
        failure = OSError("down")
        hot.publisher.next(1)
        hot.publisher.error(failure)
        one.cancel()
        two.cancel()
        await idle()

    assert [failure] == dropped


@pytest.mark.parametrize("replay", [0, 2])
async def test_with_never_one_who_comes_behind_the_end_is_given_the_replay_and_the_end(replay: int) -> None:
    source = Counted(Flow.of(1, 2, 3))
    shared = source.flow().share(replay=replay, restart="never")
    await shared.count()

    assert ([1, 2, 3][3 - replay :], 1) == (await shared.to_list(), source.runs)


async def test_with_after_error_a_failure_is_not_given_to_those_who_come_later() -> None:
    attempts: list[int] = []

    def attempt() -> Flow[int]:
        attempts.append(1)
        return Flow.error(OSError("down")) if len(attempts) == 1 else Flow.of(1, 2)

    shared = Flow.defer(attempt).share(replay=9, restart="after_error")
    with pytest.raises(OSError, match="down"):
        await shared.to_list()

    assert [[1, 2], [1, 2]] == [await shared.to_list(), await shared.to_list()]
    assert 2 == len(attempts)


@pytest.mark.usefixtures("still")
async def test_all_who_retry_in_one_turn_share_the_next_run() -> None:
    attempts: list[int] = []

    def attempt() -> Flow[int]:
        attempts.append(1)
        return Flow.of(0).concat(Flow.error(OSError("down"))) if len(attempts) < 3 else Flow.of(1, 2)

    shared = Flow.defer(attempt).share(start=1)
    all_of_them = await asyncio.gather(*[shared.retry().to_list() for _ in range(5)])

    assert ([[0, 0, 1, 2]] * 5, 3) == (all_of_them, len(attempts))


async def test_a_failure_that_nobody_came_to_hear_goes_to_the_hook_when_the_block_is_left() -> None:
    dropped: list[BaseException] = []
    publisher, failure = ByHand(), OSError("down")
    with hooks.using(on_error_dropped=dropped.append):
        async with Flow.from_publisher(publisher).share(restart="never"):
            await idle()
            publisher.error(failure)
            await idle()
            assert [] == dropped

    assert [failure] == dropped


async def block_that_is_cancelled(hub: Hub[int]) -> None:
    async def block() -> None:
        async with hub:
            await asyncio.sleep(99.0)

    task = asyncio.ensure_future(block())
    await idle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def error_that_is_passed(hub: Hub[int]) -> None:
    hub.error(asyncio.CancelledError())


async def block_of_a_generator_that_is_closed(hub: Hub[int]) -> None:
    async def generator() -> AsyncGenerator[int]:
        async with hub:
            yield 1

    items = generator()
    await anext(items)
    await items.aclose()


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (block_that_is_cancelled, SharedClosedError),
        (block_of_a_generator_that_is_closed, SharedClosedError),
        (error_that_is_passed, SourceCancelledError),
    ],
)
async def test_a_hub_that_is_cancelled_cancels_nobody_who_reads(
    end: Callable[[Hub[int]], Awaitable[None]], kind: type[SourceCancelledError]
) -> None:
    hub: Hub[int] = Hub(idle="drop")

    async def loop() -> None:
        async for _ in hub.flow:
            pass

    async def block() -> None:
        async with hub.flow.open() as items:
            async for _ in items:
                pass

    reading = [asyncio.ensure_future(each) for each in (loop(), block(), hub.flow.drain())]
    recorder = Recorder(1)
    hub.subscribe(recorder)
    await idle()
    await end(hub)
    results = await asyncio.gather(*reading, return_exceptions=True)

    assert [kind] * 4 == [type(each) for each in (*results, recorder.error)]
    late = Recorder(1)
    hub.subscribe(late)
    await idle()
    assert type(late.error) is kind


async def test_a_cancelled_error_that_comes_too_late_goes_to_the_hook_as_another_failure_does() -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        hub: Hub[int] = Hub(idle="drop")
        hub.complete()
        hub.error(asyncio.CancelledError())

    assert [SourceCancelledError] == [type(each) for each in dropped]
