"""Shared flows: one run for all who subscribe meanwhile, under the demand of each."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, Shared, SourceCancelledError, hooks, schedulers
from reactive_aio.testing import TestPublisher, no_leaks, run_virtual
from tests.subscribers import ByHand, Recorder, idle


@define(eq=False)
class Counted:
    """A source that says how often it was subscribed to, and what was asked of it."""

    source: Flow[Any]
    runs: int = 0
    asked: list[int] = field(factory=list)
    cancels: int = 0

    def flow(self) -> Flow[Any]:
        return self.source.do_on_subscribe(self._begun).do_on_request(self.asked.append).do_on_cancel(self._cancelled)

    def _begun(self) -> None:
        self.runs += 1

    def _cancelled(self) -> None:
        self.cancels += 1


def reads(shared: Flow[Any], request: int = 0) -> Recorder:
    """Have somebody subscribe who asks for so much at once."""
    recorder = Recorder(request)
    shared.subscribe(recorder)
    return recorder


@define
class Hot:
    """A shared source driven by hand."""

    publisher: ByHand
    shared: Shared[Any]

    @classmethod
    def of(cls, **options: Any) -> Hot:
        publisher = ByHand()
        return cls(publisher, Flow.from_publisher(publisher).share(**options))


# -- who is given what


async def test_each_of_several_subscribers_is_given_all_elements_of_one_run() -> None:
    source = Counted(Flow.range(1000))
    shared = source.flow().share(start=3)

    sums = [*await asyncio.gather(shared.sum(), shared.map(lambda n: -n).sum(), shared.count())]
    assert ([499500, -499500, 1000], 1) == (sums, source.runs)


@pytest.mark.parametrize("source", [Flow.of(1), Flow.range(1000), Flow.empty()])
async def test_those_who_subscribe_in_one_turn_share_a_source_that_is_ready(source: Flow[Any]) -> None:
    counted = Counted(source)
    shared = counted.flow().share()
    first, second = await asyncio.gather(shared.to_list(), shared.to_list())

    assert (1, first) == (counted.runs, second)


async def test_none_is_an_element_as_any() -> None:
    shared = Flow.of(None, None).share(start=2)

    assert [2, 2] == [*await asyncio.gather(shared.count(), shared.count())]


async def test_a_shared_flow_can_be_shared() -> None:
    shared = Flow.range(500).share(start=2).map(str).share(start=1)
    other = Flow.range(500).share(lag=3).share(lag=5)

    assert [500, 500] == [*await asyncio.gather(other.count(), other.count())]
    one = asyncio.ensure_future(shared.count())
    await idle()
    assert not one.done()  # the outer run is one subscriber of the inner one, which waits for two
    one.cancel()


# -- demand


async def test_upstream_is_asked_for_what_the_fastest_wants() -> None:
    hot = Hot.of(lag=10)
    first, second = reads(hot.shared), reads(hot.shared)
    await idle()
    assert [] == hot.publisher.requests

    first.request(3)
    await idle()
    second.request(2)
    await idle()
    assert [3] == hot.publisher.requests

    second.request(5)
    await idle()
    assert [3, 4] == hot.publisher.requests


async def test_the_fastest_is_no_more_than_the_lag_ahead_of_the_slowest() -> None:
    source = Counted(Flow.range(100))
    shared = source.flow().share(lag=5)
    fast, slow = reads(shared, UNBOUNDED), reads(shared)
    await idle()
    assert (list(range(5)), [], [5]) == (fast.items, slow.items, source.asked)

    slow.request(3)
    await idle()
    assert (list(range(8)), [0, 1, 2]) == (fast.items, slow.items)


async def test_a_window_of_a_few_elements_is_asked_for_in_bulk_but_not_where_somebody_waits() -> None:
    hot = Hot.of(lag=100)
    reads(hot.shared, UNBOUNDED)
    slow = reads(hot.shared)
    await idle()
    hot.publisher.next(*range(60))
    await idle()
    slow.request(1)
    await idle()
    assert [100] == hot.publisher.requests  # forty are on their way

    hot.publisher.next(*range(40))
    await idle()
    assert [100, 1] == hot.publisher.requests  # none is


async def test_a_lag_of_one_is_lockstep() -> None:
    shared = Flow.range(100).share(lag=1)
    one, other = reads(shared, UNBOUNDED), reads(shared)
    await idle()
    for n in range(1, 4):
        assert (list(range(n)), list(range(n - 1))) == (one.items, other.items)
        other.request(1)
        await idle()


async def test_nothing_is_asked_for_before_so_many_have_come() -> None:
    source = Counted(Flow.range(10))
    shared = source.flow().share(start=3)
    one, two = reads(shared, UNBOUNDED), reads(shared, UNBOUNDED)
    await idle()
    two.cancel()
    await idle()
    reads(shared, UNBOUNDED)
    await idle()
    assert ([], []) == (source.asked, one.items)

    reads(shared, 1)
    await idle()
    assert 10 == len(one.items)


async def test_a_prefetch_is_read_ahead_for_each_subscriber() -> None:
    source = Counted(Flow.range(100))
    shared = source.flow().share(prefetch=8)
    reads(shared)
    await idle()

    assert [8] == source.asked


# -- who comes and goes


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


# -- the end


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


@pytest.mark.parametrize("moment", ["on_subscribe", "on_next", "on_complete"])
async def test_one_can_subscribe_from_inside_any_signal(moment: str) -> None:
    shared = Flow.of(1, 2).share(replay=2)
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

        def at(self, now: str) -> None:
            if now == moment and not inner:
                inner.append(reads(shared, UNBOUNDED))

    outer = Curious(UNBOUNDED)
    shared.subscribe(outer)
    await idle()

    assert [[1, 2], [1, 2]] == [outer.items, inner[0].items]


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


def test_no_timer_is_left_for_a_replay_that_nobody_can_be_given() -> None:
    async def main() -> None:
        async with no_leaks():
            assert [0, 1, 2] == await Flow.range(3).share(replay=3, replay_for=1000.0).to_list()

    run_virtual(main())


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


# -- held open


async def test_a_run_that_is_held_open_pauses_when_nobody_is_there() -> None:
    source = Counted(Flow.range(100))
    async with source.flow().share() as shared:
        assert [0, 1, 2] == await shared.take(3).to_list()
        await idle()
        assert [3] == source.asked

        assert [3, 4] == await shared.take(2).to_list()
    assert (1, 1) == (source.runs, source.cancels)


async def test_one_who_comes_to_a_run_that_is_held_open_begins_with_what_nobody_has_had() -> None:
    async with Flow.range(100).share(lag=10) as shared:
        fast, slow = reads(shared, UNBOUNDED), reads(shared, 2)
        await idle()
        fast.cancel()
        slow.cancel()
        await idle()
        assert [12, 13] == await shared.take(2).to_list()


async def test_a_replay_goes_before_what_nobody_has_had() -> None:
    async with Flow.range(100).share(replay=2) as shared:
        assert [0, 1, 2] == await shared.take(3).to_list()
        assert [1, 2, 3] == await shared.take(3).to_list()


async def test_who_still_reads_when_the_block_is_left_fails_behind_what_is_kept() -> None:
    async with Flow.of(1, 2).concat(Flow.never()).share() as shared:
        fast, slow = reads(shared, UNBOUNDED), reads(shared)
        await idle()
    slow.request(2)
    await idle()

    assert [[1, 2], [1, 2]] == [fast.items, slow.items]
    assert isinstance(fast.error, SourceCancelledError)
    assert isinstance(slow.error, SourceCancelledError)


def test_the_block_is_left_when_the_cleanup_is_done() -> None:
    log: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            log.append("cleaned up")

    async def main() -> None:
        async with Flow.from_async_iterable(numbers()).share() as shared:
            await shared.take(1).to_list()
        log.append("left")

    run_virtual(main())
    assert ["cleaned up", "left"] == log


async def test_one_block_at_a_time_holds_a_flow_open() -> None:
    shared = Flow.of(1).share()
    async with shared:
        with pytest.raises(RuntimeError, match="held open already"):
            await shared.__aenter__()


# -- with nobody there, for a while


async def test_a_linger_needs_a_block() -> None:
    with pytest.raises(RuntimeError, match="needs `async with`"):
        await Flow.of(1).share(linger=1.0).to_list()


@pytest.mark.parametrize(("absent", "runs"), [(4.9, 1), (5.1, 2)])
def test_a_run_lingers_for_so_long(absent: float, runs: int) -> None:
    source = Counted(Flow.range(100))

    async def main() -> None:
        async with source.flow().share(linger=5.0) as shared:
            for _ in range(2):
                await shared.take(1).to_list()
                await asyncio.sleep(absent)
            assert 1 == source.runs or absent > 5.0
            await shared.take(1).to_list()

    run_virtual(main())
    assert runs == source.runs or (runs, source.runs) == (2, 3)


def test_the_time_to_linger_begins_anew_with_each_who_leaves() -> None:
    source = Counted(Flow.range(100))

    async def main() -> None:
        async with source.flow().share(linger=5.0) as shared:
            await shared.take(1).to_list()
            await asyncio.sleep(3.0)
            await shared.take(1).to_list()
            await asyncio.sleep(3.0)
            await shared.take(1).to_list()

    run_virtual(main())
    assert 1 == source.runs


# -- what is kept


class Thing:
    """Something that can be seen to be gone."""


def alive(made: list[weakref.ref[Thing]]) -> int:
    return sum(each() is not None for each in made)


def watched(made: list[weakref.ref[Thing]]) -> Callable[[Thing], None]:
    return lambda thing: made.append(weakref.ref(thing))


@pytest.mark.parametrize("replay", [0, 1, 3])
async def test_a_replay_of_n_keeps_n(replay: int) -> None:
    made: list[weakref.ref[Thing]] = []
    gc.disable()
    try:
        things = Flow.range(10).map(lambda _: Thing()).do_on_next(watched(made))
        async with things.concat(Flow.never()).share(replay=replay) as shared:
            await shared.take(10).count()
            assert replay == alive(made)
    finally:
        gc.enable()


def test_a_replay_is_forgotten_by_age_though_nothing_happens() -> None:
    made: list[weakref.ref[Thing]] = []

    async def main() -> None:
        publisher = ByHand()
        async with Flow.from_publisher(publisher).share(replay=9, replay_for=5.0) as shared:
            reader = asyncio.ensure_future(shared.take(4).count())
            await idle()
            things = [Thing() for _ in range(4)]
            made.extend(map(weakref.ref, things))
            publisher.next(*things)
            things.clear()  # so that only the replay refers to them
            assert 4 == await reader
            await asyncio.sleep(4.9)
            assert 4 == alive(made)
            await asyncio.sleep(0.2)
            assert 0 == alive(made)
            late = reads(shared, UNBOUNDED)
            await idle()
            assert [] == late.items

    gc.disable()
    try:
        run_virtual(main())
    finally:
        gc.enable()


# -- where it runs

user: ContextVar[str] = ContextVar("user", default="nobody")


async def test_the_shared_part_runs_in_the_context_of_whoever_shares_and_the_rest_in_that_of_each_subscriber() -> None:
    async def as_user(name: str, flow: Flow[Any]) -> list[Any]:
        user.set(name)
        return await flow.map(lambda seen: (seen, user.get())).to_list()

    user.set("owner")
    shared = Flow.of(1).map(lambda _: user.get()).share(start=2)
    both = [*await asyncio.gather(as_user("anna", shared), as_user("berta", shared))]

    assert [[("owner", "anna")], [("owner", "berta")]] == both


async def test_what_is_held_open_runs_in_the_context_of_the_block() -> None:
    shared = Flow.of(1).map(lambda _: user.get()).share()
    user.set("block")
    async with shared:
        user.set("later")
        assert ["block"] == await shared.to_list()


async def test_subscribers_may_be_on_other_threads() -> None:
    threads = [schedulers.thread(f"reader-{n}") for n in range(3)]
    shared = Flow.range(5000).share(lag=100, start=4)
    flows = [shared, *(shared.subscribe_on(each).map(lambda n: n) for each in threads)]

    assert [12497500] * 4 == [*await asyncio.gather(*[flow.sum() for flow in flows])]


async def test_the_shared_part_runs_where_it_is_placed() -> None:
    import threading

    seen: set[str] = set()
    shared = (
        Flow.range(100)
        .do_on_next(lambda _: seen.add(threading.current_thread().name))
        .subscribe_on(schedulers.thread("feed"))
        .share(start=2)
    )
    assert [4950, 4950] == [*await asyncio.gather(shared.sum(), shared.sum())]
    assert 1 == len(seen)
    assert "feed" in seen.pop()


# -- what other libraries do


async def test_a_publisher_of_somebody_elses_is_shared_under_its_rules() -> None:
    publisher: TestPublisher[int] = TestPublisher()
    shared = Flow.from_publisher(publisher).share()
    one, two = reads(shared, 2), reads(shared, 3)
    await idle()
    publisher.next(1, 2, 3)
    publisher.complete()
    await idle()
    assert ([1, 2], [1, 2, 3], "complete") == (one.items, two.items, two.kinds[-1])
