"""A source that delivers on its own account: what its region asks of it ahead, and what snapshots tell of it."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import pytest
from attrs import field, frozen

from reactive_aio import Flow
from reactive_aio.runtime.assemble import assemble
from reactive_aio.runtime.driver import RegionDriver
from reactive_aio.runtime.lifetime import Lifetime
from reactive_aio.runtime.snapshot import snapshot
from reactive_aio.segments import Elsewhere, Inlet, Plan, Pushed, TasksSnapshot
from reactive_aio.spec import Subscription
from tests.runtime.by_turns import Signals, Upstream
from tests.subscribers import idle


@frozen
class Far(Pushed[Any]):
    """Made elsewhere, by tasks that it tells of, or not."""

    prefetch: int | None = None
    tasks: TasksSnapshot | None = None
    upstream: Upstream = field(factory=Upstream)
    inlets: list[Inlet[Any]] = field(factory=list)

    @property
    def elsewhere(self) -> Elsewhere:
        return Elsewhere("far away", "far()", "credit boundary")

    def open(self, inlet: Inlet[Any]) -> Subscription:
        self.inlets.append(inlet)
        if self.tasks is not None:
            inlet.show_tasks(lambda: self.tasks)
        return self.upstream


async def begun(flow: Flow[Any]) -> RegionDriver:
    driver = assemble(Plan.of(flow), Signals(), Lifetime(), copy_context())
    await idle()
    return driver


@pytest.mark.parametrize(("prefetch", "asked"), [(None, []), (4, [4])])
async def test_what_is_read_ahead_is_the_sources_to_say(prefetch: int | None, asked: list[int]) -> None:
    source = Far(prefetch)
    driver = await begun(Flow.begin(source))

    assert source.upstream.requests == asked
    driver.cancel()
    await idle()


@pytest.mark.parametrize("tasks", [None, TasksSnapshot(4, 2, 1)])
async def test_the_place_where_elements_are_made_is_the_first_of_a_snapshot(tasks: TasksSnapshot | None) -> None:
    source = Far(8, tasks)
    driver = await begun(Flow.begin(source).map(str))
    source.inlets[0].on_chunk([1, 2, 3])
    driver.request(1)
    await idle()
    far, here = snapshot(driver).regions

    assert (far.place, far.delivered, far.tasks, far.boundary) == ("far away", 3, tasks, None)
    assert (here.place, here.delivered) == ("the subscriber's loop", 1)
    assert here.boundary is not None
    assert (here.boundary.requested, here.boundary.delivered, here.boundary.buffered) == (8, 3, 2)
    driver.cancel()
    await idle()


async def test_a_source_hears_of_its_place_and_of_whether_lists_are_welcome() -> None:
    source = Far()
    driver = await begun(Flow.begin(source))
    (inlet,) = source.inlets

    assert inlet.loop is driver.loop
    assert inlet.context is driver.context
    assert inlet.where == driver.region.source
    assert inlet.ahead is False
    driver.ahead = True
    assert inlet.ahead is True
    driver.cancel()
    await idle()
