"""Several uses of one stream inside one subscription: what each is given, who is waited for, and when it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, SourceConsumedError, StalledError, hooks, schedulers
from reactive_aio.testing import run_virtual
from tests.subscribers import ByHand, Recorder, ended_by, idle

Use = Callable[[Flow[Any]], Flow[Any]]


def is_odd(n: int) -> bool:
    return n % 2 == 1


def is_even(n: int) -> bool:
    return n % 2 == 0


def is_none_of_them(_: int) -> bool:
    return False


def read(flow: Flow[Any], request: int = 0) -> Recorder:
    recorder = Recorder(request)
    flow.subscribe(recorder)
    return recorder


def by_hand(fn: Use, **options: Any) -> tuple[ByHand, Flow[Any]]:
    publisher = ByHand()
    return publisher, Flow.from_publisher(publisher).multicast(fn, **options)


# -- who is given what


async def test_all_uses_have_one_subscription() -> None:
    runs: list[str] = []
    numbers = Flow.range(6).do_on_subscribe(lambda: runs.append("begun"))
    pairs = numbers.multicast(lambda shared: Flow.zip(shared.filter(is_even), shared.filter(is_odd)))

    assert [(0, 1), (2, 3), (4, 5)] == await pairs.to_list()
    assert ["begun"] == runs


async def test_each_subscriber_of_the_whole_has_a_subscription_of_its_own() -> None:
    runs: list[str] = []
    numbers = Flow.range(6).do_on_subscribe(lambda: runs.append("begun"))
    both = numbers.multicast(lambda shared: shared.merge(shared))
    counts = await asyncio.gather(both.count(), both.count())

    assert (12, 12) == tuple(counts)
    assert ["begun", "begun"] == runs


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("uses", [2, 3, 20])
async def test_uses_that_begin_together_are_given_all_elements_however_short_the_turns_are(uses: int) -> None:
    rows = Flow.range(100).multicast(lambda shared: Flow.zip(*[shared] * uses))

    assert [(n,) * uses for n in range(100)] == await rows.to_list()


@pytest.mark.usefixtures("hurried")
async def test_uses_that_a_function_makes_are_given_all_elements_too() -> None:
    flow = Flow.range(100).multicast(lambda shared: Flow.range(3).flat_map(lambda n: shared.map(lambda _: n)))

    assert {0: 100, 1: 100, 2: 100} == await flow.count_by_key(lambda n: n)


async def test_a_use_behind_another_one_is_given_what_that_has_left() -> None:
    def with_header(lines: Flow[str]) -> Flow[dict[str, str]]:
        header = lines.take(1).map(lambda line: line.split(","))
        return header.concat_map(lambda names: lines.map(lambda line: dict(zip(names, line.split(","), strict=True))))

    rows = Flow.of("name,age", "anna,7", "berta,8").multicast(with_header)

    assert [{"name": "anna", "age": "7"}, {"name": "berta", "age": "8"}] == await rows.to_list()


async def test_nothing_is_asked_for_while_there_is_no_use() -> None:
    publisher, flow = by_hand(lambda shared: shared.take(1).concat(Flow.never()))
    read(flow, UNBOUNDED)
    await idle()
    publisher.next(1)
    await idle()

    assert ([1], 0) == (publisher.requests, publisher.cancels)


async def test_uses_may_be_on_other_threads() -> None:
    def sums(shared: Flow[int]) -> Flow[tuple[int, int]]:
        threaded = shared.map(lambda n: n).publish_on(schedulers.thread("elsewhere")).map(lambda n: -n)
        return Flow.zip(shared, threaded)

    assert [(n, -n) for n in range(2000)] == await Flow.range(2000).multicast(sums, lag=100).to_list()


async def test_all_uses_are_read_on_the_loop_of_the_flow() -> None:
    seen: set[str] = set()

    def elsewhere(shared: Flow[int]) -> Flow[tuple[int, int]]:
        placed = shared.do_on_next(lambda _: seen.add(threading.current_thread().name)).subscribe_on(
            schedulers.thread("elsewhere")
        )
        return Flow.zip(shared, placed)

    assert [(n, n) for n in range(2000)] == await Flow.range(2000).multicast(elsewhere, lag=10).to_list()
    assert {threading.current_thread().name} == seen


async def test_the_uses_of_a_flow_that_is_placed_elsewhere_are_read_there() -> None:
    seen: set[str] = set()

    def noting(shared: Flow[int]) -> Flow[Any]:
        return shared.do_on_next(lambda _: seen.add(threading.current_thread().name)).merge(shared)

    flow = Flow.range(2000).publish_on(schedulers.thread("feed")).multicast(noting)
    assert 4000 == await flow.count()
    assert ["feed"] == [name.split("-")[0] for name in seen]


async def test_none_is_an_element_as_any() -> None:
    assert [(None, None)] == await Flow.of(None).multicast(lambda shared: Flow.zip(shared, shared)).to_list()


async def test_a_multicast_may_be_inside_of_another_one() -> None:
    def twice(shared: Flow[int]) -> Flow[int]:
        return shared.merge(shared)

    assert (
        40
        == await Flow.range(10).multicast(lambda shared: shared.multicast(twice).merge(shared.multicast(twice))).count()
    )


# -- demand


async def test_the_flow_is_asked_for_what_the_use_wants_that_wants_most_and_the_lag_allows() -> None:
    publisher, flow = by_hand(lambda shared: shared.merge(shared.map(str), prefetch=8), lag=5)
    read(flow, 1)
    await idle()

    assert [5] == publisher.requests


async def test_the_demand_of_a_single_use_is_passed_one_for_one() -> None:
    publisher, flow = by_hand(lambda shared: shared.map(str))
    reader = read(flow)
    await idle()
    assert [] == publisher.requests

    reader.request(3)
    await idle()
    assert [3] == publisher.requests


# -- the end


async def test_the_cancel_of_the_whole_cancels_the_flow_once() -> None:
    publisher, flow = by_hand(lambda shared: Flow.zip(shared, shared))
    reader = read(flow, 1)
    await idle()
    reader.cancel()
    await idle()

    assert 1 == publisher.cancels


async def test_the_cancel_of_the_whole_cancels_a_flow_that_nobody_uses() -> None:
    publisher, flow = by_hand(lambda _: Flow.never())
    reader = read(flow, 1)
    await idle()
    reader.cancel()
    await idle()

    assert ([], 1) == (publisher.requests, publisher.cancels)


async def test_the_end_of_what_the_function_returns_is_the_end_of_the_whole() -> None:
    publisher, flow = by_hand(lambda shared: shared.take(2))
    reader = read(flow, UNBOUNDED)
    await idle()
    publisher.next(1, 2)
    await idle()

    assert (["subscribe", "next", "next", "complete"], 1) == (reader.kinds, publisher.cancels)


async def test_the_failure_of_what_the_function_returns_is_that_of_the_whole() -> None:
    publisher, flow = by_hand(lambda shared: shared.map(lambda n: 1 // n).merge(shared))
    reader = read(flow, UNBOUNDED)
    await idle()
    publisher.next(0)
    await idle()

    assert (ZeroDivisionError, 1) == (type(reader.error), publisher.cancels)


def test_the_end_comes_when_the_flow_has_been_cleaned_up() -> None:
    log: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(5)
            log.append("cleaned up")

    async def main() -> None:
        await Flow.from_async_iterable(numbers()).multicast(lambda shared: shared.take(1)).to_list()
        log.append("ended")

    run_virtual(main())
    assert ["cleaned up", "ended"] == log


def test_what_the_cleanup_of_the_flow_raises_is_raised_by_the_end() -> None:
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            raise OSError("can't be closed")

    with pytest.raises(OSError, match="can't be closed"):
        run_virtual(Flow.from_async_iterable(numbers()).multicast(lambda shared: shared.take(1)).to_list())


async def test_the_failure_of_the_flow_goes_to_all_uses_behind_the_elements() -> None:
    failure = OSError("down")

    def each(shared: Flow[int]) -> Flow[Any]:
        return Flow.zip(shared.materialize(), shared.map(str).materialize())

    first, second = await Flow.of(1).concat(Flow.error(failure)).multicast(each).to_list()
    assert [1, "1"] == [signal.item for signal in first]
    assert [failure, failure] == [signal.error for signal in second]


async def test_a_failure_that_no_use_has_heard_goes_to_the_hook() -> None:
    dropped: list[BaseException] = []
    failure = OSError("down")
    with hooks.using(on_error_dropped=dropped.append):
        publisher, flow = by_hand(lambda shared: shared.take(1).concat(Flow.never()))
        reader = read(flow, UNBOUNDED)
        await idle()
        publisher.next(1)
        await idle()
        publisher.error(failure)
        await idle()
        assert [] == dropped  # a use may still come

        reader.cancel()
        await idle()
    assert [failure] == dropped


async def test_a_failure_that_a_use_has_answered_goes_nowhere_else() -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        flow = Flow.error(OSError("down")).multicast(lambda shared: shared.on_error_resume_next(Flow.of(1)))
        assert [1] == await flow.to_list()

    assert [] == dropped


@pytest.mark.usefixtures("still")  # a turn whose time is up would have the gate close later
async def test_what_a_use_has_asked_for_and_not_given_on_is_discarded_when_it_leaves() -> None:
    lost: list[object] = []
    gate = ByHand()
    with hooks.using(on_discard=lost.append):
        publisher, flow = by_hand(lambda shared: shared.take_until_other(Flow.from_publisher(gate)))
        reader = read(flow, 9)
        await idle()
        publisher.next(1, 2)
        gate.complete()
        await idle()
        publisher.next(3)
        await idle()

    assert (["subscribe", "complete"], [1, 2, 3]) == (reader.kinds, lost)


async def test_the_flow_of_the_uses_can_not_be_read_behind_their_end() -> None:
    kept: list[Flow[int]] = []

    def keep(shared: Flow[int]) -> Flow[int]:
        kept.append(shared)
        return shared

    await Flow.of(1).multicast(keep).to_list()
    assert isinstance(await ended_by(kept[0]), SourceConsumedError)


# -- the function


async def test_what_the_function_raises_fails_the_flow_with_a_note() -> None:
    def broken(_: Flow[int]) -> Flow[int]:
        raise OSError("broken")

    publisher, flow = by_hand(broken)
    failure = await ended_by(flow)

    assert ("broken", []) == (str(failure), publisher.subscribers)
    assert any("multicast(broken" in note and __file__ in note for note in failure.__notes__)


async def test_a_stop_iteration_of_the_function_is_no_end() -> None:
    assert isinstance(await ended_by(Flow.of(1).multicast(lambda _: next(iter(())))), RuntimeError)


@pytest.mark.parametrize(("given", "name"), [(None, "NoneType"), ([1], "list")])
async def test_a_function_that_does_not_return_a_flow_is_refused_by_name(given: Any, name: str) -> None:
    failure = await ended_by(Flow.of(1).multicast(lambda _: given))

    assert f"multicast() takes a function that returns a flow, not {name}" == str(failure)


@pytest.mark.parametrize(
    ("fn", "options", "text"),
    [
        (3, {}, r"multicast\(\) takes a function, not int"),
        (asyncio.sleep, {}, "is async def"),
        (is_odd, {"lag": 0}, "lag must be at least 1"),
        (is_odd, {"stall_after": 0}, "stall_after must be a finite number above 0"),
    ],
)
def test_what_can_not_be_is_refused_when_the_flow_is_built(fn: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        Flow.of(1).multicast(fn, **options)


user: ContextVar[str] = ContextVar("user", default="nobody")


async def test_the_function_and_the_flow_see_the_context_of_the_subscriber() -> None:
    def seen(shared: Flow[str]) -> Flow[tuple[str, str]]:
        inside = user.get()
        return shared.map(lambda outside: (outside, inside))

    flow = Flow.of(1).map(lambda _: user.get()).multicast(seen)
    user.set("anna")

    assert [("anna", "anna")] == await flow.to_list()


async def test_what_the_function_returns_may_be_as_deep_as_any_flow() -> None:
    def deep(shared: Flow[int]) -> Flow[int]:
        for _ in range(5000):
            shared = shared.concat(Flow.empty())
        return shared

    assert [1, 2] == await Flow.of(1, 2).multicast(deep).to_list()


# -- a use that waits for another one, which does not go on


def zipped(*tests: Callable[[int], bool]) -> Use:
    return lambda shared: Flow.zip(*[shared.filter(test) for test in tests])


def test_a_stall_is_told_by_the_names_of_those_who_wait_and_are_waited_for() -> None:
    flow = Flow.range(10_000).multicast(zipped(is_odd, is_none_of_them), lag=50, stall_after=3.0)

    async def main() -> float:
        with pytest.raises(StalledError) as stalled:
            await flow.to_list()
        text = str(stalled.value)
        assert "use 2 (filter(is_none_of_them)) waits for elements" in text
        assert "use 1 (filter(is_odd)) requests none. It is 50 elements behind" in text
        assert f"multicast(<lambda>, lag=50), chained at {__file__}" in text
        return asyncio.get_running_loop().time()

    assert 3.0 == run_virtual(main())


def test_a_stalled_flow_is_cancelled() -> None:
    cancels: list[str] = []
    numbers = Flow.range(10_000).do_on_cancel(lambda: cancels.append("cancelled"))
    flow = numbers.multicast(zipped(is_odd, is_none_of_them), lag=50, stall_after=3.0)

    with pytest.raises(StalledError):
        run_virtual(flow.to_list())
    assert ["cancelled"] == cancels


def test_without_a_time_it_waits() -> None:
    flow = Flow.range(10_000).multicast(zipped(is_odd, is_none_of_them), lag=50)

    async def main() -> bool:
        task = asyncio.ensure_future(flow.to_list())
        await asyncio.sleep(1_000_000)
        try:
            return task.done()
        finally:
            task.cancel()

    assert not run_virtual(main())


def test_it_is_no_stall_that_nobody_wants_what_comes_of_it() -> None:
    flow = Flow.range(10_000).multicast(zipped(is_odd, lambda n: n == 0), lag=50, stall_after=3.0)

    async def main() -> float:
        async with flow.open() as rows:
            assert (1, 0) == await anext(rows)
            await asyncio.sleep(1000)
            with pytest.raises(StalledError):
                await anext(rows)
        return asyncio.get_running_loop().time()

    assert 1003 >= run_virtual(main()) > 1000


def test_it_is_no_stall_while_something_moves() -> None:
    async def after_two_seconds(n: int) -> int:
        await asyncio.sleep(2)
        return n

    def slow_and_fast(shared: Flow[int]) -> Flow[int]:
        return shared.map_async(after_two_seconds, max_concurrency=1).merge(shared)

    flow = Flow.range(100).multicast(slow_and_fast, lag=5, stall_after=3.0)

    assert 200 == run_virtual(flow.count())


def test_it_is_no_stall_that_the_flow_has_nothing_to_give() -> None:
    flow = (
        Flow.of(1)
        .concat(Flow.timer(100).map(lambda _: 2))
        .multicast(lambda shared: Flow.zip(shared, shared), lag=1, stall_after=3.0)
    )

    assert [(1, 1), (2, 2)] == run_virtual(flow.to_list())
