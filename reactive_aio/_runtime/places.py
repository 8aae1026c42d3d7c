"""The places where the regions of a flow run: their loops, with one more boundary if the last is not the subscriber's loop."""

from __future__ import annotations

import asyncio
from typing import Final

from attrs import define, field

from .._core.guard import FAILURES
from .._fusion import Placed
from .._plan import FlowLike, Plan, PublishOn
from ..schedulers.base import Attachment, Scheduler
from ..schedulers.current import Current, Home
from .driver import RegionDriver
from .lifetime import Lifetime

PREFETCH: Final = 256
HERE: Final = Current()


def at_home(flow: FlowLike, home: Scheduler = HERE, prefetch: int | None = PREFETCH) -> FlowLike:
    """Return a flow that signals on the running loop. It gets a boundary if its last region is elsewhere.

    ``home`` is where it belongs: where what is placed nowhere runs. Without a ``prefetch`` the boundary requests what
    its subscriber does, which reads ahead itself.
    """
    nodes = flow.__nodes__
    if (nodes.scheduler or home).is_here():
        return flow
    return nodes.then(Placed(PublishOn(here(), prefetch), nodes.source.origin))


def here() -> Scheduler:
    """Return the running loop as a place that a caller on another loop can use. Without a loop, return `HERE`."""
    try:
        return Home(asyncio.get_running_loop())
    except RuntimeError:
        return HERE


@define(eq=False)
class Held:
    """A region's hold on its scheduler, and the driver to notify when the loop ends."""

    attachment: Attachment = field(init=False)
    driver: RegionDriver | None = field(init=False, default=None)

    def lost(self, error: BaseException) -> None:
        """Report to the driver, in the region's own context, that the loop has ended or is about to."""
        driver = self.driver
        if driver is None:
            return
        if driver.loop.is_running():
            driver.context.copy().run(driver.lost, error)
        else:
            driver.give_up(error)


def placed_at(scheduler: Scheduler | None, home: Scheduler) -> Scheduler:
    """Return the scheduler of a placement."""
    return home if scheduler is None or scheduler == HERE else scheduler


def attach(plan: Plan, lifetime: Lifetime, home: Scheduler) -> list[Held]:
    """Ask the schedulers for loops; all or none."""
    places: list[Held] = []
    try:
        for region in plan.regions:
            place = Held()
            place.attachment = placed_at(region.scheduler, home).attach(place.lost)
            places.append(place)
    except FAILURES:
        for place in places:
            place.attachment.detach(lifetime.hold())
        raise
    return places
