"""A source that delivers on its own account: what its region asks of it ahead, and what snapshots tell of it."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import pytest
from attrs import field, frozen

from reactive_aio import Flow
from reactive_aio._fusion import ELEMENT
from reactive_aio._plan import Capabilities, Elsewhere, Inlet, Plan, Pushed, TasksSnapshot
from reactive_aio._runtime.assemble import assemble
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.lifetime import Lifetime
from reactive_aio._runtime.snapshot import snapshot
from reactive_aio.extend import flow_of
from reactive_aio.operators.sourcing.iterable import Of
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
        tasks = self.tasks
        if tasks is not None:
            inlet.show_tasks(lambda: tasks)
        return self.upstream


async def begun(flow: Flow[Any]) -> RegionDriver:
    driver = assemble(Plan.of(flow), Signals(), FlowHost(Lifetime()), copy_context())
    await idle()
    return driver


@pytest.mark.parametrize(("prefetch", "asked"), [(None, []), (4, [4])])
async def test_what_is_read_ahead_is_the_sources_to_say(prefetch: int | None, asked: list[int]) -> None:
    source = Far(prefetch)
    driver = await begun(flow_of(source))

    assert source.upstream.requests == asked
    driver.cancel()
    await idle()


@pytest.mark.parametrize("tasks", [None, TasksSnapshot(4, 2, 1)])
async def test_the_place_where_elements_are_made_is_the_first_of_a_snapshot(tasks: TasksSnapshot | None) -> None:
    source = Far(8, tasks)
    driver = await begun(flow_of(source).map(str))
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


async def test_a_source_hears_of_its_place() -> None:
    source = Far()
    driver = await begun(flow_of(source))
    (inlet,) = source.inlets

    assert inlet.loop is driver.loop
    assert inlet.context is driver.context
    assert inlet.where == driver.region.source
    driver.cancel()
    await idle()


async def test_an_inner_flow_has_its_place_below_the_region_that_reads_it() -> None:
    outer, inner = Far(), Far()
    driver = await begun(flow_of(outer))
    outer.inlets[0].subscribe(flow_of(inner), Signals(), at_once=True)

    assert driver.view is not None
    began = driver.view.inner
    assert began is not None
    assert (began.place.depth, driver.place.inners, began.company) == (1, {began: None}, driver.company)
    began.cancel()
    driver.cancel()
    await idle()


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_inner_flow_does_what_it_can_there_and_then_or_in_a_turn_of_its_own(at_once: bool) -> None:
    outer, signals, ended = Far(), Signals(), list[str]()
    driver = await begun(flow_of(outer))
    signals.react = lambda signal: signals.subscription.request(2) if signal == "subscribed" else None
    outer.inlets[0].subscribe(Flow.of(1, 2), signals, at_once=at_once, ended=lambda: ended.append("ended"))
    assert signals.heard == (["subscribed", [1, 2], "complete"] if at_once else ["subscribed"])

    await idle()
    assert (signals.heard, ended) == (["subscribed", [1, 2], "complete"], ["ended"])
    driver.cancel()
    await idle()


async def test_the_deepest_level_of_combinators_begins_in_a_turn_of_its_own() -> None:
    outer, signals = Far(), Signals()
    driver = await begun(flow_of(outer))
    driver.place.hops = True
    signals.react = lambda signal: signals.subscription.request(2) if signal == "subscribed" else None
    outer.inlets[0].subscribe(Flow.of(1, 2), signals, at_once=True)
    assert signals.heard == ["subscribed"]

    await idle()
    assert signals.heard == ["subscribed", [1, 2], "complete"]
    driver.cancel()
    await idle()


async def test_a_flow_that_is_read_again_is_planned_once() -> None:
    planned: list[str] = []

    class Planned(Of[int]):
        capabilities = Capabilities("somewhere", frozenset({ELEMENT}))

        def lower(self, stage: object) -> Of[int]:
            planned.append("planned")
            return Of((1,))

    outer = Far()
    driver = await begun(flow_of(outer))
    once, other = (flow_of(Planned((n,))).map(str) for n in range(2))
    counts: list[int] = []
    for flow in (once, once, other, once):
        planned.clear()
        outer.inlets[0].subscribe(flow, Signals(), at_once=True)
        counts.append(len(planned))

    assert [1, 0, 1, 0] == counts
    for inner in [*driver.place.inners]:
        inner.cancel()
    driver.cancel()
    await idle()
