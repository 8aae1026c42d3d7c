"""How far a running flow has come: what has crossed each boundary, and what waits there."""

from __future__ import annotations

from attrs import frozen

from .driver import RegionDriver

HERE = "the subscriber's loop"


@frozen
class RegionSnapshot:
    """One region at one moment."""

    place: str
    """Where the region runs."""
    delivered: int
    """Elements that have left the region."""
    received: int | None = None
    """Elements that have come in over the boundary in front; None for a region that reads its source itself."""
    waiting: int = 0
    """Elements that have come in and have not been consumed."""
    outstanding: int = 0
    """Elements that have been requested from upstream and have not come."""
    prefetch: int | None = None
    """The most that may be waiting or outstanding; None where demand passes one for one."""


@frozen
class Snapshot:
    """The regions that elements pass through at one moment, from the source to the end.

    A combinator such as ``retry`` stands for the flow that it reads now. Regions that only pass on what
    another has made are left out.
    """

    regions: tuple[RegionSnapshot, ...]


def snapshot(last: RegionDriver) -> Snapshot:
    """Look at a flow by the driver of its last region, from any thread, without stopping it."""
    found: list[RegionSnapshot] = []
    driver: RegionDriver | None = last
    while driver is not None:
        fed = driver.fed
        reads = driver.before is None and driver.inner is None and driver.elsewhere is None
        if reads or not driver.run.empty:
            found.append(_region(driver))
        if driver.elsewhere is not None and fed is not None:
            found.append(RegionSnapshot(driver.elsewhere.place, delivered=fed.received))
        driver = driver.before or driver.inner
    return Snapshot(tuple(reversed(found)))


def _region(driver: RegionDriver) -> RegionSnapshot:
    scheduler, fed = driver.region.scheduler, driver.fed
    place = HERE if scheduler is None else scheduler.name
    if fed is None:
        return RegionSnapshot(place, driver.delivered)
    return RegionSnapshot(
        place, driver.delivered, fed.received, waiting=fed.buffered, outstanding=fed.outstanding, prefetch=fed.prefetch
    )
