"""The driver of a region, where its signals meet its end."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import Any

import pytest

from reactive_aio import Flow, hooks
from reactive_aio._plan import Plan
from reactive_aio._runtime.assemble import assemble
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.ends import subscribe
from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.lifetime import Lifetime
from tests.runtime.by_turns import region_of
from tests.subscribers import ByHand, Recorder, idle


class Chunks:
    """Takes what a region gives (a Receiver)."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def on_subscribe(self, subscription: Any) -> None:
        subscription.request(1)

    def on_chunk(self, items: list[Any]) -> None:
        self.items += items

    def on_error(self, error: BaseException) -> None:
        raise AssertionError from error

    def on_complete(self) -> None:
        raise AssertionError


def driver_of(flow: Flow[Any], receiver: Chunks) -> RegionDriver:
    return assemble(Plan.of(flow), receiver, FlowHost(Lifetime()), copy_context())


async def test_what_comes_from_upstream_behind_the_end_is_told_to_the_hooks() -> None:
    dropped: list[BaseException] = []
    discarded: list[Any] = []
    error = OSError("late")
    receiver = Chunks()
    with hooks.using(on_error_dropped=dropped.append, on_discard=discarded.append):
        driver = driver_of(Flow.from_publisher(ByHand()).map(str), receiver)
        await idle()
        driver.cancel()
        await idle()
        driver.on_chunk([1, 2])
        driver.on_error(error)
        driver.on_complete()

    assert (receiver.items, discarded, dropped) == ([], [1, 2], [error])


async def test_a_source_that_is_not_opened_fails_behind_what_a_stage_gives_first_with_its_place_named() -> None:
    def broken() -> Flow[str]:
        raise OSError("no source")

    seen: list[str] = []
    with pytest.raises(OSError, match="no source") as raised:
        await Flow.defer(broken).start_with("first").for_each(seen.append)

    assert seen == ["first"]
    assert [note for note in raised.value.__notes__ if note.startswith("in defer(")]


async def test_whoever_subscribes_for_somebody_hears_when_everything_has_been_cleaned_up() -> None:
    order: list[str] = []

    async def ticking() -> Any:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            order.append("cleaned up")

    recorder = Recorder(request=9)
    subscribe(Flow.from_async_iterable(ticking()), recorder, ended=lambda: order.append("ended"))
    await recorder.over.wait()
    await idle()

    assert order == ["cleaned up", "ended"]


def test_what_arrives_on_the_loop_comes_behind_what_has_been_posted() -> None:
    """A turn whose time was up has left a list that another thread posted. A timer of the same loop hands over a later list."""
    bed = region_of(prefetch=9)
    bed.driver.request(9)
    bed.loop.rest()

    bed.driver.post(bed.driver.upstream.add, ["posted by another thread"])
    bed.driver.arrive(["handed over"])
    bed.loop.rest()

    assert ["subscribed", ["posted by another thread"], ["handed over"]] == bed.heard


def test_a_list_that_arrives_takes_a_turn_only_where_it_is_wanted() -> None:
    bed = region_of(prefetch=9)

    bed.driver.arrive([1, 2])
    assert 0 == bed.loop.turn()

    bed.driver.request(3)
    bed.loop.rest()
    assert ["subscribed", [1, 2]] == bed.heard

    bed.driver.arrive([3])
    assert 1 == bed.loop.turn()
    assert ["subscribed", [1, 2], [3]] == bed.heard
