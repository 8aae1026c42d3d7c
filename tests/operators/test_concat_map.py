"""concat_map and concat_map_eager: a flow for each element, and their elements in the order of these."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks
from reactive_aio._core import budgets
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle

Apply = Callable[[Flow[Any], Callable[[Any], Any]], Flow[Any]]
both = pytest.mark.parametrize("apply", [Flow.concat_map, Flow.concat_map_eager], ids=["lazy", "eager"])


def nested(outer: list[int]) -> list[int]:
    """The same as two loops."""
    return [100 * n + k for n in outer for k in range(n % 7)]


@both
async def test_it_emits_what_two_nested_loops_do(apply: Apply) -> None:
    flow = apply(Flow.range(60), lambda n: Flow.range(100 * n, 100 * n + n % 7))

    assert nested([*range(60)]) == await flow.to_list()


@pytest.mark.parametrize("max_concurrency", [1, 2, 100])
@pytest.mark.parametrize("prefetch", [1, 3])
@pytest.mark.parametrize("demand", [1, 4])
async def test_read_ahead_it_does_so_for_any_bounds_and_demand(
    max_concurrency: int, prefetch: int, demand: int
) -> None:
    flow = Flow.range(20).concat_map_eager(
        lambda n: Flow.range(100 * n, 100 * n + n % 7), max_concurrency=max_concurrency, prefetch=prefetch
    )
    subscriber = Recorder(demand)
    flow.subscribe(subscriber)
    while not subscriber.over.is_set():
        await idle()
        assert len(subscriber.items) % demand == 0 or subscriber.over.is_set()
        subscriber.request(demand)

    assert nested([*range(20)]) == subscriber.items


@both
async def test_the_failure_of_a_flow_comes_at_its_place(apply: Apply) -> None:
    def inner(n: int) -> Flow[Any]:
        return Flow.of(n, -n).concat(Flow.error(OSError("down"))) if n == 2 else Flow.of(n, -n)

    subscriber = Recorder(UNBOUNDED)
    apply(Flow.of(1, 2, 3), inner).subscribe(subscriber)
    await idle()

    assert [1, -1, 2, -2] == subscriber.items
    assert "down" == str(subscriber.error)


@both
async def test_the_failure_of_the_function_comes_at_its_place(apply: Apply) -> None:
    subscriber = Recorder(1)
    apply(Flow.of(1, 2, 0, 4), lambda n: Flow.of(n, 1 // n)).subscribe(subscriber)
    await idle()
    assert [1] == subscriber.items
    subscriber.request(3)
    await idle()
    if "error" not in subscriber.kinds:
        subscriber.request(1)
        await idle()

    assert [1, 1, 2, 0] == subscriber.items
    assert isinstance(subscriber.error, ZeroDivisionError)


@both
async def test_the_failure_of_the_outer_flow_stands_behind_the_flow_of_its_last_element(apply: Apply) -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder(UNBOUNDED)
    apply(Flow.from_publisher(outer), lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    outer.last.error(OSError("down"))
    await idle()
    assert ["subscribe"] == subscriber.kinds

    inner.last.next("a")
    inner.last.complete()
    await idle()
    assert ["a"] == subscriber.items
    assert "down" == str(subscriber.error)


@pytest.mark.parametrize("fails", [True, False])
@both
async def test_the_end_of_the_outer_flow_waits_though_it_has_come_with_the_last_element(
    apply: Apply, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder(UNBOUNDED)
    apply(Flow.from_publisher(outer), lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    with monkeypatch.context() as busy:
        busy.setattr(budgets, "TURN", 0.0)  # the machine is: no step is made
        outer.last.next(1)
        if fails:
            outer.last.error(OSError("down"))
        else:
            outer.last.complete()
        await idle()
    await idle()
    assert ["subscribe"] == subscriber.kinds

    inner.last.next("a")
    inner.last.complete()
    await idle()
    assert ["subscribe", "next", "error" if fails else "complete"] == subscriber.kinds


# -- one at a time


async def test_an_element_is_asked_for_when_it_is_wanted_and_the_flow_before_has_ended() -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder()
    Flow.from_publisher(outer).concat_map(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    assert [] == outer.last.requests

    subscriber.request(2)
    await idle()
    assert [1] == outer.last.requests

    outer.last.next(1)
    await idle()
    inner.last.next("a")
    await idle()
    assert [1] == outer.last.requests

    inner.last.complete()
    await idle()
    assert [1, 1] == outer.last.requests


async def test_no_element_is_asked_for_while_nothing_more_is_wanted() -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder(1)
    Flow.from_publisher(outer).concat_map(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    await idle()
    inner.last.next("a")
    inner.last.complete()
    await idle()
    assert [1] == outer.last.requests

    subscriber.request(1)
    await idle()
    assert [1, 1] == outer.last.requests


async def test_what_a_flow_leaves_of_the_demand_is_asked_of_the_next_once() -> None:
    inner, subscriber = Sessions(), Recorder(5)
    Flow.range(3).concat_map(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    inner.last.next("a", "b")
    inner.last.complete()
    await idle()
    subscriber.request(1)
    await idle()
    inner.last.complete()
    await idle()

    assert [[5], [3, 1], [4]] == inner.requests


async def test_the_function_is_called_when_its_flow_is_wanted_and_not_sooner() -> None:
    called: list[int] = []
    flow = Flow.range(10).concat_map(lambda n: called.append(n) or Flow.of(n, n))

    assert [0, 0, 1] == await flow.take(3).to_list()
    assert [0, 1] == called


async def test_the_end_of_given_elements_needs_no_demand_of_its_own() -> None:
    subscriber = Recorder(3)
    Flow.of(1, 2, 3).concat_map(Flow.of).subscribe(subscriber)
    await idle()

    assert ([1, 2, 3], True) == (subscriber.items, subscriber.over.is_set())


async def test_given_elements_that_are_not_wanted_stay_where_they_are() -> None:
    discarded: list[int] = []
    subscriber = Recorder(2)
    with hooks.using(on_discard=discarded.append):
        Flow.of(1, 2, 3, 4).concat_map(Flow.of).subscribe(subscriber)
        await idle()
        subscriber.subscription.cancel()
        await idle()

    assert ([1, 2], []) == (subscriber.items, discarded)


# -- read ahead


def test_read_ahead_flows_wait_for_time_together() -> None:
    def late(n: float) -> Flow[float]:
        return Flow.interval(n).take(1).map(lambda _: n)

    async def main(flow: Flow[float]) -> tuple[list[float], float]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        return await flow.to_list(), loop.time() - started

    outer = Flow.of(3.0, 1.0, 2.0, 4.0)
    assert ([3, 1, 2, 4], 10) == run_virtual(main(outer.concat_map(late)))
    assert ([3, 1, 2, 4], 4) == run_virtual(main(outer.concat_map_eager(late)))
    assert ([3, 1, 2, 4], 7) == run_virtual(main(outer.concat_map_eager(late, max_concurrency=2)))


async def test_no_more_flows_are_read_at_the_same_time_than_concurrency_says() -> None:
    inner, subscriber = Sessions(), Recorder(UNBOUNDED)
    Flow.range(9).concat_map_eager(lambda _: Flow.from_publisher(inner), max_concurrency=3, prefetch=5).subscribe(
        subscriber
    )
    await idle()
    inner.all[1].next("second")
    inner.all[1].complete()
    await idle()
    assert 3 == len(inner.all), "the second has not been emitted to its end"

    inner.all[0].complete()
    await idle()
    assert 5 == len(inner.all)
    assert ["second"] == subscriber.items
    assert [[5]] * 5 == inner.requests
    subscriber.cancel()


async def test_what_is_read_ahead_goes_to_the_hook_when_a_flow_before_it_fails() -> None:
    inner, subscriber, discarded, dropped = Sessions(), Recorder(9), list[object](), list[BaseException]()
    with hooks.using(on_discard=discarded.append, on_error_dropped=dropped.append):
        Flow.range(3).concat_map_eager(lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    inner.all[1].next("kept")
    inner.all[1].error(OSError("kept as well"))
    inner.all[2].next("kept")
    inner.all[0].error(OSError("first"))
    await idle()

    assert "first" == str(subscriber.error)
    assert ["kept", "kept"] == discarded
    assert ["kept as well"] == [str(error) for error in dropped]
    assert [0, 0, 1] == [session.cancels for session in inner.all]


async def test_nothing_is_mapped_behind_a_function_that_failed() -> None:
    called: list[int] = []

    def fail_at_two(n: int) -> Flow[int]:
        called.append(n)
        return Flow.of(n) if n < 2 else Flow.of(1 // 0)

    subscriber = Recorder()
    Flow.range(100).concat_map_eager(fail_at_two).subscribe(subscriber)
    await idle()

    assert [0, 1, 2] == called
    subscriber.cancel()


@pytest.mark.parametrize("operator", [Flow[int].concat_map, lambda flow, read: flow.flat_map(read, max_concurrency=1)])
@pytest.mark.parametrize("retried", [False, True])
async def test_no_flow_is_read_behind_the_last_one_that_is_needed_though_the_time_of_the_turn_is_up(
    operator: Any, retried: bool, still: list[float]
) -> None:
    pages: list[int] = []

    async def fetch(page: int) -> int:
        pages.append(page)
        await asyncio.sleep(0)
        return page

    def read(page: int) -> Flow[int]:
        fetched = Flow.from_awaitable(lambda: fetch(page))
        return fetched.retry(1) if retried else fetched

    def is_full(page: int) -> bool:
        still[0] += 1.0
        return page < 3

    assert [0, 1, 2] == await operator(Flow.range(100), read).take_while(is_full).to_list()
    assert [0, 1, 2, 3] == pages
