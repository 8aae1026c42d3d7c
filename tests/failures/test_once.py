"""A failure that reaches a flow by several ways, as from groups or readers of one source, is raised once and reported to no hook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, Subscription, hooks
from reactive_aio._core import budgets
from reactive_aio._runtime.ends import subscribe
from tests.subscribers import idle

Read = Callable[[Flow[int]], Flow[Any]]

READ: dict[str, Read] = {
    "groups": lambda flow: flow.group_by(lambda n: n).flat_map(lambda group: group),
    "groups, one after another": lambda flow: flow.group_by(lambda n: n).concat_map_eager(lambda group: group),
    "windows": lambda flow: flow.window(2).flat_map(lambda window: window.map(str)),
    "merge": lambda flow: flow.multicast(lambda shared: shared.merge(shared, shared.map(str))),
    "merge that delays failures": lambda flow: flow.multicast(lambda shared: shared.merge(shared, delay_errors=True)),
    "zip": lambda flow: flow.multicast(lambda shared: shared.zip(shared.skip(1))),
    "combine_latest": lambda flow: flow.multicast(lambda shared: shared.combine_latest(shared.skip(1))),
    "shared": lambda flow: merged(flow.share(start=4)),
    "a slow end": lambda flow: (
        flow.group_by(lambda n: n).flat_map(lambda group: group).map_async(slowly, max_concurrency=1)
    ),
}


def merged(shared: Flow[int]) -> Flow[int]:
    return shared.merge(shared, shared, shared)


async def slowly(item: object) -> object:
    for _ in range(5):
        await asyncio.sleep(0)
    return item


async def failing() -> AsyncIterator[int]:
    for n in range(5):
        yield n
    await asyncio.sleep(0)
    raise OSError("down")


@pytest.mark.parametrize("read", READ.values(), ids=READ)
async def test_a_failure_that_comes_by_several_ways_is_raised_once_and_not_reported(read: Read) -> None:
    reported: list[BaseException] = []
    with hooks.using(on_error_dropped=reported.append), pytest.raises(OSError, match="down") as failed:
        await read(Flow.from_async_iterable(failing)).to_list()

    assert [] == reported
    assert not [note for note in failed.value.__notes__ if "further failure" in note]


class Told:
    """A subscriber that wants everything, and keeps the failure that it gets."""

    def __init__(self) -> None:
        self.failed: list[BaseException] = []
        self.over = asyncio.Event()

    def on_subscribe(self, subscription: Subscription) -> None:
        subscription.request(UNBOUNDED)

    def on_next(self, item: object) -> None: ...

    def on_error(self, error: BaseException) -> None:
        self.failed.append(error)
        self.over.set()

    def on_complete(self) -> None:
        self.over.set()


@pytest.mark.parametrize("read", READ.values(), ids=READ)
async def test_a_failure_that_comes_by_several_ways_reaches_a_subscriber_once_and_is_not_reported(read: Read) -> None:
    reported: list[BaseException] = []
    told, ended = Told(), asyncio.Event()
    with hooks.using(on_error_dropped=reported.append):
        subscribe(read(Flow.from_async_iterable(failing)), told, ended=ended.set)
        await told.over.wait()
        await ended.wait()

    assert ["down"] == [str(each) for each in told.failed]
    assert [] == reported


async def test_a_failure_that_does_not_reach_the_subscriber_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", count(step=0).__next__)  # both readers get it in one turn
    reported: list[BaseException] = []
    told, ended = Told(), asyncio.Event()
    flow = Flow.from_async_iterable(failing).multicast(lambda shared: shared.zip(shared)).on_error_complete()
    with hooks.using(on_error_dropped=reported.append):
        subscribe(flow, told, ended=ended.set)
        await told.over.wait()
        await ended.wait()

    assert [] == told.failed
    assert ["down"] == [str(each) for each in reported]


async def test_another_failure_with_the_same_text_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "clock", count(step=0).__next__)  # all three begin in one turn
    reported: list[BaseException] = []

    async def fail(_: int) -> AsyncIterator[int]:
        try:
            raise OSError("down")
        finally:
            await asyncio.sleep(0)
        yield 0

    with hooks.using(on_error_dropped=reported.append), pytest.raises(OSError, match="down") as failed:
        await Flow.range(3).flat_map(lambda n: Flow.from_async_iterable(fail(n))).to_list()

    assert [repr(failed.value)] * 2 == [repr(each) for each in reported]
    assert failed.value not in reported


async def opened(flow: Flow[Any]) -> None:
    async with flow.open() as items:
        await anext(items)


async def broken_off(flow: Flow[Any]) -> None:
    async for _ in flow:
        break


async def cancelled(flow: Flow[Any]) -> None:
    async def wait(_: object) -> None:
        await asyncio.Event().wait()

    waiting = asyncio.create_task(flow.for_each(wait))
    await idle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def cancelled_in_its_cleanup(flow: Flow[Any]) -> None:
    async def closing() -> AsyncIterator[int]:
        try:
            await asyncio.Event().wait()
            yield 0
        finally:
            await idle()

    waiting = asyncio.create_task(opened(flow.merge(Flow.from_async_iterable(closing), delay_errors=True)))
    await idle(20)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def closed(flow: Flow[Any]) -> None:
    waiting = flow.to_list()
    waiting.send(None)
    await idle()
    waiting.close()


BEHIND = {name: read for name, read in READ.items() if name != "combine_latest"}
"""Those that keep the failure behind an element. combine_latest fails at once here."""


@pytest.mark.parametrize("step", [0, budgets.TURN], ids=["all in one turn", "a turn for each"])
@pytest.mark.parametrize("several", BEHIND.values(), ids=BEHIND)
@pytest.mark.parametrize("leave", [opened, broken_off, cancelled, closed, cancelled_in_its_cleanup])
async def test_a_failure_that_came_by_several_ways_and_is_not_taken_is_reported_once(
    leave: Callable[[Flow[Any]], Any], several: Read, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[BaseException] = []
    monkeypatch.setattr(budgets, "clock", count(step=step).__next__)

    async def two() -> AsyncIterator[int]:
        yield 0
        yield 1
        raise OSError("down")

    with hooks.using(on_error_dropped=reported.append):
        await leave(several(Flow.from_async_iterable(two)))
        await idle()

    assert ["down"] == [str(each) for each in reported]


def breaking(n: int) -> int:
    if n == 1:
        raise OSError("down")
    return n


SEVERAL: dict[str, Read] = {
    "race": lambda shared: shared.race(shared),
    "zip of three": lambda shared: shared.zip(shared, shared.map(str)),
    "one in another": lambda shared: shared.multicast(lambda inner: inner.zip(inner)).zip(shared),
}


@pytest.mark.parametrize("several", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("first", [0, 1])
async def test_readers_that_the_failure_of_another_one_has_ended_do_not_report_it(several: Read, first: int) -> None:
    reported: list[BaseException] = []
    told, ended = Told(), asyncio.Event()
    flow = Flow.range(first, 3).map(breaking).multicast(several)
    with hooks.using(on_error_dropped=reported.append):
        subscribe(flow, told, ended=ended.set)
        await ended.wait()
        await idle()
        with pytest.raises(OSError, match="down"):
            await flow.to_list()

    assert [] == reported
    assert ["down"] == [str(each) for each in told.failed]


@pytest.mark.parametrize("lag", [1, 64])
async def test_a_failure_that_a_shared_run_has_got_by_several_ways_is_not_reported(lag: int) -> None:
    reported: list[BaseException] = []
    inner = Flow.range(3).map(breaking).share(start=2, lag=lag)

    with hooks.using(on_error_dropped=reported.append), pytest.raises(OSError, match="down"):
        await inner.merge(inner.ignore_elements()).share().to_list()

    assert [] == reported


PARTS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "map_async": lambda groups: groups.map_async(lambda group: group.count(), max_concurrency=600),
    "from_awaitable": lambda groups: groups.flat_map(
        lambda group: Flow.from_awaitable(group.count), max_concurrency=600
    ),
    "flat_map": lambda groups: groups.flat_map(lambda group: group.scan(max), max_concurrency=600),
}


@pytest.mark.parametrize("size", [6, 600])
@pytest.mark.parametrize("parts", PARTS)
async def test_a_failure_that_many_groups_get_is_raised_and_not_reported(parts: str, size: int) -> None:
    reported: list[BaseException] = []

    def last_fails(n: int) -> int:
        return breaking(1) if n == size - 1 else n

    groups = Flow.range(size).map(last_fails).group_by(lambda n: n // 2, max_groups=size)
    with hooks.using(on_error_dropped=reported.append), pytest.raises(OSError, match="down"):
        await PARTS[parts](groups).to_list()
    await idle()

    assert [] == reported


@pytest.mark.parametrize("number", [1, 2])
async def test_a_failure_of_groups_whose_readers_are_cancelled_meanwhile_is_reported_once(number: int) -> None:
    reported: list[BaseException] = []
    readers: list[asyncio.Task[int]] = []
    going_on = asyncio.Event()

    async def two() -> AsyncIterator[int]:
        yield 0
        yield 1
        await going_on.wait()
        for each in readers:
            each.cancel()
        raise OSError("down")

    with hooks.using(on_error_dropped=reported.append):
        async with Flow.from_async_iterable(two).group_by(lambda n: n % number).open() as groups:
            readers += [asyncio.create_task((await anext(groups)).count()) for _ in range(number)]
            await idle()
            going_on.set()  # when the flow of the groups has been left
        await asyncio.wait(readers)
        await idle()

    assert all(each.cancelled() for each in readers)
    assert ["down"] == [str(each) for each in reported]
