"""Flows of given elements that a combinator reads: they signal as a region would, and none is made for them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from weakref import WeakSet

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._core.guard import Failed
from reactive_aio._plan import FlowLike
from reactive_aio._runtime import assemble
from reactive_aio._runtime.assemble import RegionHost
from reactive_aio._runtime.given import Given
from reactive_aio._runtime.rows import for_each_row
from tests.subscribers import Recorder, idle

TURNS = 3
"""More than one, since the first one begins the flow."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Those that are made, and the elements that are passed on without."""
    found: list[object] = []
    given = RegionHost.given

    def make(*arguments: Any) -> Given:
        subscription = Given(*arguments)
        found.append(subscription)
        return subscription

    def pass_on(host: RegionHost, flow: FlowLike, most: int) -> list[Any] | Failed | None:
        items = given(host, flow, most)
        if items is not None:
            found.append(items)
        return items

    monkeypatch.setattr(assemble, "Given", make)
    monkeypatch.setattr(RegionHost, "given", pass_on)
    return found


COMBINED: dict[str, Flow[int]] = {
    "concat": Flow.of(1, 2).concat(Flow.range(3, 5), Flow.empty(), Flow.from_iterable([5])),
    "concat_map": Flow.of(1, 3, 5).concat_map(lambda n: Flow.range(n, min(n + 2, 6))),
    "flat_map": Flow.of(1, 3, 5).flat_map(lambda n: Flow.range(n, min(n + 2, 6)), max_concurrency=1),
    "concat_eager": Flow.concat_eager(Flow.of(1, 2), Flow.of(3, 4), Flow.of(5)),
    "zip": Flow.of(1, 2, 3, 4, 5).zip(Flow.range(9)).map(lambda pair: pair[0]),
    "repeat": Flow.of(1).repeat(3).scan(lambda total, n: total + n).concat(Flow.of(4, 5)),
    "switch_if_empty": Flow[int].empty().switch_if_empty(Flow.range(1, 6)),
}


@pytest.mark.parametrize("name", COMBINED)
async def test_they_signal_all_under_whatever_demand(name: str, made: list[object]) -> None:
    assert [1, 2, 3, 4, 5] == await COMBINED[name].to_list()

    recorder = Recorder()
    COMBINED[name].subscribe(recorder)
    for n in range(1, 6):
        recorder.request(1)
        await idle()
        assert [*range(1, n + 1)] == recorder.items
    await recorder.over.wait()
    assert [n async for n in COMBINED[name]] == [1, 2, 3, 4, 5]
    assert made


async def test_no_signal_comes_inside_a_request(made: list[object]) -> None:
    recorder = Recorder()
    Flow.of(1, 2).concat(Flow.of(3)).subscribe(recorder)
    await idle()

    recorder.request(3)
    assert [] == recorder.items
    await idle()
    assert [1, 2, 3] == recorder.items
    assert 2 == len(made)


async def test_what_is_cancelled_signals_nothing_any_more() -> None:
    recorder = Recorder()
    Flow.range(10**9).concat(Flow.of(1)).subscribe(recorder)
    await idle()
    recorder.request(10**9)
    recorder.cancel()
    await idle()

    assert [] == recorder.items


async def test_a_long_one_gives_others_their_turn() -> None:
    turns = 0

    async def beside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(beside())
    await Flow.range(10**6).concat(Flow.of(1)).count()
    other.cancel()

    assert 3 < turns


@pytest.mark.parametrize("other", ["with a stage that keeps state", "of an iterator", "elsewhere"])
async def test_other_flows_have_a_region(other: str, made: list[object]) -> None:
    with schedulers.thread("elsewhere") as place:
        flow = {
            "with a stage that keeps state": Flow.of(1).take(1),
            "of an iterator": Flow.from_iterable(iter([1])),
            "elsewhere": Flow.of(1).subscribe_on(place),
        }[other]
        assert [1, 1] == await flow.concat(Flow.of(1)).to_list()

    assert len(made) == 1


# -- passed on without a subscription


