"""The assembly of a flow: which regions belong together, and what is undone where the assembly fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, schedulers
from reactive_aio._plan import Plan
from reactive_aio._runtime.assemble import assemble
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.lifetime import Lifetime
from reactive_aio._runtime.places import at_home
from reactive_aio._runtime.turns import Company
from reactive_aio.schedulers.base import Released
from reactive_aio.schedulers.current import Staying
from tests.runtime.by_turns import Signals
from tests.subscribers import ByHand, idle


async def drivers_of(flow: Flow[Any], company: Company | None = None) -> list[RegionDriver]:
    """Return the drivers of a flow, from its source to its end, when it has been cancelled and cleaned up."""
    lifetime = Lifetime()
    last = assemble(Plan.of(flow), Signals(), FlowHost(lifetime), copy_context(), company=company)
    drivers = [last]
    while drivers[0].place.before is not None:
        drivers.insert(0, drivers[0].place.before)
    last.cancel()
    await lifetime.ended()
    return drivers


HERE = schedulers.current()


async def test_a_region_that_is_alone_on_its_loop_has_no_company() -> None:
    alone, elsewhere = await drivers_of(Flow.range(3).publish_on(schedulers.thread("elsewhere")))

    assert (alone.company, elsewhere.company) == (None, None)


async def test_regions_on_one_loop_are_a_company_wherever_others_lie() -> None:
    flow = Flow.range(3).publish_on(schedulers.thread("between")).publish_on(HERE).publish_on(HERE)
    first, between, third, fourth = await drivers_of(flow)

    assert first.company is not None
    assert first.company is third.company is fourth.company
    assert between.company is None


async def test_a_region_that_may_read_others_has_company_from_the_first() -> None:
    (reading,) = await drivers_of(Flow.from_publisher(ByHand()))
    assert reading.company is not None

    first, second = await drivers_of(Flow.from_publisher(ByHand()).publish_on(schedulers.thread("second")))
    assert first.company is not None
    assert second.company is None


async def test_the_regions_of_an_inner_flow_join_the_company_of_their_loop() -> None:
    company = Company(asyncio.get_running_loop())
    first, elsewhere, last = await drivers_of(
        Flow.range(3).publish_on(schedulers.thread("elsewhere")).publish_on(HERE), company
    )

    assert first.company is last.company is company
    assert elsewhere.company is None


async def test_the_first_turn_of_a_flow_that_is_called_is_the_callers_to_take() -> None:
    signals, lifetime = Signals(), Lifetime()
    signals.react = lambda signal: signals.subscription.request(2) if signal == "subscribed" else None
    driver = assemble(Plan.of(Flow.of(1, 2)), signals, FlowHost(lifetime), copy_context(), called=True)
    await idle()
    assert signals.heard == ["subscribed"]

    driver.take_turn()
    assert signals.heard == ["subscribed", [1, 2], "complete"]
    await lifetime.ended()


# -- where it fails


@define
class Refusing:
    """A scheduler that may have no loop (a Scheduler)."""

    log: list[str]
    refuses: bool = False
    name: str = field(default="refusing")

    def is_here(self) -> bool:
        return False

    def attach(self, lost: Callable[[BaseException], None]) -> Any:
        if self.refuses:
            raise OSError("no loop")
        self.log.append("attached")
        return self

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def detach(self, released: Released) -> None:
        self.log.append("detached")
        Staying(self.loop).detach(released)


async def test_when_one_region_finds_no_loop_the_others_let_go_of_theirs() -> None:
    log: list[str] = []
    flow = Flow.range(3).publish_on(Refusing(log)).publish_on(Refusing(log)).publish_on(Refusing(log, refuses=True))
    signals, lifetime = Signals(), Lifetime()
    assemble(Plan.of(flow), signals, FlowHost(lifetime), copy_context())
    await idle()
    await lifetime.ended()

    assert log == ["attached", "attached", "detached", "detached"]
    _, error = signals.heard
    assert isinstance(error, OSError)
    assert error.__notes__ == [f"in {flow.__nodes__.source}"]


@define
class Losing(Refusing):
    """Says that its loop has ended before anything runs there."""

    def attach(self, lost: Callable[[BaseException], None]) -> Any:
        lost(OSError("already"))
        return super().attach(lost)


async def test_a_loop_that_is_lost_while_regions_are_placed_is_nobodys_yet() -> None:
    assert await Flow.range(3).publish_on(Losing([])).to_list() == [0, 1, 2]


async def test_each_region_lets_go_of_its_loop_when_it_has_ended() -> None:
    log: list[str] = []
    assert await Flow.range(3).subscribe_on(Refusing(log)).publish_on(Refusing(log)).to_list() == [0, 1, 2]

    assert log == ["attached", "attached", "detached", "detached"]


# -- coming home


@pytest.mark.parametrize(
    ("flow", "regions"),
    [
        (Flow.range(3), 1),
        (Flow.range(3).publish_on(HERE), 2),
        (Flow.range(3).subscribe_on(schedulers.thread("far")), 2),
        (Flow.range(3).publish_on(schedulers.thread("far")).map(str), 3),
    ],
    ids=str,
)
def test_a_flow_that_ends_elsewhere_comes_home_over_one_more_boundary(flow: Flow[Any], regions: int) -> None:
    home = at_home(flow)

    assert len(Plan.of(home).regions) == regions
    assert (home.__nodes__.scheduler or HERE).is_here()
    assert (home is flow) == (flow.__nodes__.scheduler or HERE).is_here()
