"""Shared flows: who comes and goes, and when."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from attrs import define

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio.testing import run_virtual
from tests.sharing.driven import Counted, Hot, reads
from tests.subscribers import Recorder, idle


@pytest.mark.parametrize(("replay", "given"), [(0, []), (1, [4]), (3, [2, 3, 4]), (9, [0, 1, 2, 3, 4])])
async def test_one_who_comes_late_begins_with_the_replay(replay: int, given: list[int]) -> None:
    shared = Flow.range(5).concat(Flow.never()).share(replay=replay)
    reads(shared, UNBOUNDED)
    await idle()
    late = reads(shared, UNBOUNDED)
    await idle()

    assert given == late.items


async def test_one_who_comes_late_begins_with_the_replay_however_slow_the_others_are() -> None:
    shared = Flow.range(100).share(lag=50, replay=2)
    reads(shared, UNBOUNDED)
    reads(shared)
    await idle()
    late = reads(shared, 2)
    await idle()

    assert [48, 49] == late.items


async def test_the_slowest_does_not_hold_up_the_others_when_it_has_left() -> None:
    shared = Flow.range(100).share(lag=5)
    fast, slow = reads(shared, UNBOUNDED), reads(shared)
    await idle()
    slow.cancel()
    await idle()

    assert 100 == len(fast.items)


async def test_the_fastest_leaves_and_the_slow_one_goes_on() -> None:
    source = Counted(Flow.range(100))
    shared = source.flow().share(lag=5)
    fast, slow = reads(shared, UNBOUNDED), reads(shared)
    await idle()
    fast.cancel()
    await idle()
    slow.request(8)
    await idle()

    assert (list(range(8)), [5, 3]) == (slow.items, source.asked)


async def test_the_run_is_cancelled_with_the_last_who_leaves_and_begins_anew_with_the_next() -> None:
    source = Counted(Flow.range(100))
    shared = source.flow().share()
    one, two = reads(shared, 3), reads(shared, 3)
    await idle()
    one.cancel()
    await idle()
    assert (0, 1) == (source.cancels, shared.subscribers)

    two.cancel()
    await idle()
    assert (1, 0) == (source.cancels, shared.subscribers)

    assert [0] == await shared.take(1).to_list()
    assert 2 == source.runs


def test_the_last_who_leaves_has_left_when_the_cleanup_is_done() -> None:
    log: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(5)
            log.append("cleaned up")

    async def main() -> None:
        shared = Flow.from_async_iterable(numbers()).share(start=2)
        await asyncio.gather(shared.take(2).to_list(), shared.take(2).to_list())
        log.append("left")

    run_virtual(main())
    assert ["cleaned up", "left"] == log


def test_the_next_run_begins_when_the_cleanup_of_the_one_before_is_done() -> None:
    log: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        log.append("begun")
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(5)
            log.append("cleaned up")

    @define
    class Numbers:
        def __aiter__(self) -> AsyncIterator[int]:
            return numbers()

    async def main() -> list[list[int]]:
        shared = Flow.from_async_iterable(Numbers()).share()

        async def later() -> list[int]:
            await asyncio.sleep(1)
            return await shared.to_list()

        return [*await asyncio.gather(shared.take(1).to_list(), later())]

    assert [[1], [1, 2]] == run_virtual(main())
    assert ["begun", "cleaned up"] * 2 == log


async def test_what_nobody_has_had_is_discarded_with_the_last_who_leaves() -> None:
    lost: list[object] = []
    with hooks.using(on_discard=lost.append):
        hot = Hot.of(lag=10)
        one, two = reads(hot.shared, 5), reads(hot.shared, 1)
        await idle()
        hot.publisher.next(1, 2, 3)
        await idle()
        two.cancel()
        await idle()
        assert [] == lost

        one.cancel()
        hot.publisher.next(4)
        await idle()
    assert (1, [4]) == (hot.publisher.cancels, lost)


# -- from inside of signals and in one turn


@pytest.mark.parametrize("moment", ["on_subscribe", "on_next", "on_complete", "on_error"])
async def test_one_can_subscribe_from_inside_any_signal(moment: str) -> None:
    end: Flow[int] = Flow.error(OSError("down")) if moment == "on_error" else Flow.empty()
    shared = Flow.of(1, 2).concat(end).share(replay=2)
    inner: list[Recorder] = []

    class Curious(Recorder):
        def on_subscribe(self, subscription: Any) -> None:
            super().on_subscribe(subscription)
            self.at("on_subscribe")

        def on_next(self, item: Any) -> None:
            super().on_next(item)
            self.at("on_next")

        def on_complete(self) -> None:
            super().on_complete()
            self.at("on_complete")

        def on_error(self, error: BaseException) -> None:
            super().on_error(error)
            self.at("on_error")

        def at(self, now: str) -> None:
            if now == moment and not inner:
                inner.append(reads(shared, UNBOUNDED))

    outer = Curious(UNBOUNDED)
    shared.subscribe(outer)
    await idle()

    assert [[1, 2], [1, 2]] == [outer.items, inner[0].items]


async def test_one_can_subscribe_from_inside_its_own_cancel() -> None:
    """Whether it comes before the cancel has gone up, or behind it, depends on how much time the turn has left."""
    source, inner = Counted(Flow.range(9)), list[Recorder]()
    shared = source.flow().share()
    leaving = reads(shared.do_on_cancel(lambda: inner.append(reads(shared, UNBOUNDED))), 2)
    await idle()
    leaving.cancel()
    await idle()
    await inner[0].over.wait()

    assert (inner[0].items, source.runs) in [(list(range(9)), 2), (list(range(2, 9)), 1)]
    assert "complete" == inner[0].kinds[-1]


async def test_one_can_cancel_from_on_subscribe() -> None:
    class Leaving(Recorder):
        def on_subscribe(self, subscription: Any) -> None:
            subscription.cancel()

    source = Counted(Flow.range(3))
    shared = source.flow().share()
    shared.subscribe(Leaving())
    await idle()

    assert (0, [0, 1, 2]) == (shared.subscribers, await shared.to_list())


@pytest.mark.parametrize("comes_first", [True, False])
async def test_one_comes_in_the_turn_in_which_the_last_leaves(comes_first: bool) -> None:
    shared = Flow.range(10).share()
    one = reads(shared, 1)
    await idle()
    if comes_first:
        two = reads(shared, UNBOUNDED)
        one.cancel()
    else:
        one.cancel()
        two = reads(shared, UNBOUNDED)
    await idle()

    assert ("complete", 9) == (two.kinds[-1], two.items[-1])


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_the_last_leaves_in_the_turn_in_which_upstream_ends(leaves_first: bool) -> None:
    hot = Hot.of()
    last = reads(hot.shared, 1)
    await idle()
    if leaves_first:
        last.cancel()
        hot.publisher.complete()
    else:
        hot.publisher.complete()
        last.cancel()
    await idle()
    assert (0, ["subscribe"]) == (hot.shared.subscribers, last.kinds)

    following = reads(hot.shared, 1)
    await idle()
    hot.publisher.next("anew")
    await idle()
    assert (["anew"], 2) == (following.items, len(hot.publisher.subscribers))


async def test_an_iterator_that_nobody_holds_any_more_has_left() -> None:
    source = Counted(Flow.range(100))
    shared = source.flow().share()
    items = aiter(shared)
    assert (0, 1) == (await anext(items), shared.subscribers)

    del items
    gc.collect()
    await idle()
    assert (0, 1) == (shared.subscribers, source.cancels)


async def test_a_cleanup_that_subscribes_to_what_it_cleans_up_is_refused_by_name() -> None:
    refused: list[BaseException] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            try:
                await shared.to_list()
            except RuntimeError as error:
                refused.append(error)

    shared = Flow.from_async_iterable(numbers()).share()
    assert [1] == await asyncio.wait_for(shared.take(1).to_list(), 30.0)
    assert "would wait for its own end" in str(refused[0])