@pytest.mark.parametrize(
    ("flow", "mapped"),
    [
        (Flow.range(3).flat_map(lambda n: Flow.of(n, n)), [Given]),
        (Flow.range(3).concat_map(lambda n: Flow.of(n, n)), [Given]),
        (Flow.range(3).exhaust_map(lambda n: Flow.of(n, n)), [Given]),
        (Flow.of(0, 0, 1).concat(Flow.of(1, 2), Flow.of(2)), []),
        (Flow.of(0, 0, 1, 1, 2, 2).retry(), []),
    ],
    ids=["flat_map", "concat_map", "exhaust_map", "concat", "retry"],
)
async def test_as_many_as_are_wanted_are_passed_on_and_nobody_subscribes(
    flow: Flow[int], mapped: list[type], made: list[object]
) -> None:
    assert [0, 0, 1, 1, 2, 2] == await flow.to_list()

    assert mapped == [kind for kind in map(type, made) if kind is not list]


async def test_they_wait_for_demand(made: list[object]) -> None:
    recorder = Recorder()
    Flow.of(1).map(str).retry().subscribe(recorder)
    await idle()

    assert made == []

    recorder.request(1)
    await idle()

    assert recorder.items == ["1"]
    assert recorder.over.is_set()


async def test_more_than_are_wanted_are_subscribed_to(made: list[object]) -> None:
    assert [0, 0, 1, 1] == [n async for n in Flow.range(2).concat_map(lambda n: Flow.of(n, n))]

    assert [Given, Given, Given] == list(map(type, made))  # that which is mapped among them


@pytest.mark.usefixtures("still")  # a turn whose time is up would leave later
@pytest.mark.parametrize("most", [1, 2, 3])
async def test_what_leaves_in_the_middle_of_what_is_passed_on_hears_no_more(most: int) -> None:
    called: list[int] = []

    def inner(n: int) -> Flow[int]:
        called.append(n)
        return Flow.of(n)

    for flow in (Flow.range(9).flat_map(inner), Flow.range(9).concat_map(inner), Flow.of(0, 1, 2).flat_map(inner)):
        called.clear()
        assert [*range(most)] == await flow.take(most).to_list()
        assert [*range(most)] == called
    runs: list[int] = []
    assert [7] * most == await Flow.of(7).repeat().do_on_next(runs.append).take(most).to_list()
    assert len(runs) == most


async def test_each_is_passed_on_before_the_next_flow_is_made() -> None:
    log: list[str] = []

    def inner(n: int) -> Flow[int]:
        log.append(f"made {n}")
        return Flow.of(n)

    await Flow.range(2).flat_map(inner).do_on_next(lambda n: log.append(f"took {n}")).drain()

    assert log == ["made 0", "took 0", "made 1", "took 1"]


async def test_a_flow_that_is_run_again_without_an_element_gives_others_their_turn() -> None:
    task = asyncio.ensure_future(Flow[int].empty().repeat().to_list())
    for _ in range(TURNS):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_snapshot_tells_how_many_were_passed_on() -> None:
    found: list[int] = []
    async with Flow.of(7).repeat(3).open() as items:
        async for _ in items:
            found.append(items.snapshot().regions[0].delivered)  # noqa: PERF401 - a look in between

    assert [1, 1, 1] == found  # the next run waits for demand


class Large:
    """An element that can be looked for by a weak reference."""


async def read_each(flow: Flow[Large]) -> None:
    async for element in flow:
        del element


async def none_of(_: object) -> None:
    """Do nothing with an element, or a list."""


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize(
    "end",
    [
        read_each,
        lambda flow: flow.count(),
        lambda flow: flow.for_each(none_of),
        lambda flow: for_each_row(flow, none_of, lambda _: 1, 2, str),
    ],
    ids=["async for", "count", "for_each", "rows"],
)
@pytest.mark.parametrize("apply", [Flow.concat_map, Flow.switch_map, Flow.flat_map])
async def test_an_inner_flow_that_has_ended_is_let_go(
    apply: Callable[..., Flow[Large]], end: Callable[[Flow[Large]], Awaitable[object]], number: int
) -> None:
    alive: WeakSet[Large] = WeakSet()

    async def twice() -> AsyncGenerator[int]:
        yield 1
        yield 2
        await asyncio.Event().wait()

    def made(_: int) -> Flow[Large]:
        elements = [Large() for _ in range(number)]
        alive.update(elements)
        return Flow.from_iterable(elements)

    waiting = asyncio.ensure_future(end(apply(Flow.from_async_iterable(twice()), made)))
    await idle()
    gc.collect()

    assert 0 == len(alive)
    waiting.cancel()
