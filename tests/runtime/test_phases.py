"""The phases of a region's life, through every short row of events: each comes after the one before it, and the end once."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from itertools import product
from typing import Any, Final

import pytest
from attrs import define, field

from reactive_aio import Flow
from reactive_aio._plan import Inlet, Plan, Pushed
from reactive_aio._runtime.assemble import assemble
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.life import BEGUN, CLOSED, MADE, OPEN, Life
from reactive_aio._runtime.lifetime import Lifetime
from reactive_aio.extend import flow_of
from reactive_aio.spec import Subscription
from tests.subscribers import idle

ORDER: Final = [MADE, BEGUN, OPEN, CLOSED]


@define(eq=False)
class Source(Pushed[int]):
    """A source that the test moves."""

    fails_to_open: bool = False
    inlet: Inlet[Any] | None = None
    asked: int = 0
    given: int = 0
    cancels: int = 0
    ended: bool = False

    def open(self, inlet: Inlet[Any]) -> Subscription:
        if self.fails_to_open:
            raise OSError("closed")
        self.inlet = inlet
        return self

    def request(self, n: int) -> None:
        self.asked += n

    def cancel(self) -> None:
        self.cancels += 1


@define(eq=False)
class Heard:
    """A `Receiver` that keeps the signals that come downstream."""

    signals: list[str] = field(factory=list[str])

    def on_subscribe(self, subscription: Subscription) -> None:
        self.signals.append("subscribed")

    def on_chunk(self, items: list[int]) -> None:
        self.signals.append(f"{len(items)} elements")

    def on_error(self, error: BaseException) -> None:
        self.signals.append("error")

    def on_complete(self) -> None:
        self.signals.append("complete")


@define(eq=False)
class World:
    """A region, what feeds it, and who reads it."""

    source: Source
    heard: Heard = field(factory=Heard)
    lives: list[Life] = field(factory=list[Life])
    lifetime: Lifetime = field(factory=Lifetime)
    driver: RegionDriver = field(init=False)

    def __attrs_post_init__(self) -> None:
        flow: Flow[int] = flow_of(self.source)
        self.driver = assemble(Plan.of(flow.map(abs)), self.heard, FlowHost(self.lifetime), copy_context())
        self.look()

    def look(self) -> None:
        self.lives.append(self.driver.life)

    async def turn(self) -> None:
        await asyncio.sleep(0)

    async def request(self) -> None:
        self.driver.request(1)

    async def cancel(self) -> None:
        self.driver.cancel()

    async def lost(self) -> None:
        self.driver.lost(OSError("the loop has ended"))

    async def element(self) -> None:
        source = self.source
        if source.inlet is not None and not source.ended and not source.cancels and source.given < source.asked:
            source.given += 1
            source.inlet.on_chunk([source.given])

    async def complete(self) -> None:
        if self.source.inlet is not None and not self.source.ended:
            self.source.ended = True
            self.source.inlet.on_complete()

    async def fail(self) -> None:
        if self.source.inlet is not None and not self.source.ended:
            self.source.ended = True
            self.source.inlet.on_error(OSError("failed"))


EVENTS: Final = (World.turn, World.request, World.cancel, World.lost, World.element, World.complete, World.fail)
LONGEST: Final = 4


@pytest.mark.parametrize("fails_to_open", [False, True])
async def test_the_phases_follow_each_other_and_the_end_comes_once(fails_to_open: bool) -> None:
    seen: set[tuple[Life, ...]] = set()
    for events in product(EVENTS, repeat=LONGEST if not fails_to_open else 3):
        world = World(Source(fails_to_open))
        for event in events:
            await event(world)
            world.look()
        world.driver.cancel()
        await idle()
        await world.lifetime.ended()
        world.look()

        names = [event.__name__ for event in events]
        ranks = [ORDER.index(life) for life in world.lives]
        assert sorted(ranks) == ranks, names
        assert CLOSED is world.lives[-1], names
        signals = world.heard.signals
        assert ["subscribed"] == signals[:1], names
        assert 1 >= sum(signal in {"error", "complete"} for signal in signals), names
        assert not {"error", "complete"} & {*signals[:-1]}, names
        assert world.source.given >= len(signals) - 2, names
        seen.add(tuple(dict.fromkeys(world.lives)))

    # Every way through the picture: closed before the source was opened, and behind that.
    assert {(BEGUN, CLOSED), (BEGUN, OPEN, CLOSED)} - seen <= ({(BEGUN, OPEN, CLOSED)} if fails_to_open else set())
    assert all(lives[-1] is CLOSED for lives in seen)


async def test_a_region_whose_loop_has_ended_before_it_was_begun_stays_closed() -> None:
    driver = World(Source()).driver
    driver.life = MADE
    driver.lost(OSError("ended"))
    driver._start(None, None)  # pyright: ignore[reportPrivateUsage] - what was posted to the loop comes too late

    assert driver.closed
    await idle()
